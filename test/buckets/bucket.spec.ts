import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BUCKET_TRANSITIONS, mayMove } from '../../lib/store/bucket-transitions.js';
import { Bucket } from '../../lib/buckets/bucket.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type BucketStatus } from '../../lib/store/job-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode } from '../support/store.js';

describe('the transitions of a bucket', () => {
  it('never lead back to claiming; out of the last one leads only the loss of its owner', () => {
    expect(BUCKET_TRANSITIONS.some(({ to }) => to === 'active')).toBe(false);
    expect(BUCKET_TRANSITIONS.filter(({ from }) => from === 'ready_to_delete')).toEqual([
      { from: 'ready_to_delete', to: 'lost', by: 'watcher' },
      { from: 'ready_to_delete', to: 'lost', by: 'owner' },
    ]);
  });

  it('every walk, whoever makes its steps, ends: deleted, or lost until somebody drains it', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 30 }), (choices) => {
        let at: BucketStatus = 'active';
        let owned = true;
        for (const choice of choices) {
          const steps = BUCKET_TRANSITIONS.filter(({ from }) => from === at);
          const step = steps[choice % Math.max(1, steps.length)];
          if (!step) break;
          if (step.to === 'lost') owned = false;
          at = step.to;
          // Once somebody else had it, the owner never settles in it again.
          if (!owned) expect(['active', 'completing']).not.toContain(at);
        }
        const ways = BUCKET_TRANSITIONS.filter(({ from, to }) => from === at && to !== 'lost');
        expect(ways.length === 0).toBe(at === 'ready_to_delete');
      }),
    );
  });

  it('only a watcher, or its owner that leaves, loses a bucket; only its drainer takes a lost one on', () => {
    expect(mayMove('active', 'lost', 'owner')).toBe(true);
    expect(mayMove('active', 'lost', 'operator')).toBe(false);
    expect(mayMove('lost', 'draining', 'owner')).toBe(false);
    expect(mayMove('lost', 'draining', 'drainer')).toBe(true);
  });
});

describe('Bucket', () => {
  let database: TestDatabase;
  let store: PostgresJobStore;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createStore(database.url);
    await store.open();
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  it('walks to its removal, each step told', async () => {
    const events = new EngineEvents();
    const steps: string[] = [];
    events.on('bucket', ({ from, to }) => steps.push(`${from} ${to}`));
    const bucket = new Bucket(
      await store.openBucket(await registerTestNode(store), 'default'),
      store,
      events,
    );
    expect(await bucket.moveTo('completing')).toBe(true);
    expect(await bucket.remove()).toBe(true);
    expect(steps).toEqual([
      'active completing',
      'completing ready_to_drain',
      'ready_to_drain draining',
      'draining ready_to_delete',
    ]);
    expect(await database.query('select 1 from ratchet.bucket')).toHaveLength(0);
  });

  it('notices that somebody else moved it, and refuses a step that the table does not have', async () => {
    const bucket = new Bucket(
      await store.openBucket(await registerTestNode(store), 'default'),
      store,
      new EngineEvents(),
    );
    await expect(bucket.moveTo('ready_to_delete')).rejects.toThrow(
      /never goes from active to ready_to_delete/,
    );
    await database.query(`update ratchet.bucket set status = 'lost', epoch = epoch + 1`);
    expect(await bucket.moveTo('completing')).toBe(false);
    expect(await bucket.remove()).toBe(false);
  });

  it('is opened only for a node that is current', async () => {
    const old = await registerTestNode(store, 'same');
    await registerTestNode(store, 'same');
    await expect(store.openBucket(old, 'default')).rejects.toMatchObject({
      code: 'NODE_DEPOSED',
      by: { host: 'test', pid: 1 },
    });
    await database.query(`delete from ratchet.node where id = 'same'`);
    await expect(store.openBucket(old, 'default')).rejects.toMatchObject({
      code: 'NODE_DEPOSED',
      by: undefined,
      message: expect.stringContaining('has left since'),
    });
  });

  it('is not removed while it holds a job, and stays where lost work is looked for', async () => {
    const bucket = new Bucket(
      await store.openBucket(await registerTestNode(store), 'default'),
      store,
      new EngineEvents(),
    );
    const job = newJob();
    await store.insert([job]);
    await database.query('update ratchet.job set status = 1, bucket = $2, begun_at = now() where id = $1', [
      job.id,
      bucket.ref.id,
    ]);
    expect(await bucket.remove()).toBe(false);
    const status = 'select status from ratchet.bucket where id = $1';
    expect(await database.query(status, [bucket.ref.id])).toEqual([{ status: 'draining' }]);
    await database.query('delete from ratchet.job where id = $1', [job.id]);
    expect(await bucket.remove()).toBe(true);
    expect(await database.query(status, [bucket.ref.id])).toEqual([]);
  });
});
