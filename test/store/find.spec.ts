import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { type FoundJobs } from '../../lib/store/job-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob } from '../support/store.js';

/** An answer is bounded by what it carries, not only by its rows. */
const MOST_BYTES = 8_000_000;

let database: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
beforeEach(() => database.query('truncate ratchet.job, ratchet.job_history, ratchet.job_payload'));
afterAll(async () => {
  await store.close();
  await database.drop();
});

/** JSON text of so many bytes that no compression makes much smaller. */
const noise = (bytes: number): string => JSON.stringify(randomBytes(bytes / 2).toString('hex'));

async function succeeded(result: string): Promise<string> {
  const id = uuidv7();
  await database.query(
    `insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, claim_seq, ended_at,
            executions, failures, crashes, payload, result)
     values ($1, 'n', 1, 'l', 1, 'succeeded', now(), now(), 1, now(), 1, 0, 0, '{}', $2)`,
    [id, result],
  );
  return id;
}

const bytesOf = ({ jobs }: FoundJobs): number =>
  jobs.reduce(
    (sum, { payload, result }) =>
      sum + JSON.stringify(payload).length + JSON.stringify(result ?? null).length,
    0,
  );

/** All pages, each checked. */
async function pages(limit: number): Promise<FoundJobs[]> {
  const all: FoundJobs[] = [];
  for (;;) {
    const before = all.at(-1)?.jobs.at(-1)?.id;
    const page = await store.find({}, { limit, ...(before === undefined ? {} : { before }) });
    all.push(page);
    expect(page.jobs.length).toBeLessThanOrEqual(limit);
    if (!page.more) return all;
    expect(page.jobs.length).toBeGreaterThan(0);
  }
}

const idsOf = (all: readonly FoundJobs[]): string[] => all.flatMap(({ jobs }) => jobs.map(({ id }) => id));

describe('a page of large jobs', () => {
  it('ends before it is too large, and the next one goes on behind it', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      ids.push(await succeeded(noise(1_000_000)));
      const job = newJob({ payload: noise(1_000_000) });
      await store.insert([job]);
      ids.push(job.id);
    }
    const all = await pages(1_000);
    expect(idsOf(all)).toEqual(ids.sort().reverse());
    expect(all.length).toBeGreaterThanOrEqual(3);
    for (const page of all) expect(bytesOf(page)).toBeLessThanOrEqual(MOST_BYTES * 1.1);
  });

  it('counts what is compressed for more than it takes on the disk', async () => {
    const ids: string[] = [];
    const line = (): string =>
      `{"customer":"${randomBytes(4).toString('hex')}","status":"delivered","carrier":"by hand","country":"DE"}`;
    for (let n = 0; n < 25; n += 1) {
      ids.push(await succeeded(JSON.stringify(Array.from({ length: 10_000 }, line).join())));
    }
    const all = await pages(1_000);
    expect(idsOf(all)).toEqual(ids.sort().reverse());
    for (const page of all) expect(bytesOf(page)).toBeLessThanOrEqual(MOST_BYTES * 1.1);
  });

  it('has one job at least, however large that is', async () => {
    const ids = [await succeeded('1'), await succeeded(noise(9_000_000)), await succeeded('null')];
    const all = await pages(10);
    expect(idsOf(all)).toEqual([...ids].reverse());
    expect(all.map(({ jobs }) => jobs.length)).toEqual([1, 1, 1]);
  });

  it('is whole when its jobs are small, and the last one says that it is the last', async () => {
    const jobs = Array.from({ length: 1_000 }, () => newJob());
    await store.insert(jobs);
    expect((await pages(1_000)).map((page) => page.jobs.length)).toEqual([1_000]);
    expect((await pages(400)).map((page) => page.jobs.length)).toEqual([400, 400, 200]);
    expect(await store.find({ names: ['none'] }, { limit: 10 })).toEqual({ jobs: [], more: false });
  });
});
