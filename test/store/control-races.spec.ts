import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, transactionOf, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { noticesOf } from '../../lib/testing/contract/notices-of.js';
import {
  type BucketRef,
  type ClaimedJob,
  type ControlStep,
  type NewJob,
  type Settlement,
} from '../../lib/store/job-store.js';
import { exchangeCall } from './exchange-fixture.js';
import { deleteDeadLetters } from '../../lib/store/postgres/statements/retention.js';

/** Each race held open by a transaction of the other side, let go, and decided one way: nothing lost, nothing done twice. */
let database: TestDatabase;
let store: PostgresJobStore;
let lanes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

/** One place, one history: whatever the race, this holds of each job afterwards. */
afterEach(async () => {
  expect(
    await database.query(`
      select 'in two places' as what, id::text from ratchet.jobs group by id having count(*) > 1
      union all
      select 'two executions of one claim', job_id::text from ratchet.executions group by job_id, claim_seq having count(*) > 1`),
  ).toEqual([]);
});

async function lockWaits(waiters = 1): Promise<void> {
  for (;;) {
    const [row] = await database.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if ((row?.n ?? 0) >= waiters) return;
  }
}

async function bucketIn(lane = `race-${String((lanes += 1))}`): Promise<BucketRef> {
  return store.openBucket(await registerTestNode(store), lane);
}

async function inserted(bucket: BucketRef, overrides: Partial<NewJob> = {}): Promise<NewJob> {
  const job = newJob({ lane: bucket.lane, ...overrides });
  await store.insert([job]);
  return job;
}

async function claimed(bucket: BucketRef, overrides: Partial<NewJob> = {}): Promise<ClaimedJob> {
  await inserted(bucket, overrides);
  const [job] = (await store.exchange(turn(bucket, { want: 1 }))).claimed;
  return job!;
}

async function failed(bucket: BucketRef, overrides: Partial<NewJob> = {}): Promise<ClaimedJob> {
  const job = await claimed(bucket, overrides);
  await settle(bucket, job, 'failed');
  return job;
}

const settlement = (job: ClaimedJob, outcome: Settlement['outcome']): Settlement => ({
  id: job.id,
  claimSeq: job.claimSeq,
  outcome,
  ...(outcome === 'retried' || outcome === 'snoozed' ? { delayMs: 0 } : {}),
  ...(outcome === 'failed' || outcome === 'retried' ? { error: 'e' } : {}),
});

const settle = (
  bucket: BucketRef,
  job: ClaimedJob,
  outcome: Settlement['outcome'],
): ReturnType<PostgresJobStore['exchange']> =>
  store.exchange(turn(bucket, { settle: [settlement(job, outcome)], want: 0 }));

/** A turn whose transaction stays open until `commit`. */
async function heldTurn(
  bucket: BucketRef,
  request: Parameters<typeof turn>[1],
): Promise<{ commit(): Promise<void>; rollback(): Promise<void> }> {
  const client = await held();
  const { text, values } = exchangeCall(turn(bucket, request));
  await client.query(text, values);
  return ends(client);
}

async function held(): Promise<pg.Client> {
  const client = await database.connect();
  await client.query('begin');
  return client;
}

const ends = (client: pg.Client): { commit(): Promise<void>; rollback(): Promise<void> } => ({
  commit: async () => {
    await client.query('commit');
  },
  rollback: async () => {
    await client.query('rollback');
  },
});

const cancelLane = (bucket: BucketRef): Promise<ControlStep> =>
  store.control({ kind: 'cancel' }, { lanes: [bucket.lane] });

