import { uuidv7 } from 'uuidv7';
import {
  type ControlAction,
  type ControlledJob,
  type ControlPlace,
  type JobQuery,
  type JobStore,
  type NewJob,
} from '../../store/job-store.js';
import { type ContractBench, type ContractNode } from './job-store-subject.js';
import { noticesOf } from './notices-of.js';

const HOUR_MS = 3_600_000;

/** Finding jobs, and acting on all that a query means. */
export function describeControl(bench: ContractBench): void {
  const { it } = bench.runner;

  it('finds live, finished and failed jobs in one order, page by page', async () => {
    const node = await bench.node();
    const jobs = await inEveryStatus(node);
    const newestFirst = Object.values(jobs).sort().reverse();
    const query = { lanes: [node.bucket.lane] };
    const seen: string[] = [];
    for (;;) {
      const before = seen.at(-1);
      const page = await bench.store.find(query, { limit: 2, ...(before === undefined ? {} : { before }) });
      bench.expect(page.jobs.length <= 2).toBe(true);
      seen.push(...page.jobs.map(({ id }) => id));
      if (!page.more) break;
    }
    bench.expect(seen).toEqual(newestFirst);
    bench.expect(await bench.store.count(query)).toBe(6);
  });

  it('finds the same of a job as a look at its id', async () => {
    const node = await bench.node();
    for (const id of Object.values(await inEveryStatus(node))) {
      const { jobs, more } = await bench.store.find({ ids: [id.toUpperCase()] }, { limit: 1 });
      bench.expect(more).toBe(false);
      bench.expect(jobs).toEqual([await bench.store.get(id)]);
    }
  });

  it('filters by each condition, and by all of them together', async () => {
    const node = await bench.node();
    const lane = node.bucket.lane;
    const parent = await node.claimOne();
    const jobs = await inEveryStatus(node);
    const businessKey = uuidv7();
    const special = await node.inserted({
      name: 'contract.special',
      priority: 4,
      tags: ['a', 'b'],
      businessKey,
      delayMs: HOUR_MS,
      parent: { id: parent.id, claimSeq: parent.claimSeq },
    });
    const [made] = (await bench.store.find({ ids: [special.id] }, { limit: 1 })).jobs;
    if (!made) throw new Error('The job that was just inserted could not be found');
    const conditions: JobQuery = {
      ids: [special.id, parent.id, 'no id at all'],
      statuses: ['pending', 'failed'],
      names: ['contract.special'],
      priorities: [4, 3],
      tags: ['b', 'a'],
      businessKeys: [businessKey, 'another'],
      parentId: parent.id,
      created: { from: made.createdAt, until: new Date(made.createdAt.getTime() + 1) },
      scheduled: { from: made.scheduledAt, until: new Date(made.scheduledAt.getTime() + 1) },
    };
    const found = async (query: JobQuery): Promise<readonly string[]> =>
      (await bench.store.find({ lanes: [lane], ...query }, { limit: 100 })).jobs.map(({ id }) => id);
    for (const [name, value] of Object.entries(conditions)) {
      bench.expect((await found({ [name]: value as unknown })).includes(special.id)).toBe(true);
    }
    bench.expect(await found(conditions)).toEqual([special.id]);
    bench.expect(await bench.store.count({ lanes: [lane], ...conditions })).toBe(1);
    bench.expect(await found({ ...conditions, tags: ['a', 'c'] })).toEqual([]);
    bench.expect(await found({ ...conditions, parentId: special.id })).toEqual([]);
    bench.expect(await found({ ...conditions, parentId: 'no id at all' })).toEqual([]);
    bench.expect(await found({ ...conditions, created: { until: made.createdAt } })).toEqual([]);
    bench.expect(await found({ ...conditions, names: [] })).toEqual([]);
    bench.expect(await found({ statuses: [] })).toEqual([]);
    for (const [status, id] of Object.entries(jobs)) {
      const query = { statuses: [status] } as JobQuery;
      bench.expect((await found(query)).includes(id)).toBe(true);
      bench.expect((await bench.store.count({ lanes: [lane], ...query })) > 0).toBe(true);
    }
  });

  it('finds what ended in a time, among which no live job is', async () => {
    const node = await bench.node();
    const query = { lanes: [node.bucket.lane] };
    const jobs = await inEveryStatus(node);
    const now = (await bench.store.now()).getTime();
    const ended = [jobs.succeeded, jobs.failed, jobs.canceled].sort().reverse();
    const around = { from: new Date(now - HOUR_MS), until: new Date(now + HOUR_MS) };
    bench
      .expect((await bench.store.find({ ...query, ended: around }, { limit: 10 })).jobs.map(({ id }) => id))
      .toEqual(ended);
    bench.expect(await bench.store.count({ ...query, ended: around })).toBe(3);
    bench.expect(await bench.store.count({ ...query, ended: { until: around.from } })).toBe(0);
    bench.expect(await bench.store.count({ ...query, created: around })).toBe(6);
  });

  it('acts on the statuses that an action is for, and says beforehand on how many', async () => {
    const kinds = {
      cancel: ['pending', 'running', 'paused'],
      pause: ['pending', 'running'],
      resume: ['paused'],
      redrive: ['failed'],
      reschedule: ['paused', 'pending'],
    } as const;
    for (const kind of ['cancel', 'pause', 'resume', 'redrive', 'reschedule'] as const) {
      const node = await bench.node();
      const jobs = await inEveryStatus(node);
      const query = { lanes: [node.bucket.lane] };
      const expected = kinds[kind].map((status) => jobs[status]);
      bench.expect(await bench.store.countControllable(kind, query)).toBe(expected.length);
      const { matched, changed } = await all(bench.store, actionOf(kind), query);
      bench.expect(matched).toBe(expected.length);
      bench.expect(changed.map(({ id }) => id).sort()).toEqual([...expected].sort());
      for (const job of changed) {
        bench.expect(job).toMatchObject({ name: 'contract.job', lane: node.bucket.lane, priority: 2 });
        bench.expect(job.claimSeq !== undefined).toBe(job.id === jobs.running);
      }
    }
  });

  it('cancels running jobs of a query: the fence rises, and the owner finds a notice', async () => {
    const node = await bench.node();
    const { id, claimSeq } = await node.claimOne({ tags: ['stop'] });
    const { changed } = await all(bench.store, { kind: 'cancel' }, { tags: ['stop'] });
    bench.expect(changed).toMatchObject([{ id, claimSeq }]);
    bench
      .expect(await noticesOf(bench.store, node.ref))
      .toEqual([{ jobId: id, claimSeq, reason: 'canceled' }]);
    bench.expect((await node.settle({ id, claimSeq }, { outcome: 'succeeded' })).lost).toEqual([id]);
    bench.expect(await bench.store.executions(id)).toMatchObject([{ outcome: 'canceled', claimSeq }]);
    bench.expect(await bench.store.get(id)).toMatchObject({ status: 'canceled' });
  });

  it('keeps paused jobs from every claim until they are resumed', async () => {
    const node = await bench.node();
    const { id } = await node.inserted();
    await all(bench.store, { kind: 'pause' }, { ids: [id] });
    bench.expect(await bench.store.get(id)).toMatchObject({ status: 'paused', pauseRequested: false });
    bench.expect(await node.exchange({ want: 10 })).toMatchObject({ claimed: [], nextDueInMs: undefined });
    const again = await all(bench.store, { kind: 'pause' }, { ids: [id] });
    bench.expect(again).toEqual({ matched: 0, changed: [] });
    await all(bench.store, { kind: 'resume' }, { ids: [id] });
    bench.expect((await node.claim()).map((job) => job.id)).toEqual([id]);
  });

  it('pauses a running job when its execution gives it back', async () => {
    const node = await bench.node();
    for (const outcome of ['retried', 'snoozed', 'released'] as const) {
      const job = await node.claimOne();
      await all(bench.store, { kind: 'pause' }, { ids: [job.id] });
      bench.expect(await bench.store.get(job.id)).toMatchObject({ status: 'running', pauseRequested: true });
      await node.settle(job, { outcome, ...(outcome === 'released' ? {} : { delayMs: 0 }) });
      bench.expect(await bench.store.get(job.id)).toMatchObject({ status: 'paused', pauseRequested: false });
    }
    const taken = await node.claimOne();
    await all(bench.store, { kind: 'pause' }, { ids: [taken.id] });
    await all(bench.store, { kind: 'resume' }, { ids: [taken.id] });
    await node.settle(taken, { outcome: 'snoozed', delayMs: 0 });
    bench.expect(await bench.store.get(taken.id)).toMatchObject({ status: 'pending' });
  });

  it('moves the due time of pending and paused jobs', async () => {
    const node = await bench.node();
    const query = { lanes: [node.bucket.lane] };
    const { id } = await node.inserted({ delayMs: HOUR_MS });
    await all(bench.store, { kind: 'reschedule', delayMs: 0 }, query);
    const [claimed] = await node.claim();
    bench.expect(claimed?.id).toBe(id);
    const paused = await node.inserted();
    await all(bench.store, { kind: 'pause' }, { ids: [paused.id] });
    const runAt = new Date('2040-01-01T00:00:00.000Z');
    const { changed } = await all(bench.store, { kind: 'reschedule', delayMs: 0, runAt }, query);
    bench.expect(changed.map((job) => job.id)).toEqual([paused.id]);
    bench.expect(await bench.store.get(paused.id)).toMatchObject({ status: 'paused', scheduledAt: runAt });
  });

  it('redrives what is free of its business key, one of each key', async () => {
    const node = await bench.node();
    const query = { lanes: [node.bucket.lane] };
    const [held, twice] = [uuidv7(), uuidv7()];
    const failed: string[] = [];
    for (const businessKey of [held, twice, twice, undefined]) {
      const job = await node.claimOne(businessKey === undefined ? {} : { businessKey });
      await node.settle(job, { outcome: 'failed', error: 'e' });
      failed.push(job.id);
    }
    await node.inserted({ businessKey: held });
    const { matched, changed } = await all(bench.store, { kind: 'redrive' }, query);
    bench.expect(matched).toBe(4);
    bench.expect(changed.map(({ id }) => id).sort()).toEqual([failed[1], failed[3]]);
    bench.expect(await bench.store.countControllable('redrive', query)).toBe(2);
    bench.expect(await bench.store.get(failed[3] ?? '')).toMatchObject({ status: 'pending', failures: 0 });
  });

  it('goes step by step through thousands, and leaves alone what came later', async () => {
    const node = await bench.node();
    const query = { lanes: [node.bucket.lane] };
    await bench.store.insert(Array.from({ length: 1_200 }, () => node.job()));
    const action: ControlAction = { kind: 'cancel' };
    const first = await bench.store.control(action, query);
    bench.expect(first.changed.length > 0 && first.changed.length < 1_200).toBe(true);
    const late = await node.inserted();
    const rest = await all(bench.store, action, query, first.next);
    bench.expect(first.changed.length + rest.changed.length).toBe(1_200);
    bench.expect(await bench.store.get(late.id)).toMatchObject({ status: 'pending' });
  });
}

