import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import {
  type BucketRef,
  type ClaimedJob,
  type JobView,
  type NewJob,
  type Settlement,
} from '../../lib/store/job-store.js';
import { engineClient, exchangeCall } from './exchange-fixture.js';

/** The durable job of `@OnJobFailure` comes into being with the row of the dead letter, whoever writes that. */
let database: TestDatabase;
let store: PostgresJobStore;
let bucket: BucketRef;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
  bucket = await store.openBucket(await registerTestNode(store, 'worker'), 'default');
});
afterAll(async () => {
  await store.close();
  await database.drop();
});
beforeEach(() => database.query('truncate ratchet.job, ratchet.job_payload, ratchet.dead_letter'));

async function handledIn(lane: string, jobName = 'test.job'): Promise<void> {
  const failureHandlers = [{ jobName, lane }];
  await store.registerNode({
    id: 'handler',
    host: 'h',
    pid: 1,
    version: '1',
    lanes: [lane],
    handlers: [],
    failureHandlers,
  });
}

async function claimed(jobs: readonly Partial<NewJob>[]): Promise<readonly ClaimedJob[]> {
  await store.insert(jobs.map((job) => newJob(job)));
  const answer = await store.exchange(
    turn(bucket, {
      want: jobs.length,
      handlers: [...new Set(jobs.map(({ name = 'test.job' }) => name))].map((name) => ({ name, version: 9 })),
    }),
  );
  return answer.claimed;
}

const failing = (jobs: readonly ClaimedJob[]): Settlement[] =>
  jobs.map(({ id, claimSeq }) => ({ id, claimSeq, outcome: 'failed', error: `broken: ${id}` }));

const spawnedBy = async (id: string): Promise<readonly JobView[]> =>
  (await store.find({ parentId: id }, { limit: 10 })).jobs;

describe('a job that fails', () => {
  it('leaves a job for its handler, in the lane of the handler', async () => {
    await handledIn('failures');
    const [job] = await claimed([
      {
        version: 3,
        priority: 4,
        payload: '{"to":"a@b.c"}',
        tags: ['t'],
        metadata: '{"m":1}',
        businessKey: 'key',
      },
    ]);
    const answer = await store.exchange(turn(bucket, { settle: failing([job!]), want: 0 }));
    expect(answer).toMatchObject({ recorded: [job!.id], spawned: [{ lane: 'failures', priority: 4 }] });
    const [made, ...others] = await spawnedBy(job!.id);
    expect(others).toEqual([]);
    expect(made).toMatchObject({
      name: 'test.job#failed',
      version: 1,
      status: 'pending',
      lane: 'failures',
      priority: 4,
      parentId: job!.id,
      businessKey: undefined,
      payload: {
        payload: { to: 'a@b.c' },
        error: `broken: ${job!.id}`,
        job: {
          id: job!.id,
          name: 'test.job',
          version: 3,
          lane: 'default',
          priority: 4,
          node: 'worker',
          executions: 1,
          failures: 1,
          crashes: 0,
          businessKey: 'key',
          tags: ['t'],
          metadata: { m: 1 },
        },
      },
    });
    const dead = await store.get(job!.id);
    const told = (made!.payload as { job: { createdAt: string; failedAt: string } }).job;
    expect(new Date(told.createdAt)).toEqual(dead!.createdAt);
    expect(new Date(told.failedAt)).toEqual(dead!.endedAt);
    expect(await database.query('select 1 from ratchet.job_payload')).toEqual([]);
    const theirs = await store.openBucket(await registerTestNode(store, 'reader'), 'failures');
    const handlers = [{ name: 'test.job#failed', version: 1 }];
    expect((await store.exchange(turn(theirs, { handlers }))).claimed).toMatchObject([{ id: made!.id }]);
  });

  it('keeps large payloads in their table, and finds those of the failed job there', async () => {
    await handledIn('failures');
    const text = 'x'.repeat(5_000);
    const [job] = await claimed([{ payload: JSON.stringify({ text }) }]);
    await store.exchange(turn(bucket, { settle: failing([job!]), want: 0 }));
    const [made] = await spawnedBy(job!.id);
    expect(made).toMatchObject({ payload: { payload: { text } } });
    const ids = await database.query<{ job_id: string }>('select job_id::text from ratchet.job_payload');
    expect(ids.map(({ job_id }) => job_id).sort()).toEqual([job!.id, made!.id].sort());
    expect((await store.get(job!.id))?.payload).toEqual({ text });
  });

  it('leaves none without a handler, for another outcome, or under a claim that no longer stands', async () => {
    await handledIn('failures');
    const [other] = await claimed([{ name: 'unhandled' }]);
    const [lost, fine, again] = await claimed([{}, {}, {}]);
    await store.cancel(lost!.id);
    const settle: Settlement[] = [
      ...failing([other!, lost!]),
      { id: fine!.id, claimSeq: fine!.claimSeq, outcome: 'succeeded' },
      { id: again!.id, claimSeq: again!.claimSeq, outcome: 'retried', error: 'e', delayMs: 0 },
    ];
    const answer = await store.exchange(turn(bucket, { settle, want: 0 }));
    expect(answer).toMatchObject({
      recorded: [other!.id, fine!.id, again!.id],
      lost: [lost!.id],
      spawned: [],
    });
    expect(await store.count({ names: ['test.job#failed', 'unhandled#failed'] })).toBe(0);
  });

  it('leaves nothing when its statement is rolled back, and one for each failure', async () => {
    await handledIn('failures');
    const [job] = await claimed([{}]);
    const client = await engineClient(database);
    await client.query('begin');
    const request = turn(bucket, { settle: failing([job!]), want: 0 });
    const { text, values } = exchangeCall(request);
    await client.query(text, values);
    await client.end();
    expect(await store.get(job!.id)).toMatchObject({ status: 'running' });
    expect(await spawnedBy(job!.id)).toEqual([]);
    await store.exchange(request);
    expect((await store.exchange(request)).lost).toEqual([job!.id]);
    expect(await spawnedBy(job!.id)).toHaveLength(1);
    await store.redrive(job!.id);
    const [second] = (await store.exchange(turn(bucket, { want: 1 }))).claimed;
    await store.exchange(turn(bucket, { settle: failing([second!]), want: 0 }));
    expect(await spawnedBy(job!.id)).toHaveLength(2);
  });

  it('follows the handler to another lane', async () => {
    await handledIn('failures');
    await handledIn('elsewhere');
    const [job] = await claimed([{}]);
    const { spawned } = await store.exchange(turn(bucket, { settle: failing([job!]), want: 0 }));
    expect(spawned).toEqual([{ lane: 'elsewhere', priority: 2 }]);
  });

  it('gives its handlers ids in the order of time', async () => {
    await handledIn('failures');
    const before = newJob().id;
    const jobs = await claimed(Array.from({ length: 50 }, () => ({})));
    await store.exchange(turn(bucket, { settle: failing(jobs), want: 0 }));
    await database.query('select pg_sleep(0.002)');
    const after = newJob().id;
    const { jobs: made } = await store.find({ names: ['test.job#failed'] }, { limit: 100 });
    expect(made).toHaveLength(50);
    for (const { id } of made) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(id.slice(0, 13) >= before.slice(0, 13) && id < after).toBe(true);
    }
  });
});

