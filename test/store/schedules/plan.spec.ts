import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { setForStep } from '../../../lib/store/postgres/query/bulk-control.js';
import { beat } from '../../../lib/store/postgres/statements/heartbeat.js';
import { decodeDue, due } from '../../../lib/store/postgres/statements/schedules/due.js';
import { cancelJobsOf } from '../../../lib/store/postgres/statements/schedules/cancel-jobs.js';
import {
  deleteOccurrencesOf,
  lockSchedules,
} from '../../../lib/store/postgres/statements/schedules/delete.js';
import { fire, fireParameters } from '../../../lib/store/postgres/statements/schedules/fire.js';
import { promote } from '../../../lib/store/postgres/statements/schedules/promote.js';
import { sweepSchedules } from '../../../lib/store/postgres/statements/schedules/sweep.js';
import { type DueSchedule } from '../../../lib/store/schedule-store.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { createSchema, engineClient, SCHEMA, uuid } from '../exchange-fixture.js';
import { explain, type Explained, prepare, reads, rowsOf } from './explain.js';

/**
 * What the engine asks of schedules costs by what is due, never by what is stored, whatever the statistics say. The statements are
 * prepared once, on the empty tables, as by a node that starts on a young schema.
 */
const STORED = 100_000;
const DUE = 500;

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  await createSchema(database);
  for (const table of ['schedule', 'occurrence', 'job']) {
    await database.query(`alter table ratchet.${table} set (autovacuum_enabled = off)`);
  }
  client = await engineClient(database);
  await prepare(client, due(SCHEMA), 'bigint, text, bigint, float8, int');
  await prepare(client, fire(SCHEMA), 'bigint, json');
  await prepare(client, promote(SCHEMA), 'bigint, int, text[]');
  await prepare(client, sweepSchedules(SCHEMA), 'bigint, float8');
  await prepare(client, beat(SCHEMA), 'bigint, text, bigint, float8, int, int');
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const look = (): Promise<Explained> => explain(client, 'ratchet-schedules-due', [0, 'n', 1, 3000, DUE]);
const heartbeat = (): Promise<Explained> => explain(client, 'ratchet-beat', [0, 'n', 1, 30000, 0, 0]);
const sweep = (): Promise<Explained> => explain(client, 'ratchet-schedules-sweep', [0, 300000]);
const promotion = (): Promise<Explained> => explain(client, 'ratchet-schedules-promote', [0, DUE, null]);

/** Every table is read by its indexes alone, and no node reads more than so many rows. */
function expectBounded(explained: Explained, rows: number): void {
  for (const table of ['schedule', 'occurrence', 'job']) {
    for (const node of reads(explained, table)) {
      expect(node['Node Type']).toMatch(/^(Index (Only )?|Tid )Scan$/);
      expect(rowsOf(node)).toBeLessThanOrEqual(rows);
    }
  }
  const types = explained.nodes.map((node) => node['Node Type']);
  expect(types).not.toContain('Hash Join');
  expect(types).not.toContain('Merge Join');
  expect(types).not.toContain('Materialize');
}

async function expectIdleCosts(): Promise<void> {
  for (const explained of [await look(), await heartbeat(), await promotion()]) {
    expectBounded(explained, 1);
    expect(explained.blocks).toBeLessThan(200);
  }
}

const insertSchedules = (prefix: string, count: number, seconds: number, origin = 'api'): Promise<unknown> =>
  database.query(
    `insert into ratchet.schedule (id, revision, name, expression, time_zone, origin, job_name, job_version, lane, priority, payload,
            tags, misfire, overlap, jitter_ms, scope, enabled, anchor_at, next_at, created_at, updated_at)
     select $1::text || lpad(g::text, 7, '0'), g, 'name', '0 0 * * *', 'UTC', $4, 'job', 1, 'default', 2, '{"n": 1}', '{}', 'once', 'skip', 0,
            'cluster', true, now(), date_trunc('milliseconds', now()) + ($3::int + g % 3600) * interval '1 second', now(), now()
       from generate_series(1, $2::int) g`,
    [prefix, count, seconds, origin],
  );

