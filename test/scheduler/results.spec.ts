import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { JobFailedError } from '../../lib/errors/result-errors.js';
import { TransactionEnd } from '../../lib/intake/transaction-end.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type EndedJob } from '../../lib/store/job-store.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { captureLogs } from '../support/engine-node.js';
import { FakeClock, settled } from '../support/fake-clock.js';
import { resultWaiter } from '../support/results.js';

/** What the database knows, and how often it was asked. */
class Shelf {
  readonly ended = new Map<string, EndedJob>();
  readonly live = new Set<string>();
  /** Found by a look everywhere only. */
  readonly hidden = new Set<string>();
  readonly questions: { ids: readonly string[]; everywhere: boolean; atMs: number }[] = [];
  down = false;
  /** Held answers. */
  gate: Promise<void> | undefined;

  constructor(private readonly clock: FakeClock) {}

  end(id: string, result: unknown, status: EndedJob['status'] = 'succeeded'): void {
    this.live.delete(id);
    const error = status === 'failed' ? 'Error: no\n    at there' : undefined;
    this.ended.set(id, { id, name: 'n', status, result, error, executions: 3, failures: 2, crashes: 1 });
  }

  readonly store = {
    ended: async (ids: readonly string[], everywhere = false) => {
      this.questions.push({ ids, everywhere, atMs: this.clock.monotonicMs() });
      if (this.down) throw new StoreError('unavailable', 'STORE_FAULT: away', '08006');
      const seen = ids.filter((id) => everywhere || !this.hidden.has(id));
      const answer = {
        ended: seen.flatMap((id) => this.ended.get(id) ?? []),
        absent: ids.filter(
          (id) => !this.live.has(id) && !(this.ended.has(id) && (everywhere || !this.hidden.has(id))),
        ),
        postponed: [],
      };
      await this.gate;
      return answer;
    },
  };
}

function setUp() {
  const clock = new FakeClock();
  const shelf = new Shelf(clock);
  const events = new EngineEvents();
  const messages = new ClusterMessages(new NoCoordinator(), 'test');
  const results = resultWaiter({ store: shelf.store, clock, events, messages });
  return {
    clock,
    shelf,
    events,
    messages,
    results,
    /** Lets time pass, with turns for the answers to come in. */
    pass: async (ms: number, stepMs = 10) => {
      for (let left = ms; left > 0; left -= stepMs) {
        clock.advance(Math.min(stepMs, left));
        await settled();
      }
    },
    enqueued: (count = 1): string[] => {
      const ids = Array.from({ length: count }, () => uuidv7());
      for (const id of ids) shelf.live.add(id);
      return ids;
    },
  };
}

const settledEvent = (jobId: string, outcome = 'succeeded') =>
  ({ jobId, outcome, bucket: 'b', claimSeq: '1' }) as never;

/** A signal that tells how many listen to it. */
function listened() {
  const controller = new AbortController();
  const { signal } = controller;
  return {
    signal,
    abort: () => controller.abort(new Error('enough')),
    listeners: () => getEventListeners(signal, 'abort').length,
  };
}

/** At most so many begin in any second. */
function mostPerSecond(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
}

