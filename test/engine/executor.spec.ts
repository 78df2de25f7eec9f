import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { PassThrough } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { z } from 'zod';
import { currentJob } from '../../lib/engine/async-context.js';
import { UnrecoverableError } from '../../lib/errors/execution-errors.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import { RetryPolicy } from '../../lib/jobs/retry-policy.js';
import { settled } from '../support/fake-clock.js';
import { ExecutorFixture } from './executor-fixture.js';

const CLAIM = { id: '0190b6a4-0000-7000-8000-000000000001', claimSeq: '9' };
let warn: jest.SpiedFunction<Logger['warn']>;

beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  jest.spyOn(Logger.prototype, 'debug').mockImplementation(() => undefined);
});
afterEach(() => {
  jest.restoreAllMocks();
});

describe('a handler that ends', () => {
  it('is settled as succeeded, with its result', async () => {
    const { settlement, ended } = new ExecutorFixture(async () => ({ number: 7 })).start();
    expect(await settlement).toEqual({ ...CLAIM, outcome: 'succeeded', result: '{"number":7}' });
    expect(await ended).toBeUndefined();
  });

  it('may be synchronous, and return nothing', async () => {
    const { settlement } = new ExecutorFixture(() => undefined).start();
    expect(await settlement).toEqual({ ...CLAIM, outcome: 'succeeded' });
  });

  it('is told who it runs for', async () => {
    let seen: JobContext | undefined;
    const fixture = new ExecutorFixture((_payload, ctx) => void (seen = ctx));
    await fixture.start({
      executions: 3,
      failures: 1,
      priority: 4,
      tags: ['eu'],
      metadata: { t: 1 },
      businessKey: 'k',
      timeoutMs: 5_000,
    }).ended;
    expect(seen).toMatchObject({
      jobId: CLAIM.id,
      name: 'work',
      payload: { n: 1 },
      execution: 3,
      failures: 1,
      claimSeq: '9',
      lane: 'default',
      priority: 'critical',
      tags: ['eu'],
      metadata: { t: 1 },
      businessKey: 'k',
      scheduledFor: new Date(0),
      deadline: new Date(Date.UTC(2030, 0, 1, 0, 0, 5)),
    });
    expect(seen?.signal.aborted).toBe(false);
  });

  it('is found by currentJob, however deep, and by nobody else', async () => {
    const deep = async (): Promise<string | undefined> => {
      await settled();
      return currentJob()?.jobId;
    };
    const { settlement } = new ExecutorFixture(deep).start();
    expect((await settlement).result).toBe(JSON.stringify(CLAIM.id));
    expect(currentJob()).toBeUndefined();
  });

  it('keeps nothing of a success that is to be dropped', async () => {
    const definition: JobDefinition = defineJob('work', { history: 'drop' });
    const { settlement } = new ExecutorFixture(() => 'kept nowhere', { definition }).start();
    expect(await settlement).toEqual({ ...CLAIM, outcome: 'succeeded', drop: true });
  });

  it.each<[string, () => unknown, string | undefined]>([
    ['a thenable', () => ({ then: (resolve: (value: unknown) => void) => resolve('later') }), '"later"'],
    ['NUL and half a surrogate pair', () => 'a\0b\ud800', '"ab\uFFFD"'],
    ['a bigint', () => 5n, '"5"'],
    ['a Map', () => new Map([['a', 1]]), '[["a",1]]'],
    ['a function', () => () => 1, 'null'],
  ])('succeeds with %s', async (_what, body, result) => {
    const { settlement } = new ExecutorFixture(body).start();
    expect(await settlement).toMatchObject({ outcome: 'succeeded', result });
  });

  it.each<[string, () => unknown]>([
    ['much data', () => 'x'.repeat(5_000)],
    ['a stream', () => new PassThrough()],
    [
      'a revoked proxy',
      () => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return [proxy];
      },
    ],
  ])('succeeds with %s, with a small stand-in at worst', async (_what, body) => {
    const { settlement } = new ExecutorFixture(body).start();
    const { outcome, result } = await settlement;
    expect(outcome).toBe('succeeded');
    expect(Buffer.byteLength(result ?? '')).toBeLessThanOrEqual(1_000);
  });

  it('warns when the result is too large to keep', async () => {
    await new ExecutorFixture(() => 'x'.repeat(5_000)).start().settlement;
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('result is larger than 1000 bytes'));
  });
});

