import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { READ_AHEAD } from '../../lib/store/postgres/statements/exchange/claim-part.js';
import { type BucketRef, type ExchangeRequest, type Settlement } from '../../lib/store/job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  createSchema,
  engineClient,
  exchangeCall,
  openBucket,
  turnsOn,
  uuid,
  type Turn,
} from './exchange-fixture.js';

/**
 * Rule 6: one shape from the first row to the millionth, whatever the statistics say. The statement is prepared once, on
 * the empty table, as a node does that starts on a young schema; then it is explained (and run) in each state.
 */
const MILLION = 1_000_000;
const BUCKET = '10000000-0000-7000-8000-000000000001';

let database: TestDatabase;
let client: pg.Client;
let turn: Turn;
let bucket: BucketRef;

beforeAll(async () => {
  database = await createTestDatabase();
  await createSchema(database);
  await database.query('alter table ratchet.job set (autovacuum_enabled = off)');
  client = await engineClient(database);
  turn = turnsOn(client);
  bucket = await openBucket(database, BUCKET);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}

const AHEAD = { beginNow: 8, begin: [{ id: uuid(900_001), claimSeq: '1' }], mark: 1, forget: [7] };

/** Each shape that this connection sends is prepared now, on the table as it is. */
async function prepare(): Promise<void> {
  for (const want of [24, 0]) {
    await turnsOn(client)(bucket, { want });
    await turnsOn(client)(bucket, { want, ahead: { ...AHEAD, begin: [] } });
  }
}

async function explain(
  want: number,
  settle: readonly Settlement[],
  ahead?: ExchangeRequest['ahead'],
): Promise<{ nodes: Plan[]; blocks: number }> {
  const { name, values } = exchangeCall({
    bucket,
    settle,
    progress: [],
    want,
    handlers: [{ name: 'job', version: 1 }],
    floors: {},
    wait: false,
    suspect: true,
    priorityBoostMs: 900_000,
    ...(ahead ? { ahead } : {}),
  });
  const literal = (value: string | number | boolean | null): string => (value === null ? 'null' : `${value}`);
  const literals = (
    values as (string | number | boolean | null | (string | number | boolean | null)[])[]
  ).map((value) =>
    Array.isArray(value)
      ? `'{${value.map(literal).join(',')}}'`
      : value === null
        ? 'null'
        : `'${literal(value)}'`,
  );
  await client.query('begin');
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
    `explain (analyze, buffers, format json) execute "${name}"(${literals.join(', ')})`,
  );
  await client.query('rollback');
  const top = rows[0]!['QUERY PLAN'][0]!.Plan;
  const nodes: Plan[] = [];
  const walk = (plan: Plan): void => {
    nodes.push(plan);
    plan.Plans?.forEach(walk);
  };
  walk(top);
  return { nodes, blocks: (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0) };
}

function expectTheShape(nodes: Plan[], claiming: boolean): void {
  const onJobs = nodes.filter(
    (node) => node['Relation Name'] === 'job' && node['Node Type'] !== 'ModifyTable',
  );
  expect(new Set(onJobs.map((node) => node['Node Type']))).toEqual(
    new Set(claiming ? ['Index Scan', 'Index Only Scan', 'Tid Scan'] : ['Index Scan']),
  );
  // Settles go by primary key, claims by the claim index; nothing is ever driven by the bucket.
  expect(new Set(onJobs.flatMap((node) => node['Index Name'] ?? []))).toEqual(
    new Set(claiming ? ['job_pkey', 'job_claim', 'job_suspect'] : ['job_pkey']),
  );
  for (const node of onJobs.filter((n) => n['Index Name'] === 'job_pkey'))
    expect(node['Index Cond']).toMatch(/\bid = /);
  expect(nodes.map((node) => node['Node Type'])).not.toContain('Hash Join');
  expect(nodes.map((node) => node['Node Type'])).not.toContain('Merge Join');
  expect(nodes.map((node) => node['Node Type'])).not.toContain('Materialize');
  // The only sort is that of the slices: at most five streams of 21.
  for (const sort of nodes.filter((node) => node['Node Type'] === 'Sort'))
    expect(sort['Actual Rows'] ?? 0).toBeLessThanOrEqual(105);
}

const settleOf = (n: number): Settlement[] =>
  Array.from({ length: n }, (_, i) => ({
    id: uuid(i),
    claimSeq: '1',
    outcome: 'succeeded' as const,
    result: 'null',
  }));

async function expectCheapTurns(): Promise<void> {
  for (const want of [0, 24, 500]) {
    for (const ahead of [undefined, AHEAD]) {
      const { nodes, blocks } = await explain(want, settleOf(50), ahead);
      expectTheShape(nodes, want > 0);
      // A claim of a row touches a handful of blocks; the bound fails at any scan of the table.
      expect(blocks).toBeLessThan(1500 + want * 40);
    }
  }
}

describe('the exchange keeps its plan', () => {
  it('on an empty table, where it is prepared', async () => {
    await prepare();
    await expectCheapTurns();
  });

  it('after a million rows without ANALYZE', async () => {
    await database.query(
      `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload)
       select ('00000000-0000-7000-9000-' || lpad(to_hex(g), 12, '0'))::uuid, 'job', 1, 'default', g % 5,
              now() - (g % 7200) * interval '1 second', now(), '{"n": 1}'
         from generate_series(1, $1::int) g`,
      [MILLION],
    );
    await expectCheapTurns();
  }, 120_000);

  it('after ANALYZE', async () => {
    await database.query('analyze ratchet.job');
    await expectCheapTurns();
    // A statement prepared afresh now has the same shape.
    const fresh = await engineClient(database);
    const before = client;
    client = fresh;
    await prepare();
    await expectCheapTurns();
    client = before;
    await fresh.end();
  }, 120_000);

  it('after an ANALYZE while nothing runs, with a bucket full of running rows later', async () => {
    const { claimed } = await turn(bucket, { want: 2000 });
    expect(claimed).toHaveLength(2000);
    const { nodes, blocks } = await explain(
      0,
      claimed
        .slice(0, 1000)
        .map((job) => ({ id: job.id, claimSeq: job.claimSeq, outcome: 'succeeded' as const })),
    );
    expectTheShape(nodes, false);
    expect(blocks).toBeLessThan(1000 * 40);
  }, 120_000);

  it('a stream full of jobs for other nodes costs a bounded read', async () => {
    await database.query(`update ratchet.job set name = 'foreign' where status = 0 and priority = 4`);
    const { nodes } = await explain(24, []);
    expectTheShape(nodes, true);
    const read = nodes.filter(
      (node) => node['Node Type'] === 'Index Scan' && node['Index Name'] === 'job_claim',
    );
    for (const node of read) expect(node['Actual Rows'] ?? 0).toBeLessThanOrEqual(24 + READ_AHEAD);
  }, 120_000);

  it('on a table that was vacuumed and analyzed empty while a snapshot kept its dead entries', async () => {
    const pin = await database.connect();
    await pin.query('begin isolation level repeatable read');
    await pin.query('select txid_current()');
    await database.query('delete from ratchet.job');
    await database.query('vacuum analyze ratchet.job');
    const fresh = await engineClient(database);
    const before = client;
    client = fresh;
    await turnsOn(fresh)(bucket, { want: 0 });
    const { nodes, blocks } = await explain(0, settleOf(50));
    expectTheShape(nodes, false);
    expect(blocks).toBeLessThan(50 * 40);
    client = before;
    await fresh.end();
    await pin.query('rollback');
  }, 120_000);
});
