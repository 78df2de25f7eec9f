import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type BucketRef, type ClaimedJob, type StoreTransaction } from '../../lib/store/job-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, transactionOf, turn } from '../support/store.js';

let database: TestDatabase;
let store: PostgresJobStore;
let bucket: BucketRef;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
  await database.query('create table note (text text)');
});
beforeEach(async () => {
  await database.query(
    'truncate ratchet.job, ratchet.job_history, ratchet.execution, ratchet.job_payload, note',
  );
  bucket = await store.openBucket(await registerTestNode(store), 'default');
  client = await database.connect();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

async function claimed(overrides = {}): Promise<ClaimedJob> {
  await store.insert([newJob(overrides)]);
  const { claimed: jobs } = await store.exchange(turn(bucket, { want: 1 }));
  return jobs[0]!;
}

async function begun(): Promise<StoreTransaction> {
  await client.query('begin');
  const transaction = { ...transactionOf(client), mark: randomUUID() };
  await store.enlist(transaction);
  return transaction;
}

const success = ({ id, claimSeq }: ClaimedJob, rest: object = {}) =>
  ({ id, claimSeq, outcome: 'succeeded', ...rest }) as const;

describe('an outcome recorded within the application’s transaction', () => {
  it('is seen with its rows after the commit, and not before', async () => {
    const job = await claimed();
    const transaction = await begun();
    await client.query(`insert into note values ('row')`);
    expect(await store.settleWithin(transaction, success(job, { result: '{"a":1}', progress: '5' }))).toBe(
      true,
    );
    expect(await store.get(job.id)).toMatchObject({ status: 'running' });
    await client.query('commit');
    expect(await store.get(job.id)).toMatchObject({
      status: 'succeeded',
      result: { a: 1 },
      progress: 5,
      claimSeq: job.claimSeq,
      node: bucket.node.id,
    });
    expect(await database.query('select from ratchet.job')).toHaveLength(0);
    expect(await store.fateOf(job)).toBe('recorded');
  });

  it('is undone by a rollback', async () => {
    const job = await claimed();
    const transaction = await begun();
    expect(await store.settleWithin(transaction, success(job))).toBe(true);
    await client.query('rollback');
    expect(await store.get(job.id)).toMatchObject({ status: 'running' });
    expect(await store.fateOf(job)).toBe('standing');
  });

  it('keeps nothing of a success that is to be dropped', async () => {
    const job = await claimed({ payload: JSON.stringify({ text: 'x'.repeat(3_000) }) });
    const transaction = await begun();
    expect(await store.settleWithin(transaction, success(job, { drop: true }))).toBe(true);
    await client.query('commit');
    expect(await store.get(job.id)).toBeUndefined();
    expect(await database.query('select from ratchet.job_payload')).toHaveLength(0);
    expect(await store.fateOf({ ...job, drop: true })).toBe('recorded');
  });

  it('may be a snooze: due again after the delay, with a closed execution', async () => {
    const job = await claimed();
    const transaction = await begun();
    const snooze = { id: job.id, claimSeq: job.claimSeq, outcome: 'snoozed', delayMs: 60_000 } as const;
    expect(await store.settleWithin(transaction, snooze)).toBe(true);
    await client.query('commit');
    const view = await store.get(job.id);
    expect(view).toMatchObject({ status: 'pending', failures: 0, node: undefined });
    const waitMs = view!.scheduledAt.getTime() - (await store.now()).getTime();
    expect(waitMs).toBeGreaterThan(50_000);
    expect(await store.executions(job.id)).toMatchObject([{ outcome: 'snoozed', node: bucket.node.id }]);
    expect(await store.fateOf(job)).toBe('recorded');
  });

  it('began when the node says so, of a job that was claimed ahead, and no mark is asked', async () => {
    await store.insert([newJob()]);
    const ahead = { beginNow: 0, begin: [], mark: 0, forget: [] };
    const [job] = (await store.exchange(turn(bucket, { want: 1, ahead }))).claimed;
    const transaction = await begun();
    expect(await store.settleWithin(transaction, success(job!, { ranMs: 5_000 }))).toBe(true);
    await client.query('commit');
    const view = await store.get(job!.id);
    expect(view).toMatchObject({ status: 'succeeded', executions: 1 });
    expect(view!.endedAt!.getTime() - view!.begunAt!.getTime()).toBe(5_000);
  });

  it('pauses a job for which a pause was asked when it snoozes', async () => {
    const job = await claimed();
    await database.query('update ratchet.job set pause_requested = true');
    const transaction = await begun();
    await store.settleWithin(transaction, {
      id: job.id,
      claimSeq: job.claimSeq,
      outcome: 'snoozed',
      delayMs: 0,
    });
    await client.query('commit');
    expect(await store.get(job.id)).toMatchObject({ status: 'paused', pauseRequested: false });
  });

  it('is refused when the claim no longer stands', async () => {
    const job = await claimed();
    const { id, claimSeq } = job;
    await store.exchange(turn(bucket, { want: 0, settle: [{ id, claimSeq, outcome: 'released' }] }));
    const transaction = await begun();
    expect(await store.settleWithin(transaction, success(job))).toBe(false);
    await client.query('commit');
    expect(await store.get(job.id)).toMatchObject({ status: 'pending' });
    expect(await store.fateOf(job)).toBe('lost');
  });

  it.each(['commit', 'rollback', 'commit and chain'])(
    'writes nothing after a %s of the handler',
    async (end) => {
      const job = await claimed();
      const transaction = await begun();
      await client.query(end);
      await expect(store.settleWithin(transaction, success(job))).rejects.toMatchObject({
        code: 'TRANSACTION_NOT_ACTIVE',
      });
      await client.query('rollback');
      expect(await store.get(job.id)).toMatchObject({ status: 'running' });
    },
  );

  it('fails in a transaction that is broken', async () => {
    const job = await claimed();
    const transaction = await begun();
    await client.query('select 1/0').catch(() => undefined);
    await expect(store.settleWithin(transaction, success(job))).rejects.toMatchObject({
      sourceCode: '25P02',
    });
  });

  it('does not hold the row for ever when the process freezes before its commit', async () => {
    const job = await claimed();
    const transaction = await begun();
    expect(await store.settleWithin(transaction, success(job))).toBe(true);
    // Nothing more is sent: fateOf waits until the server has ended the session, as any taker of the row would.
    expect(await fate(job)).toBe('standing');
    await expect(client.query('commit')).rejects.toThrow();
  }, 20_000);

  it('makes whoever asks for its fate wait for its end', async () => {
    const job = await claimed();
    const transaction = await begun();
    await store.settleWithin(transaction, success(job));
    const asked = store.fateOf(job);
    await somebodyWaits();
    await client.query('commit');
    expect(await asked).toBe('recorded');
  });
});

describe('when a job began that was claimed ahead', () => {
  it.each(['ratchet.jobs', 'ratchet.executions'])(
    'is looked up in the newest marks first (%s)',
    async (view) => {
      await store.insert([newJob()]);
      const ahead = { beginNow: 0, begin: [], mark: 0, forget: [] };
      const [job] = (await store.exchange(turn(bucket, { want: 1, ahead }))).claimed;
      await database.query(
        `insert into ratchet.start_mark (bucket, no, ids, seqs, begun_at)
       select $1, no, array[case when no = 500 then $2::uuid else gen_random_uuid() end], array[$3::bigint], now()
         from generate_series(1, 500) as no`,
        [bucket.id, job!.id, job!.claimSeq],
      );
      await client.query('begin');
      await client.query('set local enable_seqscan = off; set local enable_bitmapscan = off');
      const key = view === 'ratchet.jobs' ? 'id' : 'job_id';
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, costs off, timing off) select * from ${view} where ${key} = '${job!.id}'`,
      );
      await client.query('rollback');
      const plan = rows.map((row) => row['QUERY PLAN']);
      const scans = plan.filter((line) => line.includes('on start_mark'));
      expect(scans.length).toBeGreaterThan(0);
      for (const scan of scans) expect(scan).toMatch(/Index Scan Backward|never executed/);
      expect(plan.filter((line) => /Rows Removed by (Join )?Filter: (499|500)/.test(line))).toEqual([]);
    },
  );
});

describe('whether a claim stands', () => {
  it('is told without a lock', async () => {
    const job = await claimed();
    await client.query('begin');
    await client.query('select from ratchet.job where id = $1 for update', [job.id]);
    const connection = transactionOf(await database.connect());
    expect(await store.stands(job, connection)).toBe(true);
    expect(await store.stands({ ...job, claimSeq: '99' }, connection)).toBe(false);
    await client.query('rollback');
  });
});

/** The lock timeout of the engine's connections is about as long as the server waits. */
async function fate(job: ClaimedJob): Promise<string> {
  for (;;) {
    const answer = await store.fateOf(job).catch(() => undefined);
    if (answer) return answer;
  }
}

async function somebodyWaits(): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  while ((await database.query(waiting)).length === 0);
}