describe('a job over its crash budget', () => {
  it.each(['own', 'orphan'])('leaves a job for its handler: %s', async (kind) => {
    await handledIn('failures');
    const node = await registerTestNode(store, kind);
    const crashing = await store.openBucket(node, kind);
    await store.insert([newJob({ lane: kind, payload: '{"n":1}' })]);
    const [job] = (await store.exchange(turn(crashing, { want: 1 }))).claimed;
    if (kind === 'own') await store.rescueOwn(await registerTestNode(store, kind), 0);
    else {
      await database.query('delete from ratchet.bucket where id = $1', [crashing.id]);
      await store.rescueOrphans(0);
    }
    const dead = await store.get(job!.id);
    expect(dead?.status).toBe('failed');
    expect(await spawnedBy(job!.id)).toMatchObject([
      {
        name: 'test.job#failed',
        lane: 'failures',
        status: 'pending',
        payload: { payload: { n: 1 }, error: dead!.error, job: { id: job!.id, failures: 0, crashes: 1 } },
      },
    ]);
  });
});

describe('ten thousand that fail in one statement', () => {
  const MANY = 10_000;

  it('cost what ten times a thousand cost', async () => {
    await handledIn('failures');
    await store.insert(Array.from({ length: MANY }, () => newJob()));
    const { claimed: jobs } = await store.exchange(turn(bucket, { want: MANY }));
    const client = await engineClient(database);
    const request = turn(bucket, { settle: failing(jobs), want: 0 });
    const { text, values } = exchangeCall(request);
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) ${text}`,
      values,
    );
    await client.end();
    const top = rows[0]!['QUERY PLAN'][0]!.Plan;
    const visit = (plan: Plan): void => {
      const rowsOf = (plan['Actual Rows'] ?? 0) + (plan['Rows Removed by Filter'] ?? 0);
      const joined = plan['Rows Removed by Join Filter'] ?? 0;
      expect((rowsOf + joined) * (plan['Actual Loops'] ?? 1)).toBeLessThanOrEqual(MANY * 4);
      plan.Plans?.forEach(visit);
    };
    visit(top);
    expect((top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0)).toBeLessThan(MANY * 100);
    expect(await store.count({ statuses: ['failed'] })).toBe(MANY);
    expect(await store.count({ names: ['test.job#failed'] })).toBe(MANY);
  }, 60_000);
});

interface Plan {
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}
