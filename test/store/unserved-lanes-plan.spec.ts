import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { unservedLanes } from '../../lib/store/postgres/statements/unserved-lanes.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSchema, engineClient, SCHEMA } from './exchange-fixture.js';

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}

/** The look for unserved lanes runs every minute: its cost must go by the lanes, whatever stands in them. */
describe('the look for unserved lanes', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    await createSchema(database);
    await database.query('alter table ratchet.job set (autovacuum_enabled = off)');
    client = await engineClient(database);
    const { name, text } = unservedLanes(SCHEMA);
    await client.query({ name: name!, text, values: [0] });
    await database.query(`
      insert into ratchet.node (id, epoch, host, pid, version, lanes, handlers, state)
        values ('a', 1, 'h', 1, '1', array(select 'lane-' || n from generate_series(0, 9) n), '{}', 'running');
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'lane-' || n % 10, n % 5, now() - n * interval '1 ms', now()
          from generate_series(1, 200000) n;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'lost', 2, now() - interval '1 minute', now() from generate_series(1, 50000);
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, crashes)
        values (gen_random_uuid(), 'bad', 1, 'only suspects', 2, now() - interval '1 hour', now(), 2)`);
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  async function explain(): Promise<{ nodes: Plan[]; blocks: number }> {
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) execute "${unservedLanes(SCHEMA).name!}"(0)`,
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

  it.each(['before', 'after'])('hops by the indexes %s an ANALYZE', async (when) => {
    if (when === 'after') await database.query('vacuum analyze ratchet.job');
    const { nodes, blocks } = await explain();
    const onJobs = nodes.filter((node) => node['Relation Name'] === 'job').map((node) => node['Node Type']);
    expect(onJobs.every((type) => type === 'Index Scan' || type === 'Index Only Scan')).toBe(true);
    // A thousand rows of the one lane, a few pages for each of the others.
    expect(blocks).toBeLessThan(2_500);
    const { rows } = await client.query(`execute "${unservedLanes(SCHEMA).name!}"(0)`);
    expect(rows).toMatchObject([
      { lane: 'lost', due: 1_000, names: ['job'] },
      { lane: 'only suspects', due: 1, names: ['bad'] },
    ]);
  });
});