describe('cancel against completion', () => {
  it('loses to a settle in flight that commits, and wins when that is rolled back', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      for (const bulk of [false, true]) {
        const bucket = await bucketIn();
        const job = await claimed(bucket);
        const other = await heldTurn(bucket, { settle: [settlement(job, 'succeeded')], want: 0 });
        const canceling = bulk ? cancelLane(bucket) : store.cancel(job.id);
        await lockWaits();
        await other[end]();
        const answer = await canceling;
        const won = end === 'rollback';
        if (bulk) expect(answer).toMatchObject({ matched: 1, changed: won ? [{ id: job.id }] : [] });
        else expect(answer).toMatchObject({ outcome: won ? 'canceled_running' : 'ended' });
        expect((await store.get(job.id))?.status).toBe(won ? 'canceled' : 'succeeded');
      }
    }
  });

  it('wins over a settle that comes while it is in flight', async () => {
    const bucket = await bucketIn();
    const job = await claimed(bucket);
    const client = await held();
    await client.query(`select 1 from ratchet.job where id = $1 for update`, [job.id]);
    const canceling = cancelLane(bucket);
    await lockWaits();
    // Skips: the cancel stands before it in the queue.
    expect(await settle(bucket, job, 'succeeded')).toMatchObject({ skipped: [job.id] });
    await client.query('commit');
    expect((await canceling).changed).toMatchObject([{ id: job.id, claimSeq: job.claimSeq }]);
    expect(await settle(bucket, job, 'succeeded')).toMatchObject({ lost: [job.id] });
    expect((await store.get(job.id))?.status).toBe('canceled');
  });
});

describe('bulk actions against a claim', () => {
  it('cancel cuts off what was claimed meanwhile', async () => {
    const bucket = await bucketIn();
    const job = await inserted(bucket);
    const other = await heldTurn(bucket, { want: 1 });
    const canceling = cancelLane(bucket);
    await lockWaits();
    await other.commit();
    expect((await canceling).changed).toMatchObject([{ id: job.id, claimSeq: '1' }]);
    expect(await noticesOf(store, bucket.node)).toEqual([
      { jobId: job.id, claimSeq: '1', reason: 'canceled' },
    ]);
    expect(await store.get(job.id)).toMatchObject({ status: 'canceled', claimSeq: '2' });
  });

  it('cancel of pending jobs alone leaves what was claimed meanwhile', async () => {
    const bucket = await bucketIn();
    const job = await inserted(bucket);
    const other = await heldTurn(bucket, { want: 1 });
    const canceling = store.control({ kind: 'cancel' }, { lanes: [bucket.lane], statuses: ['pending'] });
    await lockWaits();
    await other.commit();
    expect(await canceling).toMatchObject({ matched: 1, changed: [] });
    expect((await store.get(job.id))?.status).toBe('running');
  });

  it('a claim skips what a cancel in flight holds', async () => {
    const bucket = await bucketIn();
    const job = await inserted(bucket);
    const client = await held();
    await client.query(`delete from ratchet.job where id = $1`, [job.id]);
    expect((await store.exchange(turn(bucket))).claimed).toEqual([]);
    await client.query('rollback');
    expect((await store.exchange(turn(bucket))).claimed).toMatchObject([{ id: job.id }]);
  });

  it('pause marks what was claimed meanwhile, and pauses it when the claim was rolled back', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const bucket = await bucketIn();
      const job = await inserted(bucket);
      const other = await heldTurn(bucket, { want: 1 });
      const pausing = store.control({ kind: 'pause' }, { lanes: [bucket.lane] });
      await lockWaits();
      await other[end]();
      expect(await pausing).toMatchObject({ matched: 1, changed: [{ id: job.id }] });
      expect(await store.get(job.id)).toMatchObject(
        end === 'commit'
          ? { status: 'running', pauseRequested: true }
          : { status: 'paused', pauseRequested: false },
      );
    }
  });

  it('reschedule leaves what was claimed meanwhile, and moves it when the claim was rolled back', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const bucket = await bucketIn();
      const job = await inserted(bucket);
      const before = await store.get(job.id);
      const other = await heldTurn(bucket, { want: 1 });
      const runAt = new Date('2040-01-01T00:00:00.000Z');
      const moving = store.control({ kind: 'reschedule', delayMs: 0, runAt }, { lanes: [bucket.lane] });
      await lockWaits();
      await other[end]();
      const { matched, changed } = await moving;
      expect(matched).toBe(1);
      expect(changed).toHaveLength(end === 'commit' ? 0 : 1);
      expect(await store.get(job.id)).toMatchObject(
        end === 'commit'
          ? { status: 'running', scheduledAt: before!.scheduledAt }
          : { status: 'pending', scheduledAt: runAt },
      );
    }
  });
});