describe.each(['on empty tables', `beside ${STORED} schedules`, 'after ANALYZE'])('%s', (when) => {
  beforeAll(async () => {
    if (when.startsWith('beside')) {
      await database.query('truncate ratchet.schedule, ratchet.occurrence');
      await insertSchedules('distant ', STORED, 86_400);
      await database.query(`
        insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, metadata)
          select gen_random_uuid(), 'job', 1, 'default', 2, now(), now(), case when g % 10 = 0
                   then jsonb_build_object('ratchet:schedule', 'distant ' || lpad(g::text, 7, '0')) end
            from generate_series(1, ${STORED}) g;
        insert into ratchet.occurrence (schedule_id, due_at, through_at, outcome, decided_at)
          select 'distant ' || lpad(g::text, 7, '0'), now(), now(), 'enqueued', now() from generate_series(1, ${STORED}) g`);
    }
    if (when === 'after ANALYZE') {
      await database.query('vacuum analyze ratchet.schedule, ratchet.job, ratchet.occurrence');
    }
  }, 60_000);

  it('a look, a heartbeat and a promotion read the head of an index while nothing is due', expectIdleCosts);

  it('a sweep reads what annotations keep', async () => {
    expectBounded(await sweep(), 1);
  });

  it('a look and a firing read what is due', async () => {
    await insertSchedules('due ', 2 * DUE, -7_200);
    const looked = await look();
    expectBounded(looked, DUE + 1);
    expect(looked.blocks).toBeLessThan(DUE * 20);
    const { rows } = await client.query<Record<string, unknown>>(
      `execute "ratchet-schedules-due"(0, 'n', 1, 3000, ${DUE})`,
    );
    const found = decodeDue(rows).due;
    expect(found).toHaveLength(DUE);
    const fired = await explain(client, 'ratchet-schedules-fire', fireParameters(found.map(firingOf), 0));
    expectBounded(fired, DUE);
    expect(fired.blocks).toBeLessThan(DUE * 100);
    await database.query(`delete from ratchet.schedule where id like 'due %'`);
  }, 30_000);

  it('a deletion reads the jobs and the occurrences of its schedule, where no plans are pinned', async () => {
    const unpinned = await database.connect();
    await unpinned.query('begin');
    await unpinned.query(setForStep(SCHEMA).text, ['2s']);
    const asked: Explained[] = [];
    for (const [name, { text }, types, parameters] of [
      ['lock', lockSchedules(SCHEMA), 'text[]', [['distant 0000010']]],
      ['cancel', cancelJobsOf(SCHEMA), 'bigint, text[]', [0, ['distant 0000010']]],
      ['occurrences', deleteOccurrencesOf(SCHEMA), 'text[]', [['distant 0000010']]],
    ] as const) {
      await prepare(unpinned, { name, text }, types);
      asked.push(await explain(unpinned, name, [...parameters], 'savepoint mine', 'rollback to mine'));
    }
    await unpinned.query('rollback');
    await unpinned.end();
    for (const explained of asked) expectBounded(explained, 3);
  });

  it('a promotion and a heartbeat read what waits, a schedule at a time', async () => {
    await insertSchedules('queue ', DUE, 86_400);
    await database.query(`
      insert into ratchet.occurrence (schedule_id, due_at, through_at, outcome, decided_at, job_id)
        select 'queue ' || lpad(g::text, 7, '0'), now() - k * interval '1 minute', now(), 'waiting', now(), gen_random_uuid()
          from generate_series(1, ${DUE}) g, generate_series(1, 20) k`);
    const promoted = await promotion();
    expectBounded(promoted, DUE + 1);
    expect(promoted.blocks).toBeLessThan(DUE * 100);
    // The first that it comes to can be promoted.
    expectBounded(await heartbeat(), 1);
    await database.query(
      `delete from ratchet.schedule where id like 'queue %'; delete from ratchet.occurrence where outcome = 'waiting'`,
    );
  }, 30_000);
});

function firingOf(
  { id, revision, nextAt }: DueSchedule,
  index: number,
): Parameters<typeof fireParameters>[0][number] {
  return {
    id,
    revision,
    nextAt,
    advanceTo: new Date(nextAt.getTime() + 86_400_000),
    runs: [{ at: nextAt, jobId: uuid(index), delayMs: 0, missed: 0, ifBusy: 'skip' }],
    missed: [],
  };
}
