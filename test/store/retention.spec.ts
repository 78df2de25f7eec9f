import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { EngineConnection } from '../../lib/store/postgres/connections/engine-connection.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { deletePayloadPage } from '../../lib/store/postgres/statements/retention.js';

const DAY_MS = 86_400_000;
const AGES = { historyMs: 2 * DAY_MS, executionMs: 2 * DAY_MS, deadLetterMs: 2 * DAY_MS };

let database: TestDatabase;
let store: PostgresJobStore;
let role: string;

beforeAll(async () => {
  database = await createTestDatabase();
  role = database.name;
  store = createStore(database.url);
  await store.open();
});
afterEach(() => store.travel(0));
afterAll(async () => {
  await store.close();
  await database.query(`drop owned by ${role}; drop role ${role}`).catch(() => undefined);
  await database.drop();
});

const partitions = async (): Promise<string[]> =>
  (
    await database.query<{ name: string }>(
      `select relname as name from pg_class where relname ~ '^(job_history|execution)_\\d+$' and relkind = 'r' order by 1`,
    )
  ).map(({ name }) => name);

async function finishOne(): Promise<string> {
  const bucket = await store.openBucket(await registerTestNode(store), 'retention');
  const job = newJob({ lane: 'retention' });
  await store.insert([job]);
  await store.exchange(turn(bucket));
  await store.exchange(
    turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'succeeded' }], want: 0 }),
  );
  return job.id;
}

/** So many jobs of today in history, with payloads in their table, as ids. */
async function finishedWithPayloads(count: number): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `with h as (insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, claim_seq,
            ended_at, executions, failures, crashes)
      select ratchet.uuid_at(now()), 'n', 1, 'l', 1, 'succeeded', now(), now(), 1, now(), 1, 0, 0 from generate_series(1, $1::int)
      returning id)
    insert into ratchet.job_payload select id, '"x"' from h returning job_id::text as id`,
    [count],
  );
  return rows.map(({ id }) => id);
}

const payloadsOf = async (ids: readonly string[]): Promise<number> =>
  (await database.query('select 1 from ratchet.job_payload where job_id = any ($1)', [ids])).length;

/** How many pages of days the work reads. */
async function deletedPages<T>(work: () => Promise<T>): Promise<{ reads: number; answer: T }> {
  const query = jest.spyOn(EngineConnection.prototype, 'query');
  try {
    const answer = await work();
    const [before] = deletePayloadPage('"ratchet"', '').text.split('from  where');
    return { answer, reads: query.mock.calls.filter(([{ text }]) => text.startsWith(before!)).length };
  } finally {
    query.mockRestore();
  }
}

describe('retention of partitions', () => {
  it('drops whole days that are past, and only those', async () => {
    const before = await partitions();
    store.travel(5 * DAY_MS);
    const { partitionsDropped, refused } = await store.retain(AGES);
    expect(refused).toEqual([]);
    // Yesterday to the day before the oldest kept one, of both tables.
    expect(partitionsDropped).toHaveLength(8);
    expect(await partitions()).toEqual(before.filter((name) => !partitionsDropped.includes(name)));
    store.travel(0);
    await store.ensurePartitions(14);
  });

  it('detaches beside a long reader without stopping a settle, and finishes in a later round', async () => {
    const reader = await database.connect();
    await reader.query('begin isolation level repeatable read');
    await reader.query('select count(*) from ratchet.job_history');
    store.travel(5 * DAY_MS);
    const round = store.retain(AGES);
    // The retirement waits for the reader; meanwhile jobs are recorded.
    for (;;) {
      const waiting = await database.query(
        `select 1 from pg_stat_activity where datname = $1 and application_name = 'ratchet/retention' and wait_event_type = 'Lock'`,
        [database.name],
      );
      if (waiting.length > 0) break;
    }
    store.travel(0);
    const startedAt = performance.now();
    const id = await finishOne();
    expect((await store.get(id))?.status).toBe('succeeded');
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    // The retirement is cut off half way, as by a crash of the node.
    await database.terminateBackends('ratchet/retention');
    expect((await round).partitionsDropped).toEqual([]);
    expect(await database.query('select 1 from pg_inherits where inhdetachpending')).toHaveLength(1);
    await reader.query('commit');
    store.travel(5 * DAY_MS);
    // Their payloads are gone since the first round.
    const { answer, reads } = await deletedPages(() => store.retain(AGES));
    expect(answer.partitionsDropped).toHaveLength(8);
    expect(reads).toBe(0);
    store.travel(0);
    await store.ensurePartitions(14);
  });

  it('prints the SQL to a role that may not, which still makes partitions and settles', async () => {
    await database.query(`create role ${role} login password 'x'; grant usage on schema ratchet to ${role};
      grant select, insert, update, delete on all tables in schema ratchet to ${role};
      grant usage on all sequences in schema ratchet to ${role}`);
    const url = new URL(database.url);
    url.username = role;
    url.password = 'x';
    const config = clientConfigOf(url.href);
    const poor = createStore(url.href, { engine: config, client: new PoolSqlClient(config, 1) });
    await poor.open();
    poor.travel(40 * DAY_MS);
    expect(await poor.ensurePartitions(3)).toBe(3);
    const bucket = await poor.openBucket(await registerTestNode(poor), 'poor');
    const job = newJob({ lane: 'poor' });
    await poor.insert([job]);
    await poor.exchange(turn(bucket));
    const { recorded } = await poor.exchange(
      turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'succeeded' }], want: 0 }),
    );
    expect(recorded).toEqual([job.id]);
    const large = await finishedWithPayloads(3);
    const report = await poor.retain(AGES);
    expect(report.partitionsDropped).toEqual([]);
    // Nobody else could tell later whose they were.
    expect(report.payloadsDeleted).toBe(3);
    expect(await payloadsOf(large)).toBe(0);
    // The next rounds do not read that day again.
    const { reads } = await deletedPages(() => poor.retain(AGES));
    expect(reads).toBe(0);
    expect(report.refused[0]).toMatch(
      /^alter table "ratchet"\.\w+ detach partition "ratchet"\.\w+_\d{8} concurrently; drop table "ratchet"\.\w+_\d{8};$/,
    );
    await poor.close();
    // What it prints works for the owner.
    for (const step of (report.refused[0] ?? '').split('; ')) await database.query(step);
  });

  it('forgets notices that nobody has read for a day', async () => {
    await database.query(`insert into ratchet.notice values
      ('dead', 1, gen_random_uuid(), 1, 'canceled', now() - interval '25 hours'),
      ('slow', 2, gen_random_uuid(), 1, 'canceled', now() - interval '1 hour')`);
    await store.retain(AGES);
    expect(await database.query('select node_id from ratchet.notice')).toEqual([{ node_id: 'slow' }]);
  });

  it('ends when it is called off', async () => {
    store.travel(5 * DAY_MS);
    const before = await partitions();
    await expect(store.retain(AGES, AbortSignal.abort(new Error('called off')))).rejects.toThrow(
      'called off',
    );
    expect(await partitions()).toEqual(before);
  });

  it('deletes large payloads with their history, in pages', async () => {
    const ids = await database.query<{ id: string }>(`
      with h as (insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, claim_seq,
              ended_at, executions, failures, crashes)
        select gen_random_uuid(), 'n', 1, 'l', 1, 'succeeded', now(), now(), 1, now(), 1, 0, 0 from generate_series(1, 2300)
        returning id)
      insert into ratchet.job_payload select id, '"x"' from h returning job_id as id`);
    expect(ids).toHaveLength(2_300);
    store.travel(5 * DAY_MS);
    expect((await store.retain(AGES)).payloadsDeleted).toBeGreaterThanOrEqual(2_300);
    store.travel(0);
    await store.ensurePartitions(14);
    expect(await database.query('select 1 from ratchet.job_payload')).toEqual([]);
  });
});