describe('pause against a settle', () => {
  it('pauses a job that was given back meanwhile, and lets one end that ended', async () => {
    for (const [outcome, status, changed] of [
      ['retried', 'paused', 1],
      ['succeeded', 'succeeded', 0],
    ] as const) {
      const bucket = await bucketIn();
      const job = await claimed(bucket);
      const other = await heldTurn(bucket, { settle: [settlement(job, outcome)], want: 0 });
      const pausing = store.control({ kind: 'pause' }, { lanes: [bucket.lane] });
      await lockWaits();
      await other.commit();
      expect((await pausing).changed).toHaveLength(changed);
      expect(await store.get(job.id)).toMatchObject({ status, pauseRequested: false });
    }
  });

  it('a settle that met the pause in flight skips the row, and finds the mark next time', async () => {
    const bucket = await bucketIn();
    const job = await claimed(bucket);
    const client = await held();
    await client.query(`update ratchet.job set pause_requested = true where id = $1`, [job.id]);
    expect(await settle(bucket, job, 'retried')).toMatchObject({ skipped: [job.id] });
    await client.query('commit');
    expect(await settle(bucket, job, 'retried')).toMatchObject({ recorded: [job.id] });
    expect((await store.get(job.id))?.status).toBe('paused');
  });
});

describe('redrive', () => {
  it('loses to a retention in flight that commits, and wins when that is rolled back', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      for (const bulk of [false, true]) {
        const bucket = await bucketIn();
        const job = await failed(bucket, { payload: JSON.stringify('x'.repeat(3_000)) });
        const client = await held();
        await client.query(
          `update ratchet.dead_letter set ended_at = ended_at - interval '1 day' where id = $1`,
          [job.id],
        );
        await client.query('commit');
        await client.query('begin');
        await client.query(deleteDeadLetters('"ratchet"').text, [0, 3_600_000]);
        const driving = bulk
          ? store.control({ kind: 'redrive' }, { lanes: [bucket.lane] })
          : store.redrive(job.id);
        await lockWaits();
        await client.query(end);
        const won = end === 'rollback';
        const answer = await driving;
        if (bulk) expect(answer).toMatchObject({ matched: 1, changed: won ? [{ id: job.id }] : [] });
        else expect(answer).toMatchObject({ outcome: won ? 'redriven' : 'not_found' });
        expect((await store.get(job.id))?.payload).toBe(won ? 'x'.repeat(3_000) : undefined);
        expect(
          await database.query(`select 1 from ratchet.job_payload where job_id = $1`, [job.id]),
        ).toHaveLength(won ? 1 : 0);
      }
    }
  });

  it('is skipped by a retention that meets it in flight', async () => {
    const bucket = await bucketIn();
    const job = await failed(bucket, { payload: JSON.stringify('x'.repeat(3_000)) });
    const other = await failed(await bucketIn());
    const client = await held();
    await client.query('select 1 from ratchet.dead_letter where id = $1 for update', [job.id]);
    const driving = store.control({ kind: 'redrive' }, { lanes: [bucket.lane] });
    await lockWaits();
    await database.query(deleteDeadLetters('"ratchet"').text, [86_400_000, 3_600_000]);
    await client.query('commit');
    // The other one was past its time, and nobody held it.
    expect((await driving).changed).toMatchObject([{ id: job.id }]);
    expect(await store.get(other.id)).toBeUndefined();
    expect(await store.get(job.id)).toMatchObject({ status: 'pending', payload: 'x'.repeat(3_000) });
  });

  it('happens once when two ask for it', async () => {
    const bucket = await bucketIn();
    for (const bulk of [false, true]) {
      const job = await failed(bucket);
      const client = await held();
      await client.query('select 1 from ratchet.dead_letter where id = $1 for update', [job.id]);
      const one = (): Promise<number> =>
        bulk
          ? store.control({ kind: 'redrive' }, { ids: [job.id] }).then(({ changed }) => changed.length)
          : store.redrive(job.id).then(({ outcome }) => (outcome === 'redriven' ? 1 : 0));
      const both = [one(), one()];
      await lockWaits(2);
      await client.query('commit');
      expect((await Promise.all(both)).sort()).toEqual([0, 1]);
      expect(await store.get(job.id)).toMatchObject({ status: 'pending', claimSeq: '2', executions: 1 });
      await store.cancel(job.id);
    }
  });

  it('loses to an enqueue of the same business key in flight, and wins when that is rolled back', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      for (const bulk of [false, true]) {
        const bucket = await bucketIn();
        const businessKey = `${bucket.lane} key`;
        const keyed = await failed(bucket, { businessKey });
        const free = await failed(bucket);
        const client = await held();
        const rival = newJob({ lane: bucket.lane, businessKey });
        await store.insert([rival], transactionOf(client));
        const driving = bulk
          ? store.control({ kind: 'redrive' }, { lanes: [bucket.lane] })
          : store.redrive(keyed.id);
        await lockWaits();
        // The chunk that waited in vain is done job by job: what is free is not held up.
        if (bulk) await until(async () => (await store.get(free.id))?.status === 'pending');
        await lockWaits();
        await client.query(end);
        const won = end === 'rollback';
        const answer = await driving;
        if (bulk) {
          const ids = (answer as ControlStep).changed.map(({ id }) => id).sort();
          expect(answer).toMatchObject({ matched: 2 });
          expect(ids).toEqual(won ? [keyed.id, free.id] : [free.id]);
        } else expect(answer).toMatchObject({ outcome: won ? 'redriven' : 'held' });
        expect((await store.get(keyed.id))?.status).toBe(won ? 'pending' : 'failed');
        expect((await store.get(rival.id))?.status).toBe(won ? undefined : 'pending');
      }
    }
  });

  it('in flight holds the key against an enqueue', async () => {
    const bucket = await bucketIn();
    const businessKey = `${bucket.lane} key`;
    const job = await failed(bucket, { businessKey });
    const client = await held();
    await client.query(
      `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, business_key)
       select id, name, version, lane, priority, now(), created_at, business_key from ratchet.dead_letter where id = $1`,
      [job.id],
    );
    await client.query(`delete from ratchet.dead_letter where id = $1`, [job.id]);
    const enqueue = store.insert([newJob({ lane: bucket.lane, businessKey })]);
    await lockWaits();
    await client.query('commit');
    expect(await enqueue).toEqual([{ outcome: 'held', holder: job.id, running: false }]);
  });
});

