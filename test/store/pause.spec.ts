import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { type BucketRef, type ClaimedJob, type NodeRef, type Settlement } from '../../lib/store/job-store.js';

/** A job that is to be paused while it runs, and what a paused one is to everybody who looks for work. */
let database: TestDatabase;
let store: PostgresJobStore;
let lanes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

interface Marked {
  readonly job: ClaimedJob;
  readonly bucket: BucketRef;
  readonly node: NodeRef;
}

/** A running job for which a pause was asked. */
async function marked(crashes = 0): Promise<Marked> {
  const lane = `marked-${String((lanes += 1))}`;
  const node = await registerTestNode(store, lane);
  const bucket = await store.openBucket(node, lane);
  const { id } = newJob();
  await store.insert([newJob({ id, lane })]);
  if (crashes > 0) await database.query('update ratchet.job set crashes = $1 where id = $2', [crashes, id]);
  const [job] = (await store.exchange(turn(bucket))).claimed;
  const { changed } = await store.control({ kind: 'pause' }, { ids: [id] });
  expect(changed).toEqual([{ id, name: 'test.job', lane, priority: 2, claimSeq: '1' }]);
  expect(await store.get(id)).toMatchObject({ status: 'running', pauseRequested: true, claimSeq: '1' });
  return { job: job!, bucket, node };
}

describe('a pause that was asked for while the job ran', () => {
  it.each([
    { outcome: 'retried', error: 'e', delayMs: 0 },
    { outcome: 'snoozed', delayMs: 0 },
    { outcome: 'released' },
  ] as const)('counts when the job is $outcome', async (settlement) => {
    const { job, bucket } = await marked();
    const settle: Settlement[] = [{ id: job.id, claimSeq: job.claimSeq, ...settlement }];
    const answer = await store.exchange(turn(bucket, { settle }));
    expect(answer).toMatchObject({ recorded: [job.id], claimed: [], nextDueInMs: undefined });
    expect(await store.get(job.id)).toMatchObject({ status: 'paused', pauseRequested: false });
    await store.control({ kind: 'resume' }, { ids: [job.id] });
    expect((await store.exchange(turn(bucket))).claimed).toMatchObject([{ id: job.id, executions: 2 }]);
    // The mark was for one execution.
    expect(await store.get(job.id)).toMatchObject({ pauseRequested: false });
  });

  it('counts when its node is gone', async () => {
    const { job, node } = await marked();
    expect(await store.rescueOwn(await registerTestNode(store, node.id), 3)).toMatchObject({ recovered: 1 });
    expect(await store.get(job.id)).toMatchObject({ status: 'paused', pauseRequested: false, crashes: 1 });
  });

  it('counts when its bucket is gone', async () => {
    const { job, bucket } = await marked();
    await database.query('delete from ratchet.bucket where id = $1', [bucket.id]);
    expect(await store.rescueOrphans(3)).toMatchObject({ recovered: 1 });
    expect(await store.get(job.id)).toMatchObject({ status: 'paused', pauseRequested: false, crashes: 1 });
  });

  it.each(['succeeded', 'failed'] as const)('is gone with a job that has %s', async (outcome) => {
    const { job, bucket } = await marked();
    const settle: Settlement[] = [
      { id: job.id, claimSeq: job.claimSeq, outcome, ...(outcome === 'failed' ? { error: 'e' } : {}) },
    ];
    await store.exchange(turn(bucket, { settle, want: 0 }));
    expect(await store.get(job.id)).toMatchObject({ status: outcome, pauseRequested: false });
    if (outcome === 'succeeded') return;
    await store.redrive(job.id);
    expect(await store.get(job.id)).toMatchObject({ status: 'pending', pauseRequested: false });
  });

  it('is gone with a job that is canceled, or over its crash budget', async () => {
    const canceled = await marked();
    await store.cancel(canceled.job.id);
    expect(await store.get(canceled.job.id)).toMatchObject({ status: 'canceled', pauseRequested: false });
    const { job, node } = await marked(3);
    expect(await store.rescueOwn(await registerTestNode(store, node.id), 3)).toMatchObject({ failed: 1 });
    expect(await store.get(job.id)).toMatchObject({ status: 'failed', pauseRequested: false });
  });

  it('is taken back by a resume, once', async () => {
    const { job, bucket } = await marked();
    const again = await store.control({ kind: 'pause' }, { ids: [job.id] });
    expect(again).toMatchObject({ matched: 0, changed: [] });
    expect(await store.countControllable('resume', { ids: [job.id] })).toBe(1);
    const { changed } = await store.control({ kind: 'resume' }, { ids: [job.id] });
    expect(changed).toMatchObject([{ id: job.id, claimSeq: '1' }]);
    expect(await store.control({ kind: 'resume' }, { ids: [job.id] })).toMatchObject({ matched: 0 });
    const settle: Settlement[] = [{ id: job.id, claimSeq: '1', outcome: 'snoozed', delayMs: 0 }];
    await store.exchange(turn(bucket, { settle, want: 0 }));
    expect(await store.get(job.id)).toMatchObject({ status: 'pending' });
  });
});

describe('paused jobs', () => {
  it.each([0, 2])('are no work to anybody, after %i crashes', async (crashes) => {
    await store.control({ kind: 'cancel' }, {});
    const lane = `paused-${String(crashes)}`;
    const bucket = await store.openBucket(await registerTestNode(store), lane);
    const jobs = [newJob({ lane }), newJob({ lane, delayMs: 3_600_000 }), newJob({ lane, name: 'foreign' })];
    await store.insert(jobs);
    await database.query('update ratchet.job set crashes = $1 where lane = $2', [crashes, lane]);
    expect(await store.unservedLanes()).toMatchObject([{ lane, due: 2 }]);
    expect((await store.control({ kind: 'pause' }, { lanes: [lane] })).changed).toHaveLength(3);
    expect(await store.exchange(turn(bucket, { want: 10 }))).toMatchObject({
      owned: true,
      claimed: [],
      nextDueInMs: undefined,
    });
    const handlers = [{ name: 'test.job', version: 1 }];
    const streams = [{ priority: 2 as const, upTo: 'infinity' }];
    expect((await store.probe({ lane, handlers, streams })).oldest).toEqual({});
    expect(await store.foreign({ lane, handlers, floors: {} })).toEqual([]);
    expect(await store.unservedLanes()).toEqual([]);
    await store.control({ kind: 'resume' }, { lanes: [lane] });
    const { claimed } = await store.exchange(turn(bucket, { want: 10 }));
    expect(claimed.map(({ id }) => id)).toEqual([jobs[0]!.id]);
  });

  it('keep their business key', async () => {
    const job = newJob({ lane: 'keyed', businessKey: 'paused' });
    await store.insert([job]);
    await store.control({ kind: 'pause' }, { businessKeys: ['paused'] });
    expect(await store.insert([newJob({ lane: 'keyed', businessKey: 'paused' })])).toEqual([
      { outcome: 'held', holder: job.id, running: false },
    ]);
  });
});
