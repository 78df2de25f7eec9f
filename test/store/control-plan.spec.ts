import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { setForStep } from '../../lib/store/postgres/query/bulk-control.js';
import {
  CONTROL_CHUNK,
  CONTROL_WINDOW,
  type ControlSource,
  controlStatement,
} from '../../lib/store/postgres/query/control-statement.js';
import { type ComposedQuery, findJobs } from '../../lib/store/postgres/query/find-jobs.js';
import { type ControlAction, type JobQuery } from '../../lib/store/job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSchema, SCHEMA } from './exchange-fixture.js';

/** On the application's connections, which pin no plans: with and without statistics a page and a step read what they need. */
const ROWS = 200_000;
const DAYS = 10;

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}

interface Explained {
  readonly nodes: readonly Plan[];
  readonly blocks: number;
}

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  await createSchema(database);
  await database.query(`
    alter table ratchet.job set (autovacuum_enabled = off);
    alter table ratchet.dead_letter set (autovacuum_enabled = off);
    do $$ declare part regclass; begin
      for part in select inhrelid from pg_inherits where inhparent = 'ratchet.job_history'::regclass loop
        execute format('alter table %s set (autovacuum_enabled = off)', part);
      end loop;
    end $$;
    insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload, business_key)
      select ratchet.uuid_at(now() - g * interval '1 ms'), case when g % 10000 = 0 then 'rare' else 'job' end, 1, 'default', g % 5,
             now(), now() - interval '1 minute', '{}', 'key ' || g from generate_series(1, ${ROWS}) g;
    insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
           ended_at, executions, failures, crashes, business_key)
      select ratchet.uuid_at(now() - g * interval '1 ms'), 'job', 1, 'default', g % 5, 'succeeded', now(), now(), '{}', 1,
             now() + (g % ${DAYS}) * interval '1 day', 1, 0, 0, case when g % 2 = 0 then 'often' else 'key ' || g end from generate_series(1, ${ROWS}) g;
    insert into ratchet.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq,
           ended_at, executions, failures, crashes, business_key)
      select ratchet.uuid_at(now() - g * interval '1 ms'), 'job', 1, 'default', g % 5, now(), now(), '{}', 1,
             now() - interval '1 minute', 1, 1, 0, 'key ' || g from generate_series(1, ${ROWS}) g`);
  client = await database.connect();
}, 120_000);
afterAll(() => database.drop());

async function explain({ text, parameters }: ComposedQuery): Promise<Explained> {
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
    `explain (analyze, buffers, format json) ${text}`,
    [...parameters],
  );
  const top = rows[0]!['QUERY PLAN'][0]!.Plan;
  const nodes: Plan[] = [];
  const walk = (plan: Plan): void => {
    nodes.push(plan);
    plan.Plans?.forEach(walk);
  };
  walk(top);
  return { nodes, blocks: (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0) };
}

const explainFind = (query: JobQuery): Promise<Explained> => explain(findJobs(SCHEMA, query, { limit: 50 })!);

async function explainStep(
  action: ControlAction,
  query: JobQuery,
  source: ControlSource,
): Promise<Explained> {
  await client.query('begin');
  await client.query(setForStep(SCHEMA).text, ['2s']);
  const explained = await explain(
    controlStatement(SCHEMA, { action, query, source, asOf: undefined, offsetMs: 0, locks: 'skip' }),
  );
  await client.query('rollback');
  return explained;
}

/** Rows that a node has read in all. */
const readBy = (node: Plan): number =>
  ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1);

const daysIn = ({ nodes }: Explained): Set<string> =>
  new Set(nodes.flatMap(({ 'Relation Name': name }) => (name?.startsWith('job_history_') ? [name] : [])));

/**
 * Nothing reads or sorts more than `rows` and the closing row of a step; a table is scanned only where there is nothing in it. What a step
 * has in memory it may compare with itself: that is a chunk at most.
 */
function expectBounded({ nodes, blocks }: Explained, rows: number): void {
  for (const node of nodes) {
    const reads = node['Relation Name'] !== undefined && node['Node Type'] !== 'ModifyTable';
    if (!reads && node['Node Type'] !== 'Sort') continue;
    if (node['Node Type'] === 'Seq Scan') expect(readBy(node)).toBe(0);
    expect(readBy(node)).toBeLessThanOrEqual(rows + 1);
  }
  expect(blocks).toBeLessThan(2_000 + rows * 30);
}

