import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type pg from 'pg';
import { type BucketRef } from '../../lib/store/job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  createSchema,
  engineClient,
  insertJobs,
  openBucket,
  turnsOn,
  uuid,
  type Row,
  type Turn,
} from './exchange-fixture.js';

const BUCKET = '10000000-0000-7000-8000-000000000001';
let database: TestDatabase;
let client: pg.Client;
let turn: Turn;
let bucket: BucketRef;

beforeAll(async () => {
  database = await createTestDatabase();
  await createSchema(database);
  client = await engineClient(database);
  turn = turnsOn(client);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});
beforeEach(async () => {
  bucket = await openBucket(database, BUCKET);
});
afterEach(async () => {
  await database.query(
    'truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution, ratchet.bucket, ratchet.job_payload',
  );
});

const claimOne = async (n: number) => {
  await insertJobs(database, [{ id: uuid(n) }]);
  const { claimed } = await turn(bucket, { want: 1 });
  return claimed[0]!;
};
const live = () =>
  database.query<{ id: string; status: number; claim_seq: string; bucket: string | null }>(
    'select id, status, claim_seq, bucket from ratchet.job order by id',
  );

describe('claiming', () => {
  it('marks the row running, for the bucket, under a higher claim_seq, and counts the execution', async () => {
    const job = await claimOne(1);
    expect(job).toMatchObject({ id: uuid(1), name: 'job', claimSeq: '1', executions: 1, payload: { n: 1 } });
    expect(await live()).toEqual([{ id: uuid(1), status: 1, claim_seq: '1', bucket: BUCKET }]);
  });

  it('reads a payload that lies in its own table', async () => {
    await insertJobs(database, [{ id: uuid(1) }]);
    await database.query('update ratchet.job set payload = null');
    await database.query(`insert into ratchet.job_payload values ($1, '{"big": true}')`, [uuid(1)]);
    const { claimed } = await turn(bucket, { want: 1 });
    expect(claimed[0]!.payload).toEqual({ big: true });
  });

  it('ends with the payload that makes the answer large, and says that more is due now', async () => {
    await insertJobs(
      database,
      Array.from({ length: 30 }, (_, n) => ({ id: uuid(n), overdue: 100 - n })),
    );
    await database.query(`update ratchet.job set payload = null where id <> $1`, [uuid(0)]);
    // Numbers in disorder, so that they are stored as long as they are.
    await database.query(
      `insert into ratchet.job_payload
       select j.id, to_jsonb(array(select random() from generate_series(1, 50000) where j.id is not null))
         from ratchet.job j where j.payload is null`,
    );
    const sizes: number[] = [];
    let left = 30;
    while (left > 0) {
      const { claimed, nextDueInMs } = await turn(bucket, { want: 100 });
      expect(claimed[0]!.id).toBe(uuid(30 - left));
      sizes.push(JSON.stringify(claimed.map(({ payload }) => payload)).length);
      left -= claimed.length;
      expect(nextDueInMs).toBe(left > 0 ? 0 : undefined);
    }
    expect(sizes.length).toBeGreaterThan(2);
    expect(Math.max(...sizes)).toBeLessThan(20_000_000);
  });

  it('takes a job alone when its payload is larger than what an answer should hold', async () => {
    await insertJobs(database, [{ id: uuid(1), overdue: 2 }, { id: uuid(2) }]);
    await database.query('update ratchet.job set payload = null');
    await database.query(
      `insert into ratchet.job_payload select id, to_jsonb(repeat('x', 40000000)) from ratchet.job`,
    );
    for (const n of [1, 2]) {
      const { claimed } = await turn(bucket, { want: 2 });
      expect(claimed.map(({ id }) => id)).toEqual([uuid(n)]);
    }
  });

  it('takes priority + floor(overdue / boost), then time, exactly, for any backlog', async () => {
    const boost = 900;
    const row = fc.record({
      priority: fc.integer({ min: 0, max: 4 }),
      overdue: fc.integer({ min: 1, max: 4 * 3600 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 25 }),
        async (rows, want) => {
          await database.query('truncate ratchet.job');
          // Half a second off the interval's edges: the statement's now() is a little later than the insert's.
          const jobs = rows.map((r, i) => ({ ...r, id: uuid(i + 1), overdue: r.overdue + 0.3 + i / 1e6 }));
          await insertJobs(database, jobs);
          const level = (r: { priority: number; overdue: number }) =>
            r.priority + Math.floor(r.overdue / boost);
          const expected = jobs
            .filter((j) => Math.floor(j.overdue / boost) === Math.floor((j.overdue + 0.5) / boost))
            .sort((a, b) => level(b) - level(a) || b.overdue - a.overdue)
            .map((j) => j.id);
          fc.pre(expected.length === jobs.length);
          const got: string[] = [];
          for (;;) {
            const { claimed } = await turn(bucket, { want, priorityBoostMs: boost * 1000 });
            if (claimed.length === 0) break;
            got.push(...claimed.map((j) => j.id));
          }
          expect(got).toEqual(expected);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('with boost 0 goes by priority, then time', async () => {
    await insertJobs(database, [
      { id: uuid(1), priority: 1, overdue: 90_000 },
      { id: uuid(2), priority: 3, overdue: 1 },
      { id: uuid(3), priority: 3, overdue: 5 },
    ]);
    const { claimed } = await turn(bucket, { want: 3, priorityBoostMs: 0 });
    expect(claimed.map((j) => j.id)).toEqual([uuid(3), uuid(2), uuid(1)]);
  });

  it('beyond 20 intervals is oldest first, and loses nothing', async () => {
    await insertJobs(database, [
      { id: uuid(1), priority: 4, overdue: 30 * 900 },
      { id: uuid(2), priority: 4, overdue: 90 * 900 },
      { id: uuid(3), priority: 4, overdue: 1 },
    ]);
    const { claimed } = await turn(bucket, { want: 5 });
    expect(claimed.map((j) => j.id)).toEqual([uuid(2), uuid(1), uuid(3)]);
  });

  it('leaves future jobs, other lanes, unknown handlers and newer versions', async () => {
    await insertJobs(database, [
      { id: uuid(1), overdue: -60 },
      { id: uuid(2), lane: 'mail' },
      { id: uuid(3), name: 'other' },
      { id: uuid(4), version: 2 },
    ]);
    const answer = await turn(bucket, { want: 10 });
    expect(answer.claimed).toEqual([]);
    expect(answer.nextDueInMs).toBeGreaterThan(55_000);
    expect(answer.nextDueInMs).toBeLessThanOrEqual(60_000);
  });

  it('is never short while another stream has work, although the first stream is locked by somebody', async () => {
    const rows: Row[] = [];
    for (let n = 1; n <= 30; n++) rows.push({ id: uuid(n), priority: n <= 20 ? 4 : 1 });
    await insertJobs(database, rows);
    const other = await database.connect();
    await other.query('begin; select from ratchet.job where priority = 4 for update');
    const { claimed } = await turn(bucket, { want: 10 });
    expect(claimed.map((j) => j.priority)).toEqual(Array<number>(10).fill(1));
    await other.query('rollback');
  });

  it('reads a bounded number of rows of a stream that is full of jobs for other nodes', async () => {
    await database.query(
      `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
       select gen_random_uuid(), 'foreign', 1, 'default', 2, now() - interval '1 minute', now() from generate_series(1, 2000)`,
    );
    await insertJobs(database, [{ id: uuid(1) }]);
    // 301 index entries are read, none is ours: passing over such a stream is the floor's business.
    expect((await turn(bucket, { want: 1 })).claimed).toEqual([]);
    const [head] = await database.query<{ place: string }>(
      `select max(scheduled_at)::text as place from ratchet.job where name = 'foreign'`,
    );
    const { rows } = await client.query<{ place: string }>(
      'select scheduled_at::text as place from ratchet.job where id = $1',
      [uuid(1)],
    );
    expect(head!.place < rows[0]!.place).toBe(true);
    expect((await turn(bucket, { want: 1, floors: { 2: rows[0]!.place } })).claimed).toHaveLength(1);
  });

  it('takes at most one job that was running in two crashes, and none when it may not', async () => {
    await insertJobs(database, [
      { id: uuid(1) },
      { id: uuid(2) },
      { id: uuid(3) },
      { id: uuid(4), overdue: -60 },
    ]);
    await database.query('update ratchet.job set crashes = 2 where id <> $1', [uuid(1)]);
    const without = await turn(bucket, { want: 10, suspect: false });
    expect(without.claimed.map((j) => j.id)).toEqual([uuid(1)]);
    const answer = await turn(bucket, { want: 10 });
    expect(answer.claimed.map((j) => [j.id, j.crashes])).toEqual([[uuid(2), 2]]);
    expect(answer.nextDueInMs).toBeGreaterThan(55_000);
    await database.query('delete from ratchet.bucket');
    expect((await turn(bucket, { want: 10 })).claimed).toEqual([]);
  });

  it('reads further when it is told to', async () => {
    await insertJobs(
      database,
      Array.from({ length: 400 }, (_, i) => ({ id: uuid(i), overdue: 5, name: i < 399 ? 'foreign' : 'job' })),
    );
    await database.query('update ratchet.job set scheduled_at = (select min(scheduled_at) from ratchet.job)');
    expect((await turn(bucket, { want: 1 })).claimed).toEqual([]);
    expect((await turn(bucket, { want: 1, readPast: 100 })).claimed.map((j) => j.id)).toEqual([uuid(399)]);
  });

  it('starts at a floor, the floor row included', async () => {
    await insertJobs(database, [
      { id: uuid(1), overdue: 100 },
      { id: uuid(2), overdue: 50 },
      { id: uuid(3), overdue: 10 },
    ]);
    const { rows } = await client.query<{ place: string }>(
      'select scheduled_at::text as place from ratchet.job where id = $1',
      [uuid(2)],
    );
    const { claimed } = await turn(bucket, { want: 3, floors: { 2: rows[0]!.place } });
    expect(claimed.map((j) => j.id)).toEqual([uuid(2), uuid(3)]);
  });
});

describe('settling', () => {
  it('success moves the row to history with its result', async () => {
    const job = await claimOne(1);
    const answer = await turn(bucket, {
      settle: [{ id: job.id, claimSeq: '1', outcome: 'succeeded', result: '{"ok": true}', progress: '50' }],
    });
    expect(answer).toMatchObject({ owned: true, recorded: [job.id], skipped: [], lost: [] });
    expect(await live()).toEqual([]);
    expect(
      await database.query('select id, status, result, node, executions, progress from ratchet.jobs'),
    ).toEqual([
      { id: job.id, status: 'succeeded', result: { ok: true }, node: 'node-a', executions: 1, progress: 50 },
    ]);
  });

  it("history: 'drop' keeps nothing of a success, its payload neither", async () => {
    await insertJobs(database, [{ id: uuid(1) }]);
    await database.query('update ratchet.job set payload = null');
    await database.query(`insert into ratchet.job_payload values ($1, '1')`, [uuid(1)]);
    await turn(bucket, { want: 1 });
    await turn(bucket, { settle: [{ id: uuid(1), claimSeq: '1', outcome: 'succeeded', drop: true }] });
    expect(await database.query('select id from ratchet.jobs')).toEqual([]);
    expect(await database.query('select * from ratchet.job_payload')).toEqual([]);
  });

  it('failure moves it to the dead letter', async () => {
    const job = await claimOne(1);
    await turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'failed', error: 'boom' }] });
    expect(await database.query('select id, error, failures from ratchet.dead_letter')).toEqual([
      { id: job.id, error: 'boom', failures: 1 },
    ]);
    expect(await database.query('select outcome, number from ratchet.executions')).toEqual([
      { outcome: 'failed', number: 1 },
    ]);
  });

  it('retry, snooze and release give the row back and close the execution; only the retry is charged', async () => {
    await insertJobs(database, [{ id: uuid(1) }, { id: uuid(2) }, { id: uuid(3) }]);
    await turn(bucket, { want: 3 });
    const answer = await turn(bucket, {
      settle: [
        { id: uuid(1), claimSeq: '1', outcome: 'retried', error: 'flaky', delayMs: 60_000 },
        { id: uuid(2), claimSeq: '1', outcome: 'snoozed', delayMs: 120_000 },
        { id: uuid(3), claimSeq: '1', outcome: 'released', error: 'node node-a shut down; job released' },
      ],
      want: 0,
    });
    expect(answer.recorded).toHaveLength(3);
    expect(
      await database.query(
        `select id, status, failures, last_error, claim_seq, executions,
                round(extract(epoch from scheduled_at - now()))::int as due from ratchet.job order by id`,
      ),
    ).toEqual([
      { id: uuid(1), status: 0, failures: 1, last_error: 'flaky', claim_seq: '1', executions: 1, due: 60 },
      { id: uuid(2), status: 0, failures: 0, last_error: null, claim_seq: '1', executions: 1, due: 120 },
      {
        id: uuid(3),
        status: 0,
        failures: 0,
        last_error: null,
        claim_seq: '2',
        executions: 1,
        due: expect.any(Number),
      },
    ]);
    expect(
      await database.query('select job_id, outcome, number, node from ratchet.execution order by job_id'),
    ).toEqual([
      { job_id: uuid(1), outcome: 'retried', number: 1, node: 'node-a' },
      { job_id: uuid(2), outcome: 'snoozed', number: 1, node: 'node-a' },
      { job_id: uuid(3), outcome: 'released', number: 1, node: 'node-a' },
    ]);
  });

  it('does not see its own retries: the next due time is the node’s to merge', async () => {
    const job = await claimOne(1);
    const answer = await turn(bucket, {
      settle: [{ id: job.id, claimSeq: '1', outcome: 'retried', error: 'x', delayMs: 0 }],
      want: 5,
    });
    expect(answer.claimed).toEqual([]);
    expect(answer.nextDueInMs).toBeUndefined();
    expect((await turn(bucket, { want: 5 })).claimed).toHaveLength(1);
  });

  it.each(['succeeded', 'failed', 'retried', 'snoozed', 'released'] as const)(
    'a late %s of an older claim changes nothing and is told that it lost',
    async (outcome) => {
      const job = await claimOne(1);
      await turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'released' }] });
      const again = await turn(bucket, { want: 1 });
      expect(again.claimed[0]!.claimSeq).toBe('3');
      const before = await live();
      const late = await turn(bucket, {
        settle: [{ id: job.id, claimSeq: '1', outcome, error: 'late', delayMs: 1, result: '1' }],
      });
      expect(late).toMatchObject({ recorded: [], lost: [job.id] });
      expect(await live()).toEqual(before);
    },
  );

  it('reports progress under the fence, and tells a lost claim so', async () => {
    const job = await claimOne(1);
    await turn(bucket, { progress: [{ id: job.id, claimSeq: '1', value: '{"done": 3}' }] });
    expect(await database.query('select progress from ratchet.job')).toEqual([{ progress: { done: 3 } }]);
    const late = await turn(bucket, { progress: [{ id: job.id, claimSeq: '0', value: '9' }] });
    expect(late.lost).toEqual([job.id]);
  });

  it('never waits for a locked row: it is skipped, others are recorded, and the next turn records it', async () => {
    await insertJobs(database, [{ id: uuid(1) }, { id: uuid(2) }]);
    await turn(bucket, { want: 2 });
    const other = await database.connect();
    await other.query('begin');
    await other.query('select from ratchet.job where id = $1 for update', [uuid(1)]);
    const settle = [uuid(1), uuid(2)].map((id) => ({ id, claimSeq: '1', outcome: 'succeeded' as const }));
    expect(await turn(bucket, { settle })).toMatchObject({
      recorded: [uuid(2)],
      skipped: [uuid(1)],
      lost: [],
    });
    await other.query('rollback');
    expect(await turn(bucket, { settle: [settle[0]!] })).toMatchObject({ recorded: [uuid(1)], skipped: [] });
  });

  it('waits when it is told to', async () => {
    await insertJobs(database, [{ id: uuid(1) }]);
    await turn(bucket, { want: 1 });
    const other = await database.connect();
    await other.query('begin');
    await other.query('select from ratchet.job where id = $1 for update', [uuid(1)]);
    const answer = turn(bucket, {
      settle: [{ id: uuid(1), claimSeq: '1', outcome: 'succeeded' }],
      wait: true,
    });
    await waiting(client);
    await other.query('rollback');
    expect(await answer).toMatchObject({ recorded: [uuid(1)] });
  });
});

