import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type BucketRef, type RetentionReport } from '../../lib/store/job-store.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';

const DAY_MS = 86_400_000;
const AGES = { historyMs: 30 * DAY_MS, executionMs: 30 * DAY_MS, deadLetterMs: 30 * DAY_MS };
const RESULT_BYTES = 200_000;
const A_DAY = 100;
const DAYS = 5;
/** What one day of such results takes, about. */
const DAY_BYTES = A_DAY * RESULT_BYTES;

let database: TestDatabase;
let store: PostgresJobStore;
let bucket: BucketRef;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
  bucket = await store.openBucket(await registerTestNode(store), 'default');
});
afterAll(async () => {
  await store.close();
  await database.query(`drop owned by ${database.name}; drop role ${database.name}`).catch(() => undefined);
  await database.drop();
});
beforeEach(async () => {
  store.travel(0);
  await database.query('truncate ratchet.job, ratchet.job_history, ratchet.job_payload');
  await store.ensurePartitions(14);
});
afterEach(() => store.travel(0));

/** Text that no compression makes much smaller. */
const result = (): string => JSON.stringify(randomBytes(RESULT_BYTES / 2).toString('hex'));

async function finish(count: number, payload = '{}'): Promise<void> {
  await store.insert(Array.from({ length: count }, () => newJob({ payload })));
  for (let left = count; left > 0;) {
    const { claimed } = await store.exchange(turn(bucket, { want: 5 }));
    left -= claimed.length;
    await store.exchange(
      turn(bucket, {
        want: 0,
        settle: claimed.map(({ id, claimSeq }) => ({
          id,
          claimSeq,
          outcome: 'succeeded' as const,
          result: result(),
        })),
      }),
    );
  }
}

/** Five days of work, of which the last is today. */
async function fill(payload?: string): Promise<void> {
  for (let day = 0; day < DAYS; day += 1) {
    store.travel(day * DAY_MS);
    await finish(A_DAY, payload);
  }
}

const retain = (historyBytes: number): Promise<RetentionReport> => store.retain({ ...AGES, historyBytes });

const jobsOfDays = async (): Promise<number[]> =>
  (
    await database.query<{ jobs: number }>(
      `select count(*)::int as jobs from ratchet.job_history group by (ended_at at time zone 'UTC')::date
        order by (ended_at at time zone 'UTC')::date`,
    )
  ).map(({ jobs }) => jobs);

const partitionOf = (day: number): string =>
  `job_history_${new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;

describe('retention in bytes', () => {
  it('drops the oldest days until the others fit, with their payloads, and is then content', async () => {
    await fill(JSON.stringify('p'.repeat(2_000)));
    const payloads = 'select 1 from ratchet.job_payload';
    expect(await database.query(payloads)).toHaveLength(DAYS * A_DAY);
    const report = await retain(2.5 * DAY_BYTES);
    expect(report.droppedForSize).toEqual(expect.arrayContaining([0, 1, 2].map(partitionOf)));
    expect(report).toMatchObject({ payloadsDeleted: 3 * A_DAY, refused: [] });
    expect(await jobsOfDays()).toEqual([A_DAY, A_DAY]);
    expect(await database.query(payloads)).toHaveLength(2 * A_DAY);
    expect(await retain(2.5 * DAY_BYTES)).toMatchObject({ partitionsDropped: [], payloadsDeleted: 0 });
  }, 120_000);

  it("never drops today's, however large it is, nor yesterday's empty one again and again", async () => {
    store.travel(DAY_MS);
    await finish(20);
    store.travel(2 * DAY_MS);
    await finish(20);
    expect((await retain(1_000_000)).droppedForSize).toContain(partitionOf(1));
    expect(await jobsOfDays()).toEqual([20]);
    // Made again within the hour, for settles that began before midnight.
    await store.ensurePartitions(3);
    expect((await retain(1_000_000)).partitionsDropped).toEqual([]);
    expect(await jobsOfDays()).toEqual([20]);
  });

  it('goes by age alone without a bound', async () => {
    await finish(20);
    store.travel(3 * DAY_MS);
    await finish(1);
    expect(await store.retain(AGES)).toMatchObject({ droppedForSize: [] });
    expect(await jobsOfDays()).toEqual([20, 1]);
    const report = await store.retain({ ...AGES, historyMs: 2 * DAY_MS, historyBytes: 1_000_000_000 });
    expect(report.partitionsDropped).toContain(partitionOf(0));
    expect(report.droppedForSize).toEqual([]);
  });

  it('stops no exchange while it waits for a long reader', async () => {
    await finish(20);
    store.travel(2 * DAY_MS);
    await finish(20);
    const reader = await database.connect();
    await reader.query('begin isolation level repeatable read');
    await reader.query('select count(*) from ratchet.job_history');
    let over = false;
    const round = retain(1_000_000).finally(() => (over = true));
    for (;;) {
      const waiting = await database.query(
        `select 1 from pg_stat_activity where datname = $1 and application_name = 'ratchet/retention' and wait_event_type = 'Lock'`,
        [database.name],
      );
      if (waiting.length > 0) break;
    }
    // It detaches and waits; claims, settles and the rows of today's history go on.
    await finish(20);
    expect(over).toBe(false);
    await reader.query('commit');
    expect((await round).droppedForSize).toContain(partitionOf(0));
    expect(await jobsOfDays()).toEqual([40]);
  });

  it('prints the SQL to a role that does not own the tables', async () => {
    const role = database.name;
    await database.query(`create role ${role} login password 'x'; grant usage on schema ratchet to ${role};
      grant select, insert, update, delete on all tables in schema ratchet to ${role};
      grant usage on all sequences in schema ratchet to ${role}`);
    await finish(20);
    const url = new URL(database.url);
    url.username = role;
    url.password = 'x';
    const config = clientConfigOf(url.href);
    const poor = createStore(url.href, { engine: config, client: new PoolSqlClient(config, 1) });
    await poor.open();
    poor.travel(2 * DAY_MS);
    const report = await poor.retain({ ...AGES, historyBytes: 1_000_000 });
    await poor.close();
    expect(report).toMatchObject({ partitionsDropped: [], droppedForSize: [], payloadsDeleted: 0 });
    expect(report.refused).toEqual(
      expect.arrayContaining([
        `alter table "ratchet".job_history detach partition "ratchet".${partitionOf(0)} concurrently; ` +
          `drop table "ratchet".${partitionOf(0)};`,
      ]),
    );
    expect(await jobsOfDays()).toEqual([20]);
  });

  it('asks little when there is nothing to do', async () => {
    await finish(1);
    const reads = () =>
      database.query<{ reads: string }>(
        `select sum(seq_tup_read)::text as reads from pg_stat_user_tables where relname like 'job_history%'`,
      );
    let before = await reads();
    await retain(1_000_000_000);
    let after = await reads();
    // Sessions tell what they have read up to a second late: what is new may be of statements before these.
    for (let round = 0; round < 5 && after[0]?.reads !== before[0]?.reads; round += 1) {
      before = after;
      await retain(1_000_000_000);
      after = await reads();
    }
    expect(after).toEqual(before);
  });
});
