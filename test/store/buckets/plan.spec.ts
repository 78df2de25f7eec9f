import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { setForStep } from '../../../lib/store/postgres/query/bulk-control.js';
import { selectBuckets } from '../../../lib/store/postgres/statements/bucket-list.js';
import { selectLanes } from '../../../lib/store/postgres/statements/lanes.js';
import { moveLane } from '../../../lib/store/postgres/statements/move-lane.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { createSchema, SCHEMA } from '../exchange-fixture.js';
import { type Plan, prepare, rowsOf } from '../schedules/explain.js';

const BUCKETS = 50;
const RUNNING = 100_000;
const PENDING = 200_000;

/** People look at lists while much is going on: what they cost goes by what they show. */
describe('what people ask of buckets', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    await createSchema(database);
    await database.query('alter table ratchet.job set (autovacuum_enabled = off)');
    client = await database.connect();
    await prepare(client, { ...selectBuckets(SCHEMA), name: 'buckets' }, 'float8');
    await client.query(`prepare lanes as ${selectLanes(SCHEMA).text}`);
    await prepare(client, { ...moveLane(SCHEMA), name: 'move' }, 'text, text, smallint[]');
    await database.query(`
      insert into ratchet.bucket (id, node_id, node_epoch, lane, status)
        select lpad(n::text, 32, '0')::uuid, 'n', 1, 'lane-' || n % 10, 'active' from generate_series(1, 50) n;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, status, bucket, begun_at, claim_seq)
        select lpad(n::text, 32, '0')::uuid, 'job', 1, 'lane-' || n % 10, 2, now(), now(), 1, lpad((1 + n / 2 % 50)::text, 32, '0')::uuid,
               case when n % 2 = 0 then now() end, 1
          from generate_series(1, ${String(RUNNING)}) n;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'lane-' || n % 10, n % 5, now(), now() from generate_series(1, ${String(PENDING)}) n;
      insert into ratchet.start_mark (bucket, no, ids, seqs, begun_at)
        select b.id, 1, array(select j.id from ratchet.job j where j.bucket = b.id and j.begun_at is null order by j.id limit 10),
               array_fill(1::bigint, array[10]), now()
          from ratchet.bucket b`);
  }, 60_000);
  afterAll(() => database.drop());

  /** As the store sends it: on a connection of the application, told to go by the indexes. */
  async function plan(execute: string): Promise<{ nodes: Plan[]; blocks: number; rows: number }> {
    await client.query('begin');
    await client.query(setForStep(SCHEMA).text, ['2s']);
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) execute ${execute}`,
    );
    await client.query('rollback');
    const top = rows[0]!['QUERY PLAN'][0]!.Plan;
    const nodes: Plan[] = [];
    const walk = (node: Plan): void => {
      if (node['Relation Name'] === 'job' && node['Node Type'] !== 'ModifyTable') nodes.push(node);
      node.Plans?.forEach(walk);
    };
    walk(top);
    const read = nodes.reduce((sum, node) => sum + rowsOf(node), 0);
    return { nodes, blocks: (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0), rows: read };
  }
  const byIndex = ({ nodes }: { nodes: Plan[] }): boolean =>
    nodes.length > 0 && nodes.every(({ 'Node Type': type }) => /^Index/.test(type));

  it.each(['before', 'after'])('the list of buckets reads what runs, once, %s an ANALYZE', async (when) => {
    if (when === 'after')
      await database.query('vacuum analyze ratchet.job, ratchet.bucket, ratchet.start_mark');
    const found = await plan('buckets(0)');
    expect(byIndex(found)).toBe(true);
    expect(found.rows).toBeGreaterThanOrEqual(RUNNING);
    // And the rows that a start mark names.
    expect(found.rows).toBeLessThan(RUNNING * 1.1);
    const { rows } = await client.query<{ row: string }>('execute buckets(0)');
    const shown = rows.map(({ row }) => JSON.parse(row) as { begun: number; buffered: number });
    expect(shown.length).toBe(BUCKETS);
    expect(shown.reduce((sum, { begun, buffered }) => sum + begun + buffered, 0)).toBe(RUNNING);
    expect(shown.reduce((sum, { buffered }) => sum + buffered, 0)).toBe(RUNNING / 2 - BUCKETS * 10);
  });

  it('the list of lanes hops from lane to lane', async () => {
    const found = await plan('lanes');
    expect(byIndex(found)).toBe(true);
    expect(found.blocks).toBeLessThan(1_000);
  });

  it('a step of a move reads what it moves', async () => {
    const found = await plan(`move('lane-1', 'lane-x', '{0,1,2,3,4}')`);
    expect(byIndex(found)).toBe(true);
    expect(found.rows).toBeLessThan(3_000);
    expect(found.blocks).toBeLessThan(60_000);
  });
});
