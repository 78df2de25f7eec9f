import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, transactionOf } from '../support/store.js';
import { type BucketRef } from '../../lib/store/job-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';

let database: TestDatabase;
let other: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  [database, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await Promise.all([database.drop(), other.drop()]);
});

describe('reachedBy', () => {
  it('tells another database by what it holds, and leaves its transaction usable', async () => {
    const client = await other.connect();
    await client.query('begin');
    expect(await store.reachedBy(transactionOf(client))).toBe(false);
    await client.query('commit');
    const twin = createStore(other.url);
    await twin.open();
    await twin.close();
    expect(await store.reachedBy(transactionOf(client))).toBe(false);
    expect(await store.reachedBy(transactionOf(await database.connect()))).toBe(true);
  });
});

describe('setBucketStatus', () => {
  it('moves those that are asked for in one tick together, each by a compare-and-set of its own', async () => {
    const node = await registerTestNode(store);
    const open = (): Promise<BucketRef> => store.openBucket(node, 'together');
    const buckets = await Promise.all([open(), open(), open()]);
    const [, stale, held] = buckets;
    await database.query('update ratchet.bucket set epoch = epoch + 1 where id = $1', [stale.id]);
    const complete = (bucket: BucketRef): Promise<boolean> =>
      store.setBucketStatus(bucket, 'active', 'completing');
    expect(await Promise.all(buckets.map(complete))).toEqual([true, false, true]);
    const remove = (bucket: BucketRef): Promise<boolean> =>
      store.setBucketStatus(bucket, 'completing', 'ready_to_delete');
    await store.insert([newJob({ lane: 'together', name: 'held' })]);
    await database.query(
      `update ratchet.job set status = 1, begun_at = now(), bucket = $1 where lane = 'together'`,
      [held.id],
    );
    expect(await Promise.all(buckets.map(remove))).toEqual([true, false, false]);
    const left = await database.query(
      `select id, status from ratchet.bucket where lane = 'together' order by created_at`,
    );
    expect(left).toEqual([
      { id: stale.id, status: 'active' },
      { id: held.id, status: 'completing' },
    ]);
  });

  it('deletes an empty bucket that is ready for it, and waits for the exchange in flight', async () => {
    const bucket = await store.openBucket(await registerTestNode(store), 'l');
    const exchange = await database.connect();
    await exchange.query('begin');
    await exchange.query('select 1 from ratchet.bucket where id = $1 for share', [bucket.id]);
    let moved = false;
    const change = store.setBucketStatus(bucket, 'active', 'ready_to_delete').then((yes) => (moved = yes));
    while ((await database.query('select 1 from pg_locks where not granted')).length === 0);
    expect(moved).toBe(false);
    await exchange.query('commit');
    expect(await change).toBe(true);
    expect(await database.query('select 1 from ratchet.bucket where id = $1', [bucket.id])).toEqual([]);
  });
});
