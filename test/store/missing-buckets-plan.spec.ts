import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { selectMissingBuckets } from '../../lib/store/postgres/statements/rescue.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSchema, engineClient, SCHEMA } from './exchange-fixture.js';

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}

const BUCKETS = 20;

/** The look for claims of missing buckets runs every minute: its cost must go by the buckets, however much runs or waits. */
describe('the look for missing buckets', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    await createSchema(database);
    await database.query('alter table ratchet.job set (autovacuum_enabled = off)');
    client = await engineClient(database);
    const { name, text } = selectMissingBuckets(SCHEMA);
    await client.query({ name: name!, text });
    await database.query(`
      insert into ratchet.bucket (id, node_id, node_epoch, lane, status)
        select lpad(n::text, 32, '0')::uuid, 'n', 1, 'l', 'active' from generate_series(1, ${BUCKETS}) n where n <> 7;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, status, bucket)
        select gen_random_uuid(), 'job', 1, 'l', 2, now(), now(), 1, lpad((1 + n % ${BUCKETS})::text, 32, '0')::uuid
          from generate_series(1, 40000) n;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'l', 2, now(), now() from generate_series(1, 100000) n`);
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  it.each(['before', 'after'])('hops by the index of running jobs %s an ANALYZE', async (when) => {
    if (when === 'after') await database.query('vacuum analyze ratchet.job, ratchet.bucket');
    const run = `execute "${selectMissingBuckets(SCHEMA).name!}"`;
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) ${run}`,
    );
    const top = rows[0]!['QUERY PLAN'][0]!.Plan;
    const nodes: Plan[] = [];
    const walk = (plan: Plan): void => {
      nodes.push(plan);
      plan.Plans?.forEach(walk);
    };
    walk(top);
    // Start marks are few, and are all looked at.
    const reads = nodes.filter((node) => ['job', 'bucket'].includes(node['Relation Name'] ?? ''));
    expect(reads.length).toBeGreaterThan(0);
    expect(reads.every(({ 'Node Type': type }) => /^Index (Only )?Scan$/.test(type))).toBe(true);
    // A few pages for each bucket.
    expect((top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0)).toBeLessThan(BUCKETS * 10);
    expect((await client.query(run)).rows).toEqual([{ id: '00000000-0000-0000-0000-000000000007' }]);
  });
});