describe('the bucket row', () => {
  it('a bucket whose epoch rose claims nothing, still settles, and learns that it is deposed', async () => {
    const job = await claimOne(1);
    await insertJobs(database, [{ id: uuid(2) }]);
    await database.query(`update ratchet.bucket set status = 'lost', epoch = epoch + 1`);
    const answer = await turn(bucket, {
      settle: [{ id: job.id, claimSeq: '1', outcome: 'succeeded' }],
      want: 5,
    });
    expect(answer).toMatchObject({ owned: false, recorded: [job.id], claimed: [] });
  });

  it('learns it with want 0 too', async () => {
    await database.query('delete from ratchet.bucket');
    expect((await turn(bucket)).owned).toBe(false);
  });

  it('a completing bucket is owned, and claims nothing', async () => {
    await insertJobs(database, [{ id: uuid(1) }]);
    await database.query(`update ratchet.bucket set status = 'completing'`);
    expect(await turn(bucket, { want: 5 })).toMatchObject({ owned: true, claimed: [] });
  });

  it('whoever takes the bucket away waits for the turn in flight, so that no claimed row is orphaned', async () => {
    await insertJobs(database, [{ id: uuid(1) }]);
    const taker = await database.connect();
    await client.query('begin'); // Holds the turn open between its statement and its commit.
    const { claimed } = await turn(bucket, { want: 1 });
    expect(claimed).toHaveLength(1);
    const taken = taker.query(`update ratchet.bucket set status = 'lost', epoch = epoch + 1 returning id`);
    await waiting(taker);
    await client.query('commit');
    await taken;
    // The taker now sees every row that the bucket claimed.
    expect((await taker.query('select from ratchet.job where bucket = $1', [BUCKET])).rowCount).toBe(1);
    await insertJobs(database, [{ id: uuid(2) }]);
    expect(await turn(bucket, { want: 1 })).toMatchObject({ owned: false, claimed: [] });
  });
});

/** Resolves when the client's statement waits for a lock. */
async function waiting(who: pg.Client): Promise<void> {
  const pid = (who as unknown as { processID: number }).processID;
  for (;;) {
    const rows = await database.query(
      `select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`,
      [pid],
    );
    if (rows.length > 0) return;
  }
}