describe('a chunk that meets a row which somebody keeps', () => {
  it('does the others at once, waits a moment, and leaves that one', async () => {
    const bucket = await bucketIn();
    const jobs = [];
    for (let n = 0; n < 5; n += 1) jobs.push(await inserted(bucket));
    const client = await held();
    await client.query('select 1 from ratchet.job where id = any ($1) for update', [
      [jobs[1]!.id, jobs[3]!.id],
    ]);
    const canceling = cancelLane(bucket);
    await until(async () => (await store.count({ lanes: [bucket.lane], statuses: ['canceled'] })) === 3);
    const step = await canceling;
    expect(step).toMatchObject({ matched: 5, next: undefined });
    expect(step.changed).toHaveLength(3);
    await client.query('commit');
    expect((await cancelLane(bucket)).changed.map(({ id }) => id)).toEqual([jobs[1]!.id, jobs[3]!.id]);
  });

  it('tells what it has done when the connection breaks while it waits', async () => {
    const bucket = await bucketIn();
    const [kept, free] = [await inserted(bucket), await inserted(bucket)];
    const client = await held();
    await client.query('select 1 from ratchet.job where id = $1 for update', [kept.id]);
    const canceling = cancelLane(bucket);
    await lockWaits();
    await database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    expect(await canceling).toMatchObject({
      matched: 2,
      changed: [{ id: free.id }],
      next: undefined,
      failure: { cause: { code: 'STORE_FAULT', kind: 'unknown' } },
    });
    await client.query('commit');
    expect((await store.get(kept.id))?.status).toBe('pending');
  });
});

describe('a chunk that is done job by job', () => {
  it('tells what it has done when the connection breaks on the way', async () => {
    const bucket = await bucketIn();
    const businessKey = `${bucket.lane} key`;
    const free = await failed(bucket);
    const keyed = await failed(bucket, { businessKey });
    const client = await held();
    await store.insert([newJob({ lane: bucket.lane, businessKey })], transactionOf(client));
    const driving = store.control({ kind: 'redrive' }, { lanes: [bucket.lane] });
    await until(async () => (await store.get(free.id))?.status === 'pending');
    // It waits a moment at a time, so this may come between two of them.
    await until(
      async () =>
        (
          await database.query(
            `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          )
        ).length > 0,
    );
    expect(await driving).toMatchObject({
      matched: 2,
      changed: [{ id: free.id }],
      failure: { cause: { kind: 'unknown' } },
    });
    await client.query('rollback');
    expect((await store.get(keyed.id))?.status).toBe('failed');
  });
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds()));
}
