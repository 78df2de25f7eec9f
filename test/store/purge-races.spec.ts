import { afterAll, beforeEach, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { findJobs } from '../../lib/store/postgres/query/find-jobs.js';
import { selectEnded } from '../../lib/store/postgres/statements/ended-jobs.js';
import { type SqlClient, type Statement } from '../../lib/store/sql-client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';

/** The real purge (DETACH CONCURRENTLY, DROP) against questions under way: they see the job or they do not, and none fails. */
const DAY_MS = 86_400_000;
const AGES = { historyMs: 2 * DAY_MS, executionMs: 2 * DAY_MS, deadLetterMs: 2 * DAY_MS };
const SCHEMA = '"ratchet"';

let database: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
beforeEach(async () => {
  store.travel(0);
  await store.ensurePartitions(14);
});
afterEach(() => store.travel(0));
afterAll(async () => {
  await store.close();
  await database.drop();
});

/** A job of the oldest day there is: that one is detached first. */
async function ended(): Promise<string> {
  const [row] = await database.query<{ id: string }>(
    `insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, claim_seq, ended_at,
            executions, failures, crashes, result)
     select ratchet.uuid_at(yesterday), 'n', 1, 'l', 1, 'succeeded', yesterday, yesterday, 1, yesterday, 1, 0, 0, '42'
       from (select now() - interval '1 day' as yesterday) t returning id::text as id`,
  );
  return row!.id;
}

async function detachWaits(): Promise<void> {
  for (;;) {
    const waiting = await database.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name = 'ratchet/retention' and wait_event_type = 'Lock'`,
    );
    if (waiting.length > 0) return;
  }
}

type Question = (client: pg.Client, id: string) => Promise<{ rows: unknown[] }>;
const questions: Readonly<Record<string, Question>> = {
  ended: (client, id) => client.query(selectEnded(SCHEMA).text, [[id], '-infinity', 'infinity']),
  find: (client, id) => {
    const { text, parameters } = findJobs(SCHEMA, { ids: [id] }, { limit: 10 })!;
    return client.query(text, [...parameters]);
  },
};

describe('a purge', () => {
  it.each(Object.keys(questions))('waits for a question that has begun (%s), others go on', async (name) => {
    const ask = questions[name]!;
    const id = await ended();
    const client = await database.connect();
    await client.query('begin isolation level repeatable read');
    expect((await ask(client, id)).rows).toHaveLength(1);
    store.travel(5 * DAY_MS);
    const purge = store.retain(AGES);
    await detachWaits();
    // Being detached, the day is seen no more by who asks now.
    expect(await store.ended([id], true)).toMatchObject({ ended: [], absent: [id] });
    expect(await store.find({ ids: [id] }, { limit: 10 })).toEqual({ jobs: [], more: false });
    expect(await store.get(id)).toBeUndefined();
    expect(await store.executions(id)).toEqual([]);
    // And as before by who began before it.
    expect((await ask(client, id)).rows).toHaveLength(1);
    await client.query('commit');
    expect((await purge).partitionsDropped.length).toBeGreaterThan(0);
    expect((await ask(client, id)).rows.filter((row) => (row as { row: unknown }).row !== null)).toEqual([]);
  });

  it('under many questions fails none of them, and each job is there or gone', async () => {
    for (let round = 0; round < 5; round += 1) {
      store.travel(0);
      await store.ensurePartitions(14);
      const id = await ended();
      let isOver = false;
      const asking = [
        () => store.ended([id], true).then((answer) => answer.ended.length),
        () => store.find({}, { limit: 50 }).then(({ jobs }) => jobs.length),
        () => store.count({ statuses: ['succeeded'] }),
        () => store.get(id).then((job) => (job ? 1 : 0)),
        () => store.executions(id).then(() => 1),
      ].map(async (ask) => {
        while (!isOver) expect(await ask()).toBeLessThanOrEqual(1);
      });
      store.travel(5 * DAY_MS);
      await store.retain(AGES);
      isOver = true;
      await Promise.all(asking);
      expect(await store.get(id)).toBeUndefined();
    }
  });
});

describe('a question whose plan has a day that is dropped', () => {
  /** The application's side, whose next statement fails with this. */
  const failing = (error: Error, times: number): { store: PostgresJobStore; asked: () => number } => {
    const real = new PoolSqlClient(clientConfigOf(database.url), 1);
    let left = 0;
    let asked = 0;
    const client: SqlClient = {
      query: (statement: Statement, parameters) => {
        asked += 1;
        return left-- > 0 ? Promise.reject(error) : real.query(statement, parameters);
      },
      transaction: (work, options) => real.transaction(work, options),
      close: () => real.close(),
    };
    const made = createStore(database.url, { client });
    return {
      store: made,
      asked: () => {
        const before = asked;
        [left, asked] = [times, 0];
        return before;
      },
    };
  };
  const gone = Object.assign(new Error('could not open relation with OID 4711'), { code: 'XX000' });
  const missing = Object.assign(new Error('relation "job_history_20260101" does not exist'), {
    code: '42P01',
  });

  it('is asked once more, and no further', async () => {
    for (const error of [gone, missing]) {
      const id = await ended();
      for (const times of [1, 2]) {
        const { store: shaky, asked } = failing(error, times);
        await shaky.open();
        for (const ask of [
          () => shaky.ended([id]),
          () => shaky.find({ ids: [id] }, { limit: 1 }),
          () => shaky.count({ ids: [id] }),
          () => shaky.get(id),
        ]) {
          asked();
          if (times === 1) await expect(ask()).resolves.toBeDefined();
          else await expect(ask()).rejects.toMatchObject({ code: 'STORE_FAULT' });
          expect(asked()).toBe(2);
        }
        await shaky.close();
      }
    }
  });

  it('is not asked again after another error', async () => {
    const other = Object.assign(new Error('permission denied'), { code: '42501' });
    const { store: shaky, asked } = failing(other, 1);
    await shaky.open();
    asked();
    await expect(shaky.count({})).rejects.toMatchObject({ code: 'STORE_FAULT' });
    expect(asked()).toBe(1);
    await shaky.close();
  });
});