describe('awaited results', () => {
  it('resolve, or reject by how the job ended', async () => {
    const { results, shelf, pass, enqueued } = setUp();
    const [good, none, bad, off] = enqueued(4) as [string, string, string, string];
    shelf.end(good, { n: 1 });
    shelf.end(none, undefined);
    shelf.end(bad, undefined, 'failed');
    shelf.end(off, undefined, 'canceled');
    const all = Promise.allSettled(
      [good, none, bad, off, uuidv7()].map((id) => results.result({ id }, undefined)),
    );
    await pass(200);
    expect(await all).toMatchObject([
      { value: { n: 1 } },
      { value: undefined },
      {
        reason: {
          code: 'JOB_FAILED',
          cause: 'Error: no\n    at there',
          executions: 3,
          failures: 2,
          crashes: 1,
        },
      },
      { reason: { code: 'JOB_CANCELED', jobId: off, jobName: 'n' } },
      { reason: { code: 'JOB_NOT_FOUND' } },
    ]);
  });

  it('are refused when the job is one of another definition, however it ended', async () => {
    const { results, shelf, pass, enqueued } = setUp();
    const [good, off] = enqueued(2) as [string, string];
    shelf.end(good, { n: 1 });
    shelf.end(off, undefined, 'canceled');
    const about = { name: 'other', lane: 'default' };
    const all = Promise.allSettled([
      results.result({ id: good, about }, undefined),
      results.result({ id: off, about }, undefined),
      results.result({ id: good, about: { name: 'n', lane: 'x' } }, undefined),
      results.result({ id: good }, undefined),
    ]);
    await pass(200);
    const refused = { code: 'RESULT_OF_OTHER_JOB', jobName: 'n', expectedName: 'other' };
    expect(await all).toMatchObject([
      { reason: { ...refused, jobId: good, message: expect.stringContaining('handle(definition, id)') } },
      { reason: refused },
      { value: { n: 1 } },
      { value: { n: 1 } },
    ]);
  });

  it('says how a job failed in the right forms', () => {
    const facts = { jobId: 'i', jobName: 'n', error: 'Error: no' };
    expect(new JobFailedError({ ...facts, executions: 1, failures: 1, crashes: 0 }).message).toContain(
      'after 1 execution (1 failure, 0 crashes): ',
    );
    expect(new JobFailedError({ ...facts, executions: 3, failures: 2, crashes: 1 }).message).toContain(
      'after 3 executions (2 failures, 1 crash): ',
    );
  });

  it('give two who wait for one job an object each', async () => {
    const { results, shelf, pass, enqueued } = setUp();
    const [id] = enqueued() as [string];
    shelf.end(id, { list: [] });
    const both = Promise.all([results.result({ id }, undefined), results.result({ id }, undefined)]);
    await pass(50);
    const [one, other] = await both;
    expect(one).toEqual({ list: [] });
    expect(other).toEqual(one);
    expect(other).not.toBe(one);
    expect(shelf.questions).toHaveLength(1);
  });

  it('are asked for ever less often, up to once a second, until something changes', async () => {
    const { results, shelf, pass, enqueued } = setUp();
    const [id, other] = enqueued(2) as [string, string];
    void results.result({ id }, undefined);
    await pass(7_000);
    expect(shelf.questions.map(({ atMs }) => atMs)).toEqual(
      [10, 60, 160, 360, 760, 1_560, 2_560, 3_560, 4_560, 5_560, 6_560].map((at) => expect.closeTo(at, -2)),
    );
    const before = shelf.questions.length;
    void results.result({ id: other }, undefined);
    await pass(200);
    expect(shelf.questions.length - before).toBeGreaterThanOrEqual(3);
  });

  it('leave no timer when nobody waits', async () => {
    const { results, shelf, clock, events, pass, enqueued } = setUp();
    const [id] = enqueued() as [string];
    expect(clock.pending).toBe(0);
    const result = results.result({ id }, { timeout: '5s' });
    expect(events.heard('settled')).toBe(true);
    await pass(20);
    shelf.end(id, id);
    await pass(100);
    await result;
    expect(clock.pending).toBe(0);
    expect(events.heard('settled')).toBe(false);
    await pass(5_000, 1_000);
    expect(shelf.questions.length).toBeLessThan(4);
  });

  it('are asked for at once when the job ends in this process, or a signal says so', async () => {
    const { results, shelf, events, messages, pass, enqueued } = setUp();
    const [one, two, three] = enqueued(3) as [string, string, string];
    const told: unknown[] = [];
    for (const id of [one, two, three])
      void results.result({ id }, undefined).then((value) => told.push(value));
    await pass(3_000);
    const before = shelf.questions.length;
    shelf.end(one, one);
    events.emit('settled', settledEvent(one, 'retried'));
    await pass(10);
    expect(told).toEqual([]);
    events.emit('settled', settledEvent(one));
    await pass(10);
    expect(told).toEqual([one]);
    expect(shelf.questions.at(-1)?.ids).toEqual([one]);
    shelf.end(two, undefined, 'canceled');
    shelf.end(three, three);
    messages.signal({ kind: 'ended', jobId: three });
    await pass(60);
    expect(told).toEqual([one, three]);
    expect(shelf.questions.length - before).toBe(2);
  });

  it('time out while the job goes on, and are given up by their signal with its reason', async () => {
    const { results, clock, pass, enqueued } = setUp();
    const [id] = enqueued() as [string];
    const controller = new AbortController();
    const all = Promise.allSettled([
      results.result({ id }, { timeout: 300 }),
      results.result({ id }, { signal: controller.signal }),
      results.result({ id }, { signal: AbortSignal.abort(new Error('before')) }),
    ]);
    await pass(310);
    controller.abort(new Error('enough'));
    expect(await all).toMatchObject([
      { reason: { code: 'RESULT_TIMEOUT', jobId: id, timeoutMs: 300 } },
      { reason: { message: 'enough' } },
      { reason: { message: 'before' } },
    ]);
    expect(clock.pending).toBe(0);
  });

  it('given up by one signal, however many, have one listener on it', async () => {
    const { results, clock, pass, enqueued } = setUp();
    const { signal, ...controller } = listened();
    const all = enqueued(500).map((id) => results.result({ id }, { signal }));
    expect(controller.listeners()).toBe(1);
    await pass(100);
    controller.abort();
    expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(all.map(() => 'rejected'));
    expect(controller.listeners()).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it.each([
    [null],
    [5],
    [[]],
    [{ timeout: 0 }],
    [{ timeout: -1 }],
    [{ timeout: Number.NaN }],
    [{ timeout: 'soon' }],
    [{ timeout: null }],
    [{ signal: {} }],
    [{ signal: null }],
    [{ timeoutMs: 5 }],
  ])('refuse %j by name', async (options) => {
    const { results, clock } = setUp();
    await expect(results.result({ id: uuidv7() }, options)).rejects.toMatchObject({
      code: 'INVALID_RESULT_OPTION',
    });
    expect(clock.pending).toBe(0);
  });

  it('of a job in an open transaction wait for its end, and say so once when that takes long', async () => {
    const lines = captureLogs();
    const { results, shelf, pass } = setUp();
    const runner = { isTransactionActive: true, isReleased: false };
    const within = new TransactionEnd(runner);
    const [rolledBack, committed] = [uuidv7(), uuidv7()] as [string, string];
    const ends: unknown[] = [];
    const all = [rolledBack, committed, rolledBack].map((id) => results.result({ id, within }, undefined));
    for (const one of all)
      one.then(
        (value) => ends.push(value),
        (error: unknown) => ends.push(error),
      );
    // A handle that knows of no transaction is told.
    await Promise.all([
      expect(results.result({ id: committed }, undefined)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' }),
      pass(200),
    ]);
    await pass(6_000, 50);
    expect(ends).toEqual([]);
    expect(
      lines.filter(({ line }) => line.includes('while the transaction that enqueued it is open')),
    ).toHaveLength(1);
    shelf.end(committed, committed);
    runner.isTransactionActive = false;
    await pass(1_200);
    expect(ends).toHaveLength(3);
    expect(ends).toContain(committed);
    expect(ends.filter((end) => (end as { code?: string }).code === 'JOB_NOT_FOUND')).toHaveLength(2);
  });

  it('take a transaction that ends while the question is on its way for one that may have brought the job', async () => {
    const { results, shelf, clock, pass } = setUp();
    const transaction = { isOver: false };
    const id = uuidv7();
    const result = results.result({ id, within: transaction as unknown as TransactionEnd }, undefined);
    let open!: () => void;
    shelf.gate = new Promise((resolve) => (open = resolve));
    clock.advance(10);
    await settled();
    expect(shelf.questions).toHaveLength(1);
    transaction.isOver = true;
    shelf.live.add(id);
    open();
    shelf.gate = undefined;
    await pass(200);
    shelf.end(id, 'there');
    await pass(200);
    await expect(result).resolves.toBe('there');
  });

  it('do not tell of a job that is not there, who waits for its transaction, while another is told', async () => {
    const { results, shelf, clock, pass } = setUp();
    const transaction = { isOver: false };
    const id = uuidv7();
    const plain = results.result({ id }, undefined);
    const patient = results.result({ id, within: transaction as unknown as TransactionEnd }, undefined);
    await pass(10);
    let open!: () => void;
    shelf.gate = new Promise((resolve) => (open = resolve));
    clock.advance(50);
    await settled();
    // While the last question is on its way, the transaction commits.
    expect(shelf.questions.at(-1)?.everywhere).toBe(true);
    transaction.isOver = true;
    shelf.end(id, 'there');
    open();
    shelf.gate = undefined;
    await expect(plain).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    await pass(1_200);
    await expect(patient).resolves.toBe('there');
  });

  it('are looked for everywhere before anybody is told that there is no job', async () => {
    const { results, shelf, pass } = setUp();
    const ids = [uuidv7(), uuidv7()] as const;
    shelf.end(ids[0], 'old');
    shelf.hidden.add(ids[0]);
    const all = Promise.allSettled(ids.map((id) => results.result({ id }, undefined)));
    await pass(100);
    expect(await all).toMatchObject([{ value: 'old' }, { reason: { code: 'JOB_NOT_FOUND' } }]);
    expect(shelf.questions.map(({ everywhere }) => everywhere)).toEqual([false, true]);
  });

  it('wait on while the database is away, with a line a second at most', async () => {
    const lines = captureLogs();
    const { results, shelf, pass, enqueued } = setUp();
    const [id] = enqueued() as [string];
    const result = results.result({ id }, undefined);
    shelf.down = true;
    await pass(10_000, 50);
    expect(lines.filter(({ line }) => line.includes('away')).length).toBeGreaterThan(0);
    expect(lines.filter(({ line }) => line.includes('away')).length).toBeLessThanOrEqual(10);
    expect(mostPerSecond(shelf.questions.map(({ atMs }) => atMs))).toBeLessThanOrEqual(20);
    shelf.end(id, id);
    shelf.down = false;
    await pass(4_000, 50);
    await expect(result).resolves.toBe(id);
  });

  it('are given up by name when the application closes, whoever looks at them', async () => {
    const { results, clock, pass, enqueued } = setUp();
    const [id, other] = enqueued(2) as [string, string];
    const result = results.result({ id }, { timeout: '1h' });
    void results.result({ id: other }, undefined);
    await pass(100);
    await results.close();
    await expect(result).rejects.toMatchObject({ code: 'RESULT_ABANDONED', jobId: id });
    await expect(results.result({ id }, undefined)).rejects.toMatchObject({ code: 'RESULT_ABANDONED' });
    expect(clock.pending).toBe(0);
    await settled();
  });

  describe('ten thousand at once', () => {
    it('cost 20 statements a second at most, none of more than 5 000 ids, when they end here', async () => {
      const { results, shelf, events, pass, enqueued } = setUp();
      const ids = enqueued(10_000);
      const all = Promise.all(ids.map((id) => results.result({ id }, undefined)));
      for (let at = 0; at < ids.length; at += 100) {
        for (const id of ids.slice(at, at + 100)) {
          shelf.end(id, id);
          events.emit('settled', settledEvent(id));
        }
        await pass(20);
      }
      await pass(500);
      expect(await all).toEqual(ids);
      expect(mostPerSecond(shelf.questions.map(({ atMs }) => atMs))).toBeLessThanOrEqual(20);
      expect(Math.max(...shelf.questions.map((question) => question.ids.length))).toBeLessThanOrEqual(5_000);
      const asked = shelf.questions.reduce((sum, question) => sum + question.ids.length, 0);
      expect(asked).toBeLessThan(80_000);
    });

    it('cost no more when they end elsewhere', async () => {
      const { results, shelf, pass, enqueued } = setUp();
      const ids = enqueued(10_000);
      const all = Promise.all(ids.map((id) => results.result({ id }, undefined)));
      for (let at = 0; at < ids.length; at += 500) {
        for (const id of ids.slice(at, at + 500)) shelf.end(id, id);
        await pass(100);
      }
      await pass(1_200);
      expect(await all).toEqual(ids);
      expect(mostPerSecond(shelf.questions.map(({ atMs }) => atMs))).toBeLessThanOrEqual(20);
    });
  });

  it('tell each who waits once and rightly, at 20 statements a second, in any order of events', async () => {
    type Step =
      | { kind: 'wait'; job: number; timeout: number | undefined; open: boolean }
      | { kind: 'end' | 'cancel' | 'commit' | 'tell'; job: number }
      | { kind: 'pass'; ms: number }
      | { kind: 'down' | 'up' | 'over' };
    const job = fc.nat(5);
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.record({
        kind: fc.constant('wait' as const),
        job,
        timeout: fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined }),
        open: fc.boolean(),
      }),
      fc.record({
        kind: fc.constantFrom('end' as const, 'cancel' as const, 'commit' as const, 'tell' as const),
        job,
      }),
      fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ kind: fc.constantFrom('down' as const, 'up' as const, 'over' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        captureLogs();
        const { results, shelf, events, clock, pass } = setUp();
        const ids = Array.from({ length: 6 }, () => uuidv7());
        const transaction = { isOver: false };
        const within = transaction as unknown as TransactionEnd;
        const waits: { id: string; ends: unknown[]; open: boolean }[] = [];
        for (const one of steps) {
          const id = 'job' in one ? ids[one.job]! : '';
          if (one.kind === 'wait') {
            const open = one.open && !transaction.isOver;
            const wait = { id, ends: [] as unknown[], open };
            waits.push(wait);
            const options = one.timeout === undefined ? {} : { timeout: one.timeout };
            results.result({ id, within: open ? within : undefined }, options).then(
              (value) => wait.ends.push(value),
              (error: unknown) => wait.ends.push((error as { code?: string }).code),
            );
          } else if (one.kind === 'commit' && !transaction.isOver && !shelf.ended.has(id)) shelf.live.add(id);
          else if (one.kind === 'end' && shelf.live.has(id)) shelf.end(id, id);
          else if (one.kind === 'cancel' && shelf.live.has(id)) shelf.end(id, undefined, 'canceled');
          else if (one.kind === 'tell') events.emit('settled', settledEvent(id));
          else if (one.kind === 'pass') await pass(one.ms);
          else if (one.kind === 'down') shelf.down = true;
          else if (one.kind === 'up') shelf.down = false;
          else if (one.kind === 'over') transaction.isOver = true;
        }
        shelf.down = false;
        transaction.isOver = true;
        for (const id of ids) if (shelf.live.has(id)) shelf.end(id, id);
        await pass(6_000, 50);
        for (const { id, ends, open } of waits) {
          const end = shelf.ended.get(id);
          const right = end ? (end.status === 'canceled' ? 'JOB_CANCELED' : id) : 'JOB_NOT_FOUND';
          expect(ends).toHaveLength(1);
          // Who knows of the open transaction is never told of a job that it brings that there is none.
          expect([right, 'RESULT_TIMEOUT', ...(open ? [] : ['JOB_NOT_FOUND'])]).toContain(ends[0]);
        }
        expect(mostPerSecond(shelf.questions.map(({ atMs }) => atMs))).toBeLessThanOrEqual(20);
        expect(clock.pending).toBe(0);
      }),
      { numRuns: 60 },
    );
  }, 60_000);
});

afterEach(() => {
  captureLogs();
});
