import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { fallbackNeeded, starvingStreams } from '../../lib/store/postgres/statements/fallback.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSchema, engineClient, SCHEMA } from './exchange-fixture.js';

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}

const STARVING = `(0, '{job,bad}', '{1,1}', 1000, 'a', 1, '{}')`;

/** Every node looks twice a minute: the cost must go by the lanes and by what starves, whatever stands in the lanes that are served. */
describe('the looks of the fallback watch', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    await createSchema(database);
    await database.query('alter table ratchet.job set (autovacuum_enabled = off)');
    client = await engineClient(database);
    await client.query(`prepare starving as ${starvingStreams(SCHEMA).text}`);
    await client.query(`prepare needed as ${fallbackNeeded(SCHEMA).text}`);
    await database.query(`
      insert into ratchet.node (id, epoch, host, pid, version, lanes, handlers, state)
        values ('a', 1, 'h', 1, '1', '{}', '{}', 'running');
      insert into ratchet.bucket (id, node_id, node_epoch, lane, status, created_at, status_at)
        select gen_random_uuid(), 'a', 1, 'lane-' || n, 'active', now(), now() from generate_series(0, 8) n;
      insert into ratchet.bucket (id, node_id, node_epoch, lane, priority, status, created_at, status_at)
        select gen_random_uuid(), 'a', 1, 'lane-9', p, 'active', now(), now() from generate_series(1, 4) p;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'lane-' || n % 10, 1 + n % 4, now() - n * interval '1 s', now()
          from generate_series(1, 300000) n;
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'lane-9', 0, now() - interval '1 minute', now() from generate_series(1, 5);
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        select gen_random_uuid(), 'job', 1, 'lost', 2, now() - interval '1 minute', now() from generate_series(1, 50000);
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, crashes)
        values (gen_random_uuid(), 'bad', 1, 'only suspects', 2, now() - interval '1 hour', now(), 2);
      insert into ratchet.lane (name, paused_at) values ('paused', now());
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
        values (gen_random_uuid(), 'job', 1, 'paused', 2, now() - interval '1 hour', now())`);
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  async function explain(statement: string): Promise<{ types: Set<string>; blocks: number }> {
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) execute ${statement}`,
    );
    const top = rows[0]!['QUERY PLAN'][0]!.Plan;
    const types = new Set<string>();
    const walk = (plan: Plan): void => {
      if (plan['Relation Name'] === 'job') types.add(plan['Node Type']);
      plan.Plans?.forEach(walk);
    };
    walk(top);
    return { types, blocks: (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0) };
  }

  const byIndex = ['Index Scan', 'Index Only Scan'];

  it.each(['before', 'after'])('hop by the indexes %s an ANALYZE', async (when) => {
    if (when === 'after') await database.query('vacuum analyze ratchet.job');
    const looked = await explain(`starving ${STARVING}`);
    expect([...looked.types].filter((type) => !byIndex.includes(type))).toEqual([]);
    // Those of the lost lane that are counted, a few pages for each of the others.
    expect(looked.blocks).toBeLessThan(2_500);
    const { rows } = await client.query(`execute starving ${STARVING}`);
    expect(rows).toMatchObject([
      { lane: 'lane-9', priority: 0, due: 5, names: ['job'] },
      { lane: 'lost', priority: 2, due: 1_000, names: ['job'] },
      { lane: 'only suspects', priority: 2, due: 1, names: ['bad'] },
    ]);
    for (const [lane, need] of [
      ['lane-1', 'served'],
      ['lane-9', 'starving'],
      ['lost', 'starving'],
      ['nowhere', 'idle'],
    ]) {
      const asked = await explain(`needed ('${lane!}', '{job,bad}', '{1,1}')`);
      expect([...asked.types].filter((type) => !byIndex.includes(type))).toEqual([]);
      expect(asked.blocks).toBeLessThan(200);
      const answer = await client.query(`execute needed ('${lane!}', '{job,bad}', '{1,1}')`);
      expect(answer.rows).toEqual([{ need }]);
    }
  });

  it('cost nothing of the backlog where all is served', async () => {
    await database.query("delete from ratchet.job where lane not like 'lane-_'");
    await database.query(`insert into ratchet.bucket (id, node_id, node_epoch, lane, status, created_at, status_at)
      values (gen_random_uuid(), 'a', 1, 'lane-9', 'active', now(), now())`);
    await database.query('vacuum analyze ratchet.job');
    const { blocks } = await explain(`starving ${STARVING}`);
    expect(blocks).toBeLessThan(200);
    expect((await client.query(`execute starving ${STARVING}`)).rows).toEqual([]);
  });
});
