import { beforeEach, describe, expect, it } from '@jest/globals';
import { InsertRetry } from '../../lib/intake/insert-retry.js';
import { type Inserted } from '../../lib/store/job-store.js';
import { fault, HeldStore, newJob } from './support.js';

describe('InsertRetry', () => {
  let store: HeldStore;
  let inserts: InsertRetry;

  beforeEach(() => {
    store = new HeldStore();
    inserts = new InsertRetry(store);
  });

  it.each(['rolled_back', 'unavailable'] as const)('sends again what was %s', async (kind) => {
    let failures = 2;
    store.judge = () => (failures-- > 0 ? { error: fault(kind) } : undefined);
    const job = newJob();
    await expect(inserts.insert([job])).resolves.toEqual([{ outcome: 'created', id: job.id }]);
    expect(store.calls).toHaveLength(3);
  });

  it('gives up after a few attempts, with the last error', async () => {
    store.judge = () => ({ error: fault('unavailable') });
    await expect(inserts.insert([newJob()])).rejects.toMatchObject({ kind: 'unavailable' });
    expect(store.calls.length).toBeGreaterThan(2);
    expect(store.calls.length).toBeLessThan(10);
  });

  it.each(['bad_row', 'fatal'] as const)('does not send again what is %s', async (kind) => {
    store.judge = () => ({ error: fault(kind) });
    await expect(inserts.insert([newJob()])).rejects.toMatchObject({ kind });
    expect(store.calls).toHaveLength(1);
  });

  it('finds by id what was committed although the reply was lost, and doubles nothing', async () => {
    store.judge = () => (store.calls.length === 1 ? { error: fault('unknown'), committed: true } : undefined);
    const jobs = [newJob(), newJob()];
    const inserted = await inserts.insert(jobs);
    expect(inserted).toEqual(jobs.map(({ id }) => ({ outcome: 'created', id })));
    expect(store.calls).toHaveLength(1);
  });

  it('inserts again what was not committed when the reply was lost', async () => {
    store.judge = () =>
      store.calls.length === 1 ? { error: fault('unknown'), committed: false } : undefined;
    const jobs = [newJob(), newJob()];
    await expect(inserts.insert(jobs)).resolves.toEqual(jobs.map(({ id }) => ({ outcome: 'created', id })));
    expect(store.calls).toHaveLength(2);
    expect(store.rows.size).toBe(2);
  });

  it('looks again when its own id turns out to be there already', async () => {
    const job = newJob();
    const racing = new HeldStore();
    racing.judge = () => {
      const lost = racing.calls.length === 1;
      // The lost attempt commits between the look and the second insert, which the primary key then refuses.
      if (!lost) racing.rows.set(job.id, job);
      return { error: fault(lost ? 'unknown' : 'bad_row') };
    };
    await expect(new InsertRetry(racing).insert([job])).resolves.toEqual([
      { outcome: 'created', id: job.id },
    ]);
    expect(racing.calls).toHaveLength(2);
  });

  it.each<(id: string) => Inserted>([
    (id) => ({ outcome: 'existing', id }),
    (id) => ({ outcome: 'held', holder: id, running: false }),
  ])('knows its own key again when the lost attempt commits after the look', async (answer) => {
    const job = newJob({ businessKey: 'k' });
    let calls = 0;
    const racing = new InsertRetry({
      get: () => Promise.resolve(undefined),
      insert: () => (calls++ === 0 ? Promise.reject(fault('unknown')) : Promise.resolve([answer(job.id)])),
    });
    await expect(racing.insert([job])).resolves.toEqual([{ outcome: 'created', id: job.id }]);
  });

  it.each([true, false])('asks for one job of many, which tells of all: committed %s', async (committed) => {
    store.judge = () => (store.calls.length === 1 ? { error: fault('unknown'), committed } : undefined);
    const jobs = Array.from({ length: 5_000 }, (_, n) => newJob(n % 2 ? { businessKey: `k${n}` } : {}));
    const asked: string[] = [];
    const get = store.get.bind(store);
    store.get = (id) => (asked.push(id), get(id));
    await expect(inserts.insert(jobs)).resolves.toEqual(jobs.map(({ id }) => ({ outcome: 'created', id })));
    expect(asked).toHaveLength(1);
    expect(store.calls).toHaveLength(committed ? 1 : 2);
    expect(store.rows.size).toBe(5_000);
  });

  it('asks for none of many whose idempotency keys know them again', async () => {
    const jobs = Array.from({ length: 500 }, (_, n) =>
      newJob({ idempotencyKey: { key: `i${n}`, expiresInMs: 60_000 } }),
    );
    let calls = 0;
    const lost = new InsertRetry({
      get: () => Promise.reject(new Error('asked')),
      insert: (given) =>
        calls++ === 0
          ? Promise.reject(fault('unknown'))
          : Promise.resolve(given.map(({ id }): Inserted => ({ outcome: 'existing', id }))),
    });
    await expect(lost.insert(jobs)).resolves.toEqual(jobs.map(({ id }) => ({ outcome: 'created', id })));
  });

  it('looks each of them up once it has met its own ids, although the last has left no trace', async () => {
    const jobs = Array.from({ length: 10 }, () => newJob());
    store.judge = (given) => {
      if (store.calls.length === 1) return { error: fault('unknown'), committed: true };
      return given.some(({ id }) => store.rows.has(id)) ? { error: fault('bad_row') } : undefined;
    };
    const inserting = inserts.insert(jobs);
    store.rows.delete(jobs[9]!.id);
    await expect(inserting).resolves.toEqual(jobs.map(({ id }) => ({ outcome: 'created', id })));
    expect(store.calls.map(({ jobs: sent }) => sent.length)).toEqual([10, 10, 1]);
  });

  it('tells that nobody knows when no reply comes at all', async () => {
    const silent = new InsertRetry(store, 20);
    await expect(silent.insert([newJob()])).rejects.toMatchObject({ kind: 'unknown' });
  });

  it('does not say that nothing was saved when an earlier attempt may have been', async () => {
    store.judge = () => ({ error: fault('unknown'), committed: true });
    let asked = 0;
    store.get = () => {
      asked += 1;
      return Promise.reject(fault('unavailable'));
    };
    await expect(inserts.insert([newJob()])).rejects.toMatchObject({ kind: 'unknown' });
    expect(asked).toBeGreaterThan(1);
  });

  it('with persistence goes on until it is told to stop, and then says what is certain', async () => {
    store.judge = () => ({ error: fault('unavailable') });
    const stop = new AbortController();
    const failures: unknown[] = [];
    const failed = (error: unknown): void => {
      failures.push(error);
      // More often than without.
      if (failures.length === 6) stop.abort();
    };
    await expect(inserts.insert([newJob()], { signal: stop.signal, failed })).rejects.toMatchObject({
      kind: 'unavailable',
    });
    expect(store.calls).toHaveLength(6);
  });
});