const actionOf = (kind: ControlAction['kind']): ControlAction =>
  kind === 'reschedule' ? { kind, delayMs: HOUR_MS } : { kind };

/** All steps of an action. */
async function all(
  store: JobStore,
  action: ControlAction,
  query: JobQuery,
  from?: ControlPlace,
): Promise<{ matched: number; changed: ControlledJob[] }> {
  let matched = 0;
  const changed: ControlledJob[] = [];
  let place = from;
  do {
    const step = await store.control(action, query, place);
    matched += step.matched;
    changed.push(...step.changed);
    place = step.next;
  } while (place);
  return { matched, changed };
}

/** One job in each status there is. */
async function inEveryStatus(
  node: ContractNode,
): Promise<Record<'pending' | 'running' | 'paused' | 'succeeded' | 'failed' | 'canceled', string>> {
  const large: Partial<NewJob> = { payload: JSON.stringify({ text: 'x'.repeat(5_000) }), tags: ['t'] };
  const succeeded = await node.claimOne(large);
  await node.settle(succeeded, { outcome: 'succeeded', result: '{"ok":true}', progress: '1' });
  const failed = await node.claimOne({ maxRetries: 0 });
  await node.settle(failed, { outcome: 'failed', error: 'broken' });
  const canceled = await node.inserted();
  await node.store.cancel(canceled.id);
  const running = await node.claimOne({ metadata: '{"m":1}' });
  const paused = await node.inserted({ businessKey: uuidv7() });
  await all(node.store, { kind: 'pause' }, { ids: [paused.id] });
  const pending = await node.inserted(large);
  return {
    pending: pending.id,
    running: running.id,
    paused: paused.id,
    succeeded: succeeded.id,
    failed: failed.id,
    canceled: canceled.id,
  };
}
