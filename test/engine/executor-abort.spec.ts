import { addAbortListener, EventEmitter, once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type AbortKind, RatchetAbort } from '../../lib/errors/execution-errors.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { settled } from '../support/fake-clock.js';
import { ExecutorFixture } from './executor-fixture.js';

const CLAIM = { id: '0190b6a4-0000-7000-8000-000000000001', claimSeq: '9' };
const LATE = { jobId: CLAIM.id, claimSeq: '9' };
let warn: jest.SpiedFunction<Logger['warn']>;

beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  jest.spyOn(Logger.prototype, 'debug').mockImplementation(() => undefined);
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** A body that the test ends. */
function held(): {
  fixture: ExecutorFixture;
  context: () => JobContext;
  end: (value?: unknown) => void;
  fail: (error: unknown) => void;
} {
  let end!: (value?: unknown) => void;
  let fail!: (error: unknown) => void;
  let context: JobContext | undefined;
  const gate = new Promise((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  const fixture = new ExecutorFixture((_payload, ctx) => {
    context = ctx;
    return gate;
  });
  return { fixture, context: () => context!, end, fail };
}

/** What a promise has become; `pending` as long as it has not. */
async function now<T>(promise: Promise<T>): Promise<T | 'pending'> {
  await settled();
  return Promise.race([promise, Promise.resolve('pending' as const)]);
}

describe('a timeout', () => {
  it('is warned of at four fifths', async () => {
    const { fixture, end } = held();
    const { ended } = fixture.start({ timeoutMs: 1_000 });
    fixture.clock.advance(799);
    expect(warn).not.toHaveBeenCalled();
    fixture.clock.advance(1);
    expect(warn).toHaveBeenCalledWith(
      expect.stringContaining('Works.work has used 800 ms of its timeout of 1000 ms'),
    );
    end();
    await ended;
    expect(fixture.clock.pending).toBe(0);
  });

  it('settles at once as a failure, aborts, and leaves the slot taken until the body ends', async () => {
    const { fixture, context, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    await settled();
    const { signal } = context();
    fixture.clock.advance(1_000);
    expect(await now(execution.settlement)).toMatchObject({
      ...CLAIM,
      outcome: 'retried',
      delayMs: 10_000,
      error: expect.stringContaining('JOB_TIMEOUT'),
    });
    expect(signal.reason).toMatchObject({ code: 'JOB_ABORTED', reason: 'timeout' });
    expect(await now(execution.ended)).toBe('pending');
    end('too late');
    expect(await execution.ended).toEqual({ ...LATE, outcome: 'succeeded' });
  });

  it('ends with the last retry as any failure does', async () => {
    const { fixture, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000, failures: 3 });
    fixture.clock.advance(1_000);
    expect((await execution.settlement).outcome).toBe('failed');
    end();
    await execution.ended;
  });

  it('keeps the error of a body that fails afterwards', async () => {
    const { fixture, fail } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    await settled();
    fixture.clock.advance(1_000);
    fail(new Error('stopped'));
    expect(await execution.ended).toMatchObject({
      ...LATE,
      outcome: 'failed',
      error: expect.stringContaining('stopped'),
    });
  });

  it('is nothing to a body that ended before', async () => {
    const { fixture, context, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    await settled();
    end('in time');
    await execution.ended;
    fixture.clock.advance(10_000);
    expect(await execution.settlement).toMatchObject({ outcome: 'succeeded', result: '"in time"' });
    expect(context().signal.aborted).toBe(false);
  });

  it('reports a body that ignores its signal, less and less often', async () => {
    const { fixture, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    fixture.clock.advance(1_000);
    warn.mockClear();
    fixture.clock.advance(5_000);
    expect(warn).toHaveBeenLastCalledWith(
      expect.stringContaining('goes on 5 s after its signal was aborted (timeout)'),
    );
    fixture.clock.advance(60_000);
    expect(warn).toHaveBeenCalledTimes(3);
    end();
    await execution.ended;
    expect(fixture.clock.pending).toBe(0);
  });

  it('is not reported any more when the node stops, but for one line', async () => {
    const { fixture, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    fixture.clock.advance(1_000);
    warn.mockClear();
    execution.abort('shutdown');
    fixture.clock.advance(600_000);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('goes on although the node stops'));
    end();
    await execution.ended;
    expect(fixture.clock.pending).toBe(0);
  });

  it('may be longer than setTimeout can count', async () => {
    const { fixture, end } = held();
    const execution = fixture.start({ timeoutMs: 2 ** 32 });
    fixture.clock.advance(2 ** 32 - 1);
    expect(await now(execution.settlement)).toBe('pending');
    fixture.clock.advance(1);
    expect((await execution.settlement).outcome).toBe('retried');
    end();
    await execution.ended;
  });
});

describe.each<AbortKind>(['canceled', 'shutdown', 'lost'])('abort(%p)', (kind) => {
  it('aborts the signal and settles nothing', async () => {
    const { fixture, context, end } = held();
    const execution = fixture.start();
    await settled();
    let heard: unknown;
    context().signal.addEventListener('abort', () => {
      heard = context().signal.reason;
    });
    execution.abort(kind);
    expect(heard).toBeInstanceOf(RatchetAbort);
    expect(heard).toMatchObject({ name: 'AbortError', reason: kind, jobId: CLAIM.id });
    end('late');
    expect(await execution.ended).toEqual({ ...LATE, outcome: 'succeeded' });
    expect(await now(execution.settlement)).toBe('pending');
    expect(fixture.clock.pending).toBe(0);
  });

  it('reaches a handler that asks for the signal only later', async () => {
    const { fixture, context, end } = held();
    const execution = fixture.start();
    await settled();
    execution.abort(kind);
    expect(context().signal).toMatchObject({ aborted: true, reason: { reason: kind } });
    end();
    await execution.ended;
  });

  it('is nothing after the end', async () => {
    const fixture = new ExecutorFixture(() => 1);
    const execution = fixture.start();
    await execution.ended;
    execution.abort(kind);
    expect((await execution.settlement).outcome).toBe('succeeded');
    expect(fixture.clock.pending).toBe(0);
  });

  it('takes away the timeout', async () => {
    const { fixture, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    execution.abort(kind);
    fixture.clock.advance(1_000);
    expect(await now(execution.settlement)).toBe('pending');
    end();
    await execution.ended;
  });
});

describe('a listener of the signal that fails', () => {
  /** Each adds a careless listener; `boom` is thrown or rejected with. */
  const ways: Record<string, (signal: AbortSignal, boom: () => never) => void> = {
    'a function': (signal, boom) => signal.addEventListener('abort', boom),
    'an object': (signal, boom) => signal.addEventListener('abort', { handleEvent: boom }),
    'an async function': (signal, boom) => {
      const listener: () => unknown = async () => {
        await Promise.resolve();
        boom();
      };
      signal.addEventListener('abort', listener);
    },
    'a handler': (signal, boom) => (signal.onabort = boom),
    'a function added by a library': (signal, boom) => void addAbortListener(signal, boom),
  };

  it.each(Object.keys(ways))('%s: is logged with its job, and nothing else', async (way) => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const { fixture, context, end } = held();
    const execution = fixture.start();
    await settled();
    ways[way]!(context().signal, () => {
      throw new Error('boom');
    });
    let heard = 0;
    context().signal.addEventListener('abort', () => (heard += 1));
    execution.abort('canceled');
    await settled();
    await settled();
    expect(heard).toBe(1);
    expect(error).toHaveBeenCalledTimes(1);
    expect(error).toHaveBeenCalledWith(expect.stringMatching(new RegExp(`work \\(${CLAIM.id}\\)[^]*boom`)));
    end();
    await execution.ended;
  });
});

describe('the signal is one for every library', () => {
  async function signalOf(): Promise<{ signal: AbortSignal; abort: () => void }> {
    const { fixture, context, end } = held();
    const execution = fixture.start();
    await settled();
    const abort = (): void => {
      execution.abort('canceled');
      end();
    };
    return { signal: context().signal, abort };
  }

  it('adds a listener once, takes it away, and calls it with the signal', async () => {
    const { signal, abort } = await signalOf();
    const calls: unknown[] = [];
    const twice = function (this: unknown, event: Event): void {
      calls.push(this === signal, event.type, event.target === signal);
    };
    const removed = (): void => void calls.push('removed');
    signal.addEventListener('abort', twice);
    signal.addEventListener('abort', twice, { once: true });
    signal.addEventListener('abort', removed);
    signal.removeEventListener('abort', removed);
    signal.onabort = removed;
    expect(signal.onabort).toBe(removed);
    signal.onabort = null;
    expect(signal.onabort).toBeNull();
    abort();
    expect(calls).toEqual([true, 'abort', true]);
  });

  it('works with AbortSignal.any, timers, events and fetch', async () => {
    const { signal, abort } = await signalOf();
    expect(signal).toBeInstanceOf(AbortSignal);
    const any = AbortSignal.any([signal, new AbortController().signal]);
    const ends = Promise.allSettled([
      setTimeout(60_000, undefined, { signal }),
      once(new EventEmitter(), 'never', { signal }),
      fetch('http://127.0.0.1:1/', { signal }),
      fetch(new Request('http://127.0.0.1:1/', { signal: any })),
    ]);
    abort();
    expect(any.aborted).toBe(true);
    for (const end of await ends)
      expect(end).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } });
  });
});

it('keeps the first reason of two', async () => {
  const { fixture, context, end } = held();
  const execution = fixture.start({ timeoutMs: 1_000 });
  await settled();
  fixture.clock.advance(1_000);
  execution.abort('shutdown');
  expect(context().signal.reason).toMatchObject({ reason: 'timeout' });
  end();
  await execution.ended;
});

describe('progress', () => {
  const report = (value: unknown): object => ({ ...CLAIM, value: JSON.stringify(value) });

  it('is reported at once, then at most once a second, the last value only', async () => {
    const { fixture, context, end } = held();
    const execution = fixture.start();
    await settled();
    for (const value of [1, 2, 3]) context().progress(value);
    expect(fixture.reports).toEqual([report(1)]);
    fixture.clock.advance(1_000);
    expect(fixture.reports).toEqual([report(1), report(3)]);
    fixture.clock.advance(5_000);
    context().progress(4);
    expect(fixture.reports).toEqual([report(1), report(3), report(4)]);
    context().progress(5);
    end();
    expect(await execution.settlement).toMatchObject({ outcome: 'succeeded', progress: '5' });
    fixture.clock.advance(5_000);
    context().progress(6);
    expect(fixture.reports).toHaveLength(3);
    expect(fixture.clock.pending).toBe(0);
  });

  it('is kept as it was when it was told', async () => {
    const { fixture, context, end } = held();
    const execution = fixture.start();
    await settled();
    const state = { done: 1 };
    context().progress(state);
    state.done = 2;
    end();
    expect((await execution.settlement).progress).toBe('{"done":1}');
  });

  it('rides on a failure and on a timeout too', async () => {
    const failing = new ExecutorFixture((_payload, ctx) => {
      ctx.progress('half');
      throw new Error('down');
    });
    expect(await failing.start().settlement).toMatchObject({ outcome: 'retried', progress: '"half"' });
    const { fixture, context, end } = held();
    const execution = fixture.start({ timeoutMs: 1_000 });
    await settled();
    context().progress('half');
    fixture.clock.advance(1_000);
    expect(await execution.settlement).toMatchObject({ outcome: 'retried', progress: '"half"' });
    end();
    await execution.ended;
  });

  it('never fails the handler, whatever it is given', async () => {
    const fixture = new ExecutorFixture((_payload, ctx) => {
      for (const value of [undefined, 1n, '\0', () => 1, 'x'.repeat(1e6), Symbol('x')]) ctx.progress(value);
    });
    expect((await fixture.start().settlement).outcome).toBe('succeeded');
    expect(warn).toHaveBeenCalledTimes(1);
  });
});

describe('one that waits for its transaction', () => {
  /** Its transaction begins when the test says so. */
  function waiting(): {
    fixture: ExecutorFixture;
    begin: (transaction: unknown) => void;
    fail: (error: unknown) => void;
  } {
    let begin!: (transaction: unknown) => void;
    let fail!: (error: unknown) => void;
    const begun = new Promise((resolve, reject) => {
      begin = resolve;
      fail = reject;
    });
    const fixture = new ExecutorFixture(() => undefined, {
      transactional: true,
      transactions: { begin: () => begun as never },
    });
    return { fixture, begin, fail };
  }

  it.each<AbortKind>(['canceled', 'lost', 'shutdown'])(
    'ignores nothing and leaves no timer when it is %s',
    async (kind) => {
      const { fixture, begin } = waiting();
      const rollBack = jest.fn(() => Promise.resolve());
      const execution = fixture.start({ timeoutMs: 1_000 });
      await settled();
      execution.abort(kind);
      fixture.clock.advance(60_000);
      expect(warn).not.toHaveBeenCalled();
      begin({ rollBack });
      await execution.ended;
      expect(rollBack).toHaveBeenCalledTimes(1);
      expect(fixture.clock.pending).toBe(0);
      execution.abort('shutdown');
      expect(fixture.clock.pending).toBe(0);
    },
  );

  it('leaves none either when it cannot begin, or need not', async () => {
    for (const end of ['rejected', 'lost']) {
      const { fixture, begin, fail } = waiting();
      const execution = fixture.start({ timeoutMs: 1_000 });
      await settled();
      execution.abort('canceled');
      if (end === 'lost') begin(undefined);
      else fail(new Error('no'));
      await execution.ended;
      fixture.clock.advance(60_000);
      expect(fixture.clock.pending).toBe(0);
    }
    expect(warn).not.toHaveBeenCalled();
  });
});