const FIRST = '00000000-0000-0000-0000-000000000000';

describe.each(['without statistics', 'with statistics'])('%s', (when) => {
  beforeAll(async () => {
    if (when === 'with statistics') await database.query('vacuum analyze');
  }, 60_000);

  it('a page without a filter reads the heads of the indexes', async () => {
    expectBounded(await explainFind({}), 200);
    expectBounded(await explainFind({ statuses: ['pending'] }), 200);
    const [middle] = await database.query<{ id: string }>(
      `select id from ratchet.job_history order by id offset ${ROWS / 2} limit 1`,
    );
    expectBounded(await explain(findJobs(SCHEMA, {}, { limit: 50, before: middle!.id })!), 200);
  });

  it('statuses choose the tables, times the partitions', async () => {
    const tables = ({ nodes }: Explained): Set<string> =>
      new Set(
        nodes.flatMap(({ 'Relation Name': name }) =>
          name === undefined ? [] : [name.startsWith('job_history') ? 'job_history' : name],
        ),
      );
    expect([...tables(await explainFind({ statuses: ['failed'] }))]).not.toContain('job');
    expect([...tables(await explainFind({ statuses: ['running', 'paused'] }))]).not.toContain('job_history');
    const day = (n: number): Date => new Date(Date.now() + n * 86_400_000);
    expect(daysIn(await explainFind({ ended: { from: day(3), until: day(4) } })).size).toBeLessThanOrEqual(2);
    const all = daysIn(await explainFind({})).size;
    // A day of margin, for clocks that were set back.
    expect(daysIn(await explainFind({ created: { from: day(5) } })).size).toBeLessThanOrEqual(all - 5);
  });

  it('live business keys and ids are looked up by their indexes', async () => {
    const byKey = await explainFind({ statuses: ['pending'], businessKeys: ['key 5', 'key 70000'] });
    expectBounded(byKey, 10);
    expect(byKey.nodes.map((node) => node['Index Name'])).toContain('job_business_key');
    const rows = await database.query<{ id: string }>(`select id from ratchet.job limit 20`);
    expectBounded(await explainFind({ ids: rows.map(({ id }) => id) }), 100);
  });

  it('business keys of ended jobs are looked up too, rare ones and one that many have', async () => {
    for (const businessKeys of [['key 70001'], ['none'], ['often']]) {
      const byKey = await explainFind({ businessKeys });
      expectBounded(byKey, 51 * (DAYS + 2));
    }
    if (when === 'without statistics') return;
    const some = await explainFind({ businessKeys: ['key 70001', 'key 5', 'none'] });
    expectBounded(some, 20);
    expect(some.nodes.map((node) => node['Index Name'])).toContain('dead_letter_key');
  });

  it('a redrive by a business key reads the jobs that have it', async () => {
    const step = await explainStep({ kind: 'redrive' }, { businessKeys: ['key 70001'] }, { after: FIRST });
    expectBounded(step, 10);
    expect(step.nodes.map((node) => node['Index Name'])).toContain('dead_letter_key');
  });

  it.each<ControlAction>([
    { kind: 'cancel' },
    { kind: 'pause' },
    { kind: 'redrive' },
    { kind: 'reschedule', delayMs: 0 },
  ])('a step that matches everything reads a chunk: $kind', async (action) => {
    expectBounded(await explainStep(action, {}, { after: FIRST }), CONTROL_CHUNK);
  });

  it('a step that matches little reads a window', async () => {
    const step = await explainStep({ kind: 'pause' }, { names: ['rare'] }, { after: FIRST });
    for (const node of step.nodes.filter((each) => each['Relation Name'] === 'job')) {
      if (node['Node Type'] !== 'ModifyTable') expect(node['Node Type']).toMatch(/^Index (Only )?Scan$/);
      expect(readBy(node)).toBeLessThanOrEqual(CONTROL_WINDOW);
    }
    expect(step.blocks).toBeLessThan(CONTROL_WINDOW * 3);
  });

  it('a step over named jobs reads those', async () => {
    const rows = await database.query<{ id: string }>(`select id from ratchet.job limit 20`);
    const ids = rows.map(({ id }) => id);
    expectBounded(await explainStep({ kind: 'cancel' }, { ids }, { ids }), 20);
    const query = { businessKeys: ['key 5', 'key 70000'] };
    expectBounded(await explainStep({ kind: 'cancel' }, query, { after: FIRST }), 10);
  });
});