describe('payloads that no job has', () => {
  it('are found by the rounds, oldest first, and those of any job stay', async () => {
    const old = `ratchet.uuid_at(now() - interval '5 days')`;
    const columns = 'id, name, version, lane, priority, scheduled_at, created_at';
    const values = `'n', 1, 'l', 1, now(), now()`;
    const kept = await database.query<{ id: string }>(`
      with live as (insert into ratchet.job (${columns}) values (${old}, ${values}) returning id),
      ended as (insert into ratchet.job_history (${columns}, outcome, claim_seq, ended_at, executions, failures, crashes)
                values (${old}, ${values}, 'succeeded', 1, now(), 1, 0, 0) returning id),
      dead as (insert into ratchet.dead_letter (${columns}, claim_seq, ended_at, executions, failures, crashes)
               values (${old}, ${values}, 1, now(), 1, 1, 0) returning id),
      young as (select ratchet.uuid_at(now()) as id)
      insert into ratchet.job_payload
      select id, '"x"'::jsonb from (
        select id from live union all select id from ended union all select id from dead union all select id from young) all_of_them
      returning job_id::text as id`);
    await database.query(
      `insert into ratchet.job_payload select ${old}, '"x"' from generate_series(1, 7000)`,
    );
    // A part of them in each round.
    expect((await store.retain(AGES)).payloadsDeleted).toBeGreaterThanOrEqual(4_990);
    expect((await store.retain(AGES)).payloadsDeleted).toBeGreaterThanOrEqual(1_990);
    const left = await database.query<{ id: string }>('select job_id::text as id from ratchet.job_payload');
    expect(left.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort());
    // From the beginning again: one that came to be behind the sweep is met as well.
    await database.query(`delete from ratchet.dead_letter`);
    expect((await store.retain(AGES)).payloadsDeleted).toBe(1);
    await database.query('truncate ratchet.job, ratchet.job_payload');
  });
});

describe('lookups by id', () => {
  it('read only the partitions that the id allows', async () => {
    const id = await finishOne();
    const plan = await database.query<{ 'QUERY PLAN': string }>(
      `explain select * from ratchet.jobs where id = '${id}' and (ended_at is null or ended_at >= now() + interval '12 days')`,
    );
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
    const text = plan.map((line) => line['QUERY PLAN']).join('\n');
    expect(text).toMatch(/job_history_\d/);
    expect(text).not.toContain(`job_history_${today}`);
  });
});

describe('travel', () => {
  it('is refused in production', () => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      expect(() => store.travel(1)).toThrow(expect.objectContaining({ code: 'TRAVEL_REFUSED' }));
    } finally {
      process.env['NODE_ENV'] = before;
    }
  });
});
