import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { type NewJob, type NodeRef } from '../../../lib/store/job-store.js';
import { type PostgresJobStore } from '../../../lib/store/postgres/postgres-job-store.js';
import { insertJobs, insertRows } from '../../../lib/store/postgres/statements/insert-jobs.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { createStore, newJob, transactionOf, turn } from '../../support/store.js';
import { SCHEMA } from '../exchange-fixture.js';
import { type Plan } from '../schedules/explain.js';

let database: TestDatabase;
let store: PostgresJobStore;
let lane: string;
let node: NodeRef;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
beforeEach(async () => {
  lane = `lane-${uuidv7()}`;
  node = await register({ [lane]: [0] });
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

const register = (disabled: Record<string, (0 | 1)[]>): Promise<NodeRef> =>
  store.registerNode({
    id: `n-${uuidv7()}`,
    host: 'test',
    pid: 1,
    version: '0',
    lanes: [lane],
    handlers: [],
    disabled,
  });
const job = (overrides: Partial<NewJob> = {}): NewJob => newJob({ lane, ...overrides });
const low = (overrides: Partial<NewJob> = {}): NewJob => job({ priority: 0, ...overrides });
const idempotencyKey = () => ({ key: uuidv7(), expiresInMs: 60_000 });
const disabled = (): object => ({ outcome: 'disabled', nodes: [node.id] });
const count = (): Promise<number> => store.count({ lanes: [lane] });

describe('a job in a priority that every node of its lane has switched off', () => {
  it.each([
    ['without a key', () => low()],
    ['with an idempotency key', () => low({ idempotencyKey: idempotencyKey() })],
    ['with a business key', () => low({ businessKey: uuidv7() })],
    ['that replaces', () => low({ businessKey: uuidv7(), onConflict: 'replace' })],
    ['with both keys', () => low({ businessKey: uuidv7(), idempotencyKey: idempotencyKey() })],
    ['with a large payload', () => low({ payload: JSON.stringify('x'.repeat(5_000)) })],
  ] satisfies [string, () => NewJob][])('is refused %s, and leaves nothing', async (_what, make) => {
    const refused = make();
    expect(await store.insert([refused])).toEqual([disabled()]);
    expect(await count()).toBe(0);
    const [left] = await database.query<{ n: number }>(
      `select ((select count(*) from ratchet.idempotency_key where job_id = $1)
             + (select count(*) from ratchet.job_payload where job_id = $1))::int as n`,
      [refused.id],
    );
    expect(left).toEqual({ n: 0 });
    // The same job is taken as soon as a node serves its priority.
    const other = await register({});
    expect(await store.insert([refused])).toEqual([{ outcome: 'created', id: refused.id }]);
    await store.removeNode(other);
  });

  it('takes no job of its call along, and none of them gets in', async () => {
    const keyed = (): Partial<NewJob> => ({ businessKey: uuidv7() });
    for (const jobs of [
      [job(), low(), job()],
      [job(keyed()), low(), job({ idempotencyKey: idempotencyKey() })],
      [job(), low(keyed()), job(keyed())],
      [...Array.from({ length: 2_500 }, () => job()), low()],
    ]) {
      const answers = await store.insert(jobs);
      expect(answers).toEqual(
        jobs.map(({ priority }) => (priority === 0 ? disabled() : { outcome: 'left_out' })),
      );
      expect(await count()).toBe(0);
    }
  });

  it('leaves the transaction usable that it was enqueued in', async () => {
    const client = await database.connect();
    await client.query('begin');
    const inside = transactionOf(client);
    expect(await store.insert([low()], inside)).toEqual([disabled()]);
    expect(await store.insert([low({ businessKey: uuidv7() }), job()], inside)).toEqual([
      disabled(),
      { outcome: 'left_out' },
    ]);
    expect(await store.insert([job()], inside)).toMatchObject([{ outcome: 'created' }]);
    await client.query('commit');
    expect(await count()).toBe(1);
  });

  it('replaces nobody', async () => {
    const businessKey = uuidv7();
    const holder = job({ businessKey });
    await store.insert([holder]);
    expect(await store.insert([low({ businessKey, onConflict: 'replace' })])).toEqual([disabled()]);
    expect(await store.insert([low({ businessKey, onConflict: 'replace' }), job()])).toMatchObject([
      disabled(),
      { outcome: 'left_out' },
    ]);
    expect(await store.get(holder.id)).toMatchObject({ status: 'pending' });
  });

  it('is answered by the one that has its key', async () => {
    const other = await register({});
    const key = idempotencyKey();
    const businessKey = uuidv7();
    const [first, held] = [low({ idempotencyKey: key }), low({ businessKey })];
    await store.insert([first]);
    await store.insert([held]);
    await store.removeNode(other);
    const existing = { outcome: 'existing', id: first.id };
    const returned = { outcome: 'existing', id: held.id };
    const again = (): NewJob => low({ idempotencyKey: key });
    const returning = (): NewJob => low({ businessKey, onConflict: 'return' });
    expect(await store.insert([again()])).toEqual([existing]);
    expect(await store.insert([returning()])).toEqual([returned]);
    expect(await store.insert([low({ businessKey })])).toMatchObject([{ outcome: 'held', holder: held.id }]);
    expect(await store.insert([again(), returning()])).toEqual([existing, returned]);
    store.travel(120_000);
    try {
      expect(await store.insert([again()])).toEqual([disabled()]);
    } finally {
      store.travel(0);
    }
  });

  it('is refused to a child as well, and a fence that has fallen counts before that', async () => {
    const parent = job();
    await store.insert([parent]);
    const bucket = await store.openBucket(node, lane);
    const { claimed } = await store.exchange(turn(bucket));
    const claimSeq = claimed[0]!.claimSeq;
    expect(await store.insert([low({ parent: { id: parent.id, claimSeq } })])).toEqual([disabled()]);
    expect(await store.insert([low({ parent: { id: parent.id, claimSeq: '99' } })])).toEqual([
      { outcome: 'fenced' },
    ]);
  });

  it('is none when it is a retry, or redriven, or resumed: it was taken long ago', async () => {
    const other = await register({});
    const [retried, dead] = [low(), low()];
    await store.insert([retried, dead]);
    const bucket = await store.openBucket(other, lane);
    const { claimed } = await store.exchange(turn(bucket));
    await store.removeNode(other);
    const settle = claimed.map(({ id, claimSeq }) =>
      id === dead.id
        ? { id, claimSeq, outcome: 'failed' as const, error: 'e' }
        : { id, claimSeq, outcome: 'retried' as const, error: 'e', delayMs: 0 },
    );
    await store.exchange(turn(bucket, { settle, want: 0 }));
    expect(await store.redrive(dead.id)).toMatchObject({ outcome: 'redriven' });
    expect(await store.get(dead.id)).toMatchObject({ status: 'pending' });
    expect(await store.get(retried.id)).toMatchObject({ status: 'pending' });
  });

  it('costs a page of a small table for each statement, however many lanes and jobs there are', async () => {
    await database.query(
      `insert into ratchet.lane (name) select 'quiet-' || n from generate_series(1, 20000) n on conflict do nothing`,
    );
    await database.query('vacuum analyze ratchet.lane');
    const { text } = insertJobs({
      kind: 'plain',
      fenced: false,
      large: false,
      guarded: false,
      checked: false,
      marked: false,
    })(SCHEMA);
    const client = await database.connect();
    await client.query(`prepare enter (float8, json) as ${text}`);
    const rows = insertRows(
      Array.from({ length: 1_000 }, () => job()),
      1_000,
    );
    await client.query('begin');
    const { rows: explained } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) execute enter(0, '${rows}')`,
    );
    await client.query('rollback');
    const looks: Plan[] = [];
    const walk = (plan: Plan): void => {
      if (plan['Relation Name'] === 'lane') looks.push(plan);
      plan.Plans?.forEach(walk);
    };
    walk(explained[0]!['QUERY PLAN'][0]!.Plan);
    expect(looks.length).toBe(1);
    expect(looks[0]!['Actual Loops']).toBe(1);
    expect(looks[0]!['Node Type']).not.toBe('Seq Scan');
    expect((looks[0]!['Shared Hit Blocks'] ?? 0) + (looks[0]!['Shared Read Blocks'] ?? 0)).toBeLessThan(30);
  });
});
