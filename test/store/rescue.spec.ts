import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';

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

async function lockWaits(): Promise<void> {
  for (;;) {
    if ((await database.query(`select 1 from pg_locks where not granted`)).length > 0) return;
  }
}

describe('rescueOwn', () => {
  it('takes back thousands of claims in chunks and deletes the buckets', async () => {
    const node = await registerTestNode(store, 'many');
    const bucket = await store.openBucket(node, 'many');
    await store.openBucket(node, 'other');
    await store.insert(Array.from({ length: 2_500 }, () => newJob({ lane: 'many' })));
    await store.exchange(turn(bucket, { want: 2_500 }));
    const next = await registerTestNode(store, 'many');
    expect(await store.rescueOwn(next, 3)).toEqual({ buckets: 2, recovered: 2_500, failed: 0 });
    expect(await database.query(`select 1 from ratchet.bucket where node_id = 'many'`)).toEqual([]);
    const [row] = await database.query(
      `select count(*)::int as n from ratchet.execution where outcome = 'crashed'`,
    );
    expect(row).toEqual({ n: 2_500 });
  });

  it('waits for rows that somebody holds: skipping them is no proof of an empty bucket', async () => {
    const node = await registerTestNode(store, 'locked');
    const bucket = await store.openBucket(node, 'locked');
    const job = newJob({ lane: 'locked' });
    await store.insert([job]);
    await store.exchange(turn(bucket));
    const other = await database.connect();
    await other.query('begin');
    await other.query('select 1 from ratchet.job where id = $1 for update', [job.id]);
    const rescue = store.rescueOwn(await registerTestNode(store, 'locked'), 3);
    await lockWaits();
    await other.query('commit');
    expect(await rescue).toEqual({ buckets: 1, recovered: 1, failed: 0 });
  });

  it('waits for the exchange in flight, whose claims it then finds', async () => {
    const node = await registerTestNode(store, 'flight');
    const bucket = await store.openBucket(node, 'flight');
    const job = newJob({ lane: 'flight' });
    await store.insert([job]);
    const other = await database.connect();
    await other.query('begin');
    await other.query('select 1 from ratchet.bucket where id = $1 for share', [bucket.id]);
    await other.query(
      `update ratchet.job set status = 1, bucket = $1, claim_seq = claim_seq + 1, begun_at = now(),
                              executions = 1 where id = $2`,
      [bucket.id, job.id],
    );
    const rescue = store.rescueOwn(await registerTestNode(store, 'flight'), 3);
    await lockWaits();
    await other.query('commit');
    expect(await rescue).toEqual({ buckets: 1, recovered: 1, failed: 0 });
  });

  it('delays later redeliveries, one second doubling up to a minute', async () => {
    const waits: number[] = [];
    const job = newJob({ lane: 'delays' });
    await store.insert([job]);
    let node = await registerTestNode(store, 'delays');
    for (let crashes = 1; crashes <= 9; crashes += 1) {
      const bucket = await store.openBucket(node, 'delays');
      await database.query('update ratchet.job set scheduled_at = now() where id = $1', [job.id]);
      await store.exchange(turn(bucket));
      node = await registerTestNode(store, 'delays');
      await store.rescueOwn(node, 100);
      const [row] = await database.query<{ wait: number }>(
        `select extract(epoch from scheduled_at - clock_timestamp())::float8 as wait from ratchet.job where id = $1`,
        [job.id],
      );
      waits.push(Math.max(0, Math.ceil(row?.wait ?? -1)));
    }
    expect(waits).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('leaves the buckets of other nodes and of its own epoch', async () => {
    const stranger = await store.openBucket(await registerTestNode(store, 'stranger'), 'l');
    const node = await registerTestNode(store, 'mine');
    const own = await store.openBucket(node, 'l');
    expect(await store.rescueOwn(node, 3)).toEqual({ buckets: 0, recovered: 0, failed: 0 });
    for (const bucket of [stranger, own])
      expect((await store.exchange(turn(bucket, { want: 0 }))).owned).toBe(true);
  });
});

describe('rescueOrphans', () => {
  it('takes back thousands of claims in chunks, and waits for rows that somebody holds', async () => {
    const bucket = await store.openBucket(await registerTestNode(store), 'orphans');
    await store.insert(Array.from({ length: 2_500 }, () => newJob({ lane: 'orphans' })));
    const { claimed } = await store.exchange(turn(bucket, { want: 2_500 }));
    await database.query('delete from ratchet.bucket where id = $1', [bucket.id]);
    const other = await database.connect();
    await other.query('begin');
    await other.query('select 1 from ratchet.job where id = $1 for update', [claimed[0]!.id]);
    const rescue = store.rescueOrphans(3);
    await lockWaits();
    await other.query('commit');
    expect(await rescue).toEqual({ buckets: 1, recovered: 2_500, failed: 0 });
    expect(await store.rescueOrphans(3)).toEqual({ buckets: 0, recovered: 0, failed: 0 });
  });

  it('can be called off between two chunks', async () => {
    const bucket = await store.openBucket(await registerTestNode(store), 'off');
    await store.insert([newJob({ lane: 'off' })]);
    await store.exchange(turn(bucket));
    await database.query('delete from ratchet.bucket where id = $1', [bucket.id]);
    await expect(store.rescueOrphans(3, AbortSignal.abort(new Error('off')))).rejects.toThrow('off');
    expect(await store.rescueOrphans(3)).toEqual({ buckets: 1, recovered: 1, failed: 0 });
  });
});
