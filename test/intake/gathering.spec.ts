import { beforeEach, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Backlog } from '../../lib/intake/backlog.js';
import { Gathering } from '../../lib/intake/gathering.js';
import { InsertRetry } from '../../lib/intake/insert-retry.js';
import { type NewJob } from '../../lib/store/job-store.js';
import { fault, HeldStore, newJob } from './support.js';

describe('Gathering', () => {
  let store: HeldStore;
  let committed: NewJob[][];
  let gathering: Gathering;

  beforeEach(() => {
    store = new HeldStore();
    committed = [];
    gathering = new Gathering(new InsertRetry(store), (jobs) => committed.push([...jobs]));
  });

  const add = (
    count: number,
    overrides?: Partial<NewJob>,
  ): { jobs: NewJob[]; answers: Promise<PromiseSettledResult<unknown>[]> } => {
    const jobs = Array.from({ length: count }, () => newJob(overrides));
    return { jobs, answers: Promise.allSettled(jobs.map((job) => gathering.add([job]))) };
  };

  it('saves what is added at the same moment by one insert, in call order', async () => {
    const { jobs, answers } = add(1_000);
    const call = await store.call(0);
    expect(call.jobs).toEqual(jobs);
    expect(committed).toEqual([]);
    call.answer();
    expect(await answers).toEqual(
      jobs.map(({ id }) => ({ status: 'fulfilled', value: [{ outcome: 'created', id }] })),
    );
    expect(store.calls).toHaveLength(1);
    expect(committed).toEqual([jobs]);
  });

  it('lets what arrives while its inserts are in flight go with the next', async () => {
    const first = add(1);
    const one = await store.call(0);
    const second = add(1);
    const two = await store.call(1);
    const third = add(30);
    await new Promise(setImmediate);
    expect(store.calls).toHaveLength(2);
    one.answer();
    const three = await store.call(2);
    expect(three.jobs).toEqual(third.jobs);
    two.answer();
    three.answer();
    await Promise.all([first.answers, second.answers, third.answers]);
  });

  it('cuts groups at 1 000 jobs and at 1 MB', async () => {
    store.judge = () => undefined;
    await add(2_500).answers;
    expect(store.calls.map(({ jobs }) => jobs.length)).toEqual([1_000, 1_000, 500]);
    store.calls.length = 0;
    await add(5, { payload: JSON.stringify('x'.repeat(400_000)) }).answers;
    expect(store.calls.map(({ jobs }) => jobs.length)).toEqual([2, 2, 1]);
  });

  it('gives each caller of a group with bad rows its own answer', async () => {
    const bad = new Set([3, 17]);
    store.judge = (jobs) =>
      jobs.some(({ name }) => name === 'bad') ? { error: fault('bad_row') } : undefined;
    const jobs = Array.from({ length: 20 }, (_, index) => newJob(bad.has(index) ? { name: 'bad' } : {}));
    const answers = await Promise.allSettled(jobs.map((job) => gathering.add([job])));
    expect(answers.map(({ status }) => status)).toEqual(
      jobs.map((_, index) => (bad.has(index) ? 'rejected' : 'fulfilled')),
    );
    expect(store.rows.size).toBe(18);
    expect(committed.flat()).toHaveLength(18);
  });

  it('finds out with few statements that every row fails, and finds a row that fails fatally', async () => {
    store.judge = () => ({ error: fault('fatal') });
    const answers = await add(500).answers;
    expect(answers.every(({ status }) => status === 'rejected')).toBe(true);
    expect(store.calls.length).toBeLessThan(5);

    store.judge = (jobs) => (jobs.some(({ name }) => name === 'bad') ? { error: fault('fatal') } : undefined);
    const jobs = [newJob({ name: 'bad' }), newJob(), newJob()];
    const mixed = await Promise.allSettled(jobs.map((job) => gathering.add([job])));
    expect(mixed.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });

  it('does not mix children of one claim with other jobs: a fence refuses them together', async () => {
    const children = add(2, { parent: { id: newJob().id, claimSeq: '1' } });
    const others = add(2);
    (await store.call(0)).answer();
    (await store.call(1)).answer();
    await Promise.all([children.answers, others.answers]);
    expect(store.calls.map(({ jobs }) => jobs)).toEqual([children.jobs, others.jobs]);
  });

  it('inserts in the async context of no caller', async () => {
    const tenant = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    store.judge = () => void seen.push(tenant.getStore());
    const answers = ['a', 'b', 'c'].map((name) =>
      tenant.run(name, async () => {
        await gathering.add([newJob()]);
        return tenant.getStore();
      }),
    );
    expect(await Promise.all(answers)).toEqual(['a', 'b', 'c']);
    await tenant.run('d', () => gathering.add([newJob()]));
    expect(seen).toEqual([undefined, undefined]);
  });

  it('refuses more than it may hold', async () => {
    gathering = new Gathering(new InsertRetry(store), () => undefined, {
      waiting: new Backlog({ jobs: 10, bytes: 1_000 }),
    });
    const { answers } = add(11);
    await expect(gathering.add([newJob()])).rejects.toMatchObject({ code: 'INTAKE_FULL', retryable: true });
    (await store.call(0)).answer();
    expect((await answers).filter(({ status }) => status === 'rejected')).toHaveLength(1);
    store.judge = () => undefined;
    await expect(gathering.add([newJob()])).resolves.toMatchObject([{ outcome: 'created' }]);
  });
});