describe('a handler that fails', () => {
  it('is tried again after its backoff', async () => {
    const { settlement, ended } = new ExecutorFixture(async () => Promise.reject(new Error('down'))).start();
    const { error, ...rest } = await settlement;
    expect(rest).toEqual({ ...CLAIM, outcome: 'retried', delayMs: 10_000 });
    expect(error).toContain('Error: down');
    expect(await ended).toBeUndefined();
  });

  it('is retried maxRetries times, and no more', async () => {
    const fixture = new ExecutorFixture(() => {
      throw new Error('down');
    });
    const outcomes = [0, 1, 2, 3].map(
      async (failures) => (await fixture.start({ failures }).settlement).outcome,
    );
    expect(await Promise.all(outcomes)).toEqual(['retried', 'retried', 'retried', 'failed']);
  });

  it('goes by the row first, then by its definition, then by the module', async () => {
    const body = (): never => {
      throw new Error('down');
    };
    const outcome = async (fixture: ExecutorFixture, given: object): Promise<unknown> =>
      (await fixture.start(given).settlement).outcome;
    const once: JobDefinition = defineJob('work', { maxRetries: 1 });
    expect(await outcome(new ExecutorFixture(body, { definition: once }), { failures: 1 })).toBe('failed');
    expect(
      await outcome(new ExecutorFixture(body, { definition: once }), { failures: 1, maxRetries: 2 }),
    ).toBe('retried');
    expect(await outcome(new ExecutorFixture(body, { definition: once }), { maxRetries: 0 })).toBe('failed');
    const none = { type: 'none', delayMs: 0, maxDelayMs: 0, jitter: 0 } as const;
    expect((await new ExecutorFixture(body).start({ backoff: none }).settlement).delayMs).toBe(0);
  });

  it.each([
    ['the class', new UnrecoverableError('closed')],
    ['an error of another copy, by its code', Object.assign(new Error('closed'), { code: 'UNRECOVERABLE' })],
    [
      'an error of another library, by its name',
      Object.assign(new Error('closed'), { name: 'UnrecoverableError' }),
    ],
  ])('goes to the dead letter at once when it is unrecoverable: %s', async (_what, error) => {
    const { settlement } = new ExecutorFixture(() => {
      throw error;
    }).start();
    expect(await settlement).toMatchObject({ outcome: 'failed', error: expect.stringContaining('closed') });
  });

  const traps = Object.defineProperties(new Error(), {
    stack: {
      get() {
        throw new Error('trap');
      },
    },
    message: {
      get() {
        throw new Error('trap');
      },
    },
  });
  it.each<[string, unknown]>([
    ['null', null],
    ['undefined', undefined],
    ['a text with NUL', 'a\0b'],
    ['an error with NUL and half a surrogate pair', new Error('a\0b\ud800')],
    ['a message of five megabytes', new Error('x'.repeat(5_000_000))],
    ['getters that throw', traps],
    ['an error of another realm', runInNewContext('new Error("far")')],
    ['a symbol', Symbol('s')],
    ['a function', () => 1],
  ])('may throw anything: %s', async (_what, thrown) => {
    for (const body of [
      () => {
        throw thrown;
      },
      async () => {
        await settled();
        throw thrown;
      },
    ]) {
      const { outcome, error } = await new ExecutorFixture(body).start().settlement;
      expect(outcome).toBe('retried');
      expect(error!.length).toBeGreaterThan(0);
      expect(error).not.toMatch(/[\0\p{Cs}]/u);
      expect(Buffer.byteLength(error!)).toBeLessThanOrEqual(2_000);
    }
  });

  it('fails as any other when the payload does not pass the schema', async () => {
    const definition: JobDefinition = defineJob('work', { schema: z.object({ n: z.string() }) });
    let called = false;
    const { settlement } = new ExecutorFixture(() => void (called = true), { definition }).start();
    expect(await settlement).toMatchObject({
      outcome: 'retried',
      error: expect.stringContaining('payload.n'),
    });
    expect(called).toBe(false);
  });

  it('leaves the decision to the retry policy', async () => {
    class Never extends RetryPolicy {
      override nextDelayMs(): undefined {}
    }
    const { settlement } = new ExecutorFixture(
      () => {
        throw 1;
      },
      { retryPolicy: new Never() },
    ).start();
    expect((await settlement).outcome).toBe('failed');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('bad policy');
      },
    ],
    ['answers NaN', () => Number.NaN],
    ['answers a negative number', () => -1],
    ['answers too much', () => Number.MAX_VALUE],
    ['answers a text', () => '10s' as unknown as number],
  ])('goes by the default policy when the given one %s', async (_what, nextDelayMs) => {
    const { settlement } = new ExecutorFixture(
      () => {
        throw 1;
      },
      { retryPolicy: { nextDelayMs } },
    ).start();
    const { outcome, delayMs } = await settlement;
    expect(outcome).toBe('retried');
    expect(delayMs).toBe(10_000);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('RetryPolicy'));
  });

  it('is recorded, also when the logger fails', async () => {
    warn.mockImplementation(() => {
      throw new Error('logger');
    });
    const { settlement } = new ExecutorFixture(() => {
      throw new UnrecoverableError('x');
    }).start();
    expect((await settlement).outcome).toBe('failed');
  });
});

