import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { InsertRetry } from '../../lib/intake/insert-retry.js';
import { type Buffered, SaveBuffer } from '../../lib/intake/save-buffer.js';
import { UnsavedReport } from '../../lib/intake/unsaved-report.js';
import { type EngineEventMap, EngineEvents } from '../../lib/observability/engine-events.js';
import { type NewJob } from '../../lib/store/job-store.js';
import { fault, HeldStore, newJob } from './support.js';

describe('SaveBuffer', () => {
  let store: HeldStore;
  let lines: string[];
  let events: EngineEvents;
  let report: UnsavedReport;
  let buffer: SaveBuffer;
  let unhandled: unknown[];
  const hear = (reason: unknown): void => void unhandled.push(reason);

  const make = (limits = { jobs: 100, bytes: 10_000 }): SaveBuffer =>
    new SaveBuffer({ inserts: new InsertRetry(store), committed: () => undefined, limits, report });
  const several = (count: number, overrides: Partial<NewJob> = {}): NewJob[] =>
    Array.from({ length: count }, () => newJob(overrides));
  const addAll = (jobs: readonly NewJob[]): Promise<Buffered[]> =>
    Promise.all(jobs.map((job) => buffer.add([job])));

  beforeEach(() => {
    store = new HeldStore();
    lines = [];
    const say = (line: string): void => void lines.push(line);
    events = new EngineEvents();
    report = new UnsavedReport({ log: say, warn: say, error: say }, events);
    buffer = make();
    unhandled = [];
    process.on('unhandledRejection', hear);
  });
  afterEach(() => {
    report.tell();
    process.off('unhandledRejection', hear);
  });

  it('takes jobs before any of them is saved, and saves them by one insert in the order of the calls', async () => {
    const jobs = several(50);
    const taken = await addAll(jobs);
    expect(buffer.jobs).toBe(50);
    const call = await store.call(0);
    expect(call.jobs).toEqual(jobs);
    call.answer();
    await Promise.all(taken.map(({ saved }) => saved));
    expect(buffer.jobs).toBe(0);
    expect(store.calls).toHaveLength(1);
  });

  it('has one insert under way: what comes later is committed later', async () => {
    const [first] = await addAll(several(1));
    const one = await store.call(0);
    const later = several(2);
    await addAll(later);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(store.calls).toHaveLength(1);
    one.answer();
    await first!.saved;
    const two = await store.call(1);
    expect(two.jobs).toEqual(later);
    two.answer();
    await buffer.flush();
    expect([...store.rows.keys()].slice(1)).toEqual(later.map(({ id }) => id));
  });

  it('lets calls wait for room, in order, and refuses them when as many wait as fit', async () => {
    buffer = make({ jobs: 3, bytes: 10_000 });
    const jobs = several(8);
    const done: number[] = [];
    const calls = jobs.map((job, index) => buffer.add([job]).then(() => void done.push(index)));
    const refused = await Promise.allSettled(calls.slice(6));
    expect(refused).toMatchObject([
      { reason: { code: 'INTAKE_FULL', retryable: true } },
      { reason: { code: 'INTAKE_FULL' } },
    ]);
    expect(done).toEqual([0, 1, 2]);
    expect(buffer.jobs).toBe(6);
    (await store.call(0)).answer();
    await Promise.all(calls.slice(0, 6));
    expect(done).toEqual([0, 1, 2, 3, 4, 5]);
    (await store.call(1)).answer();
    await buffer.flush();
    expect([...store.rows.keys()]).toEqual(jobs.slice(0, 6).map(({ id }) => id));
    expect(buffer.jobs).toBe(0);
  });

  it('counts bytes of payload and metadata until they are saved, not until they are sent', async () => {
    buffer = make({ jobs: 100, bytes: 1_000 });
    const big = several(3, { payload: 'x'.repeat(300), metadata: 'y'.repeat(100) });
    const calls = big.map((job) => buffer.add([job]));
    await Promise.all(calls.slice(0, 2));
    const call = await store.call(0);
    let entered = false;
    void calls[2]!.then(() => (entered = true));
    await new Promise(setImmediate);
    expect(entered).toBe(false);
    call.answer();
    await calls[2];
    (await store.call(1)).answer();
    await buffer.flush();
  });

  it('takes one call that is larger than the buffer when nothing else is in it', async () => {
    buffer = make({ jobs: 2, bytes: 1_000 });
    store.judge = () => undefined;
    const many = await buffer.add(several(5));
    await many.saved;
    expect(store.calls.map(({ jobs }) => jobs.length)).toEqual([5]);
  });

  it('saves the jobs of one call together or not at all, whatever its neighbours are', async () => {
    store.judge = (jobs) =>
      jobs.some(({ name }) => name === 'bad') ? { error: fault('bad_row') } : undefined;
    const mixed = [...several(3), newJob({ name: 'bad' }), ...several(3)];
    const [before, refused, after] = await Promise.all([
      buffer.add(several(2)),
      buffer.add(mixed),
      buffer.add(several(2)),
    ]);
    await expect(refused.saved).rejects.toMatchObject({ kind: 'bad_row' });
    await Promise.all([before.saved, after.saved]);
    expect(store.rows.size).toBe(4);
  });

  it('outlasts an outage longer than a plain enqueue does, and doubles nothing', async () => {
    let attempts = 0;
    store.judge = () => {
      attempts += 1;
      // The first is committed, and its reply is lost; then nobody answers for a while.
      if (attempts === 1) return { error: fault('unknown'), committed: true };
      return undefined;
    };
    let away = 6;
    const get = store.get.bind(store);
    store.get = (id) => (away-- > 0 ? Promise.reject(fault('unavailable')) : get(id));
    const jobs = several(3);
    const taken = await addAll(jobs);
    await Promise.all(taken.map(({ saved }) => saved));
    expect(attempts).toBe(1);
    expect(store.rows.size).toBe(3);
    expect(lines).toEqual([
      expect.stringMatching(/^3 buffered jobs cannot be saved now, and are kept and tried again: /),
      'buffered jobs are saved again',
    ]);
  });

  it('refuses all that it holds when it is closed, and all that comes later', async () => {
    buffer = make({ jobs: 2, bytes: 10_000 });
    store.judge = () => ({ error: fault('unavailable') });
    const [taken] = await addAll(several(1));
    const many = buffer.add(several(2));
    await store.call(0);
    buffer.close();
    const abandoned = { code: 'ENQUEUE_ABANDONED' };
    await expect(taken!.saved).rejects.toMatchObject(abandoned);
    await expect(many).rejects.toMatchObject(abandoned);
    await expect(buffer.add(several(1))).rejects.toMatchObject(abandoned);
    await buffer.flush();
    expect(buffer.jobs).toBe(0);
    expect(store.rows.size).toBe(0);
  });

  it('sends nothing more of a group that is being divided when it is closed', async () => {
    const taken = await addAll(several(4));
    (await store.call(0)).answer({ error: fault('bad_row') });
    await store.call(1);
    buffer.close();
    const ends = await Promise.allSettled(taken.map(({ saved }) => saved));
    expect(ends.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    expect(store.calls).toHaveLength(2);
  });

  it('says which jobs were not saved: by the promise, an event and one line; nobody has to look', async () => {
    const told: EngineEventMap['unsaved'][] = [];
    events.on('unsaved', (event) => told.push(event));
    store.judge = () => ({ error: fault('fatal') });
    const jobs = [...several(3), ...several(2, { name: 'other' })];
    await addAll(jobs);
    await buffer.flush();
    report.tell();
    await new Promise(setImmediate);
    expect(told.map(({ jobId }) => jobId).sort()).toEqual(jobs.map(({ id }) => id).sort());
    expect(lines).toEqual([
      '5 buffered jobs could not be saved: test.job (3), other (2); of the last one: fatal',
    ]);
    // Soon after: not another line, until it is time or somebody asks.
    await addAll(several(1));
    await buffer.flush();
    expect(lines).toHaveLength(1);
    report.tell();
    expect(lines).toHaveLength(2);
    expect(unhandled).toEqual([]);
  });

  it('gives up when it is told to: what is not there is named so, and what may be there is in doubt', async () => {
    buffer = make({ jobs: 2, bytes: 10_000 });
    const inFlight = several(1);
    const [first] = await addAll(inFlight);
    await store.call(0);
    const [queued] = await addAll(several(1));
    const waiting = buffer.add(several(1));
    buffer.abandon();
    await expect(waiting).rejects.toMatchObject({ code: 'ENQUEUE_ABANDONED' });
    await expect(queued!.saved).rejects.toMatchObject({ code: 'ENQUEUE_ABANDONED' });
    await expect(first!.saved).rejects.toMatchObject({
      code: 'ENQUEUE_IN_DOUBT',
      ids: inFlight.map(({ id }) => id),
    });
    expect(buffer.jobs).toBe(0);
    report.tell();
    expect(lines).toEqual([expect.stringMatching(/^3 buffered jobs could not be saved: test\.job \(3\); /)]);
    // It goes on.
    store.judge = () => undefined;
    const [next] = await addAll(several(1));
    await next!.saved;
    expect(unhandled).toEqual([]);
  });

  it('what is tried again and certainly not there is not in doubt when it is given up', async () => {
    store.judge = () => ({ error: fault('unavailable') });
    const [taken] = await addAll(several(1));
    while (store.calls.length < 2) await store.call(store.calls.length);
    buffer.abandon();
    await expect(taken!.saved).rejects.toMatchObject({
      code: 'ENQUEUE_ABANDONED',
      cause: { kind: 'unavailable' },
    });
  });
});