describe('snooze', () => {
  it('gives the job back uncharged; the last call wins', async () => {
    const fixture = new ExecutorFixture((_payload, ctx) => {
      ctx.snooze('1m');
      ctx.snooze('5m');
      return 'ignored';
    });
    expect(await fixture.start().settlement).toEqual({ ...CLAIM, outcome: 'snoozed', delayMs: 300_000 });
  });

  it('is nothing when the handler throws after it', async () => {
    const fixture = new ExecutorFixture((_payload, ctx) => {
      ctx.snooze('1m');
      throw new Error('down');
    });
    expect((await fixture.start().settlement).outcome).toBe('retried');
  });

  it('warns once when it comes after the end', async () => {
    let context: JobContext | undefined;
    const fixture = new ExecutorFixture((_payload, ctx) => void (context = ctx));
    await fixture.start().ended;
    context?.snooze('1m');
    context?.snooze('1m');
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^work \(0190b6a4-.*\): ctx\.snooze\(\) came after the execution had ended/)],
    ]);
  });

  it('refuses what is no duration', async () => {
    const fixture = new ExecutorFixture((_payload, ctx) => ctx.snooze('soon' as '1s'));
    expect((await fixture.start().settlement).error).toContain('INVALID_SNOOZE: "work": ctx.snooze: "soon"');
  });
});

describe('ctx.enqueue', () => {
  it('passes the claim on as the fence', async () => {
    const Child: JobDefinition = defineJob<unknown>('child');
    const fixture = new ExecutorFixture(async (_payload, ctx) =>
      ctx.enqueue(Child, { a: 1 }, { delay: '1s' }),
    );
    expect((await fixture.start().settlement).result).toBe('{"id":"child","created":true}');
    expect(fixture.children.calls).toEqual([
      { parent: CLAIM, name: 'child', payload: { a: 1 }, options: { delay: '1s' } },
    ]);
  });
});

describe('a job without a handler', () => {
  it('is given back for a while, uncharged', async () => {
    const execution = new ExecutorFixture(() => 1).start({ name: 'unknown' });
    expect(await execution.settlement).toEqual({ ...CLAIM, outcome: 'snoozed', delayMs: 30_000 });
    expect(await execution.ended).toBeUndefined();
    expect(() => execution.abort('shutdown')).not.toThrow();
  });
});
