import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import {
  type ControlAction,
  type ControlPlace,
  type JobQuery,
  type Settlement,
} from '../../lib/store/job-store.js';

/** Bulk actions over the same rows, by opposite filters, beside turns and enqueues of the same keys: nobody waits for ever. */
const JOBS = 400;
const ROUNDS = 6;

let database: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url, { exchangeConnections: 2 });
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

async function all(action: ControlAction, query: JobQuery): Promise<void> {
  let place: ControlPlace | undefined;
  do ({ next: place } = await store.control(action, query, place));
  while (place);
}

const deadlocks = async (): Promise<number> => {
  // Counters of a session that is gone are there; of others they come when they are idle.
  const [row] = await database.query<{ n: number }>(
    `select deadlocks::int as n from pg_stat_database where datname = current_database()`,
  );
  return row!.n;
};

it('bulk actions, turns and enqueues go on beside each other without a deadlock', async () => {
  const jobs = Array.from({ length: JOBS }, (_, n) =>
    newJob({ tags: [n % 2 ? 'odd' : 'even'], businessKey: `key ${String(n)}` }),
  );
  const ids = jobs.map(({ id }) => id);
  await store.insert(jobs);
  let going = true;
  const turns = async (wait: boolean): Promise<number> => {
    const bucket = await store.openBucket(await registerTestNode(store), 'default');
    let settle: Settlement[] = [];
    let recorded = 0;
    while (going || settle.length > 0) {
      const answer = await store.exchange(turn(bucket, { settle, want: going ? 60 : 0, wait }));
      recorded += answer.recorded.length;
      settle = [
        ...settle.filter(({ id }) => answer.skipped.includes(id)),
        ...answer.claimed.map(({ id, claimSeq }, n): Settlement => {
          const outcome = (['failed', 'retried', 'snoozed', 'released'] as const)[n % 4]!;
          return { id, claimSeq, outcome, delayMs: 0, error: 'e' };
        }),
      ];
    }
    return recorded;
  };
  const enqueues = async (): Promise<void> => {
    for (let n = JOBS; going; n = n === 0 ? JOBS : n - 1) {
      await store.insert([newJob({ businessKey: `key ${String(n)}`, onConflict: 'return' })]);
    }
  };
  const working = [turns(false), turns(false), turns(true), enqueues()];
  const before = await deadlocks();
  const asked: readonly (readonly [ControlAction, JobQuery])[] = [
    [{ kind: 'pause' }, { tags: ['odd'] }],
    [{ kind: 'resume' }, { ids: [...ids].reverse() }],
    [{ kind: 'redrive' }, { tags: ['even'] }],
    [{ kind: 'redrive' }, {}],
    [
      { kind: 'reschedule', delayMs: 0 },
      { businessKeys: jobs.map(({ businessKey }) => businessKey!).reverse() },
    ],
    [{ kind: 'cancel' }, { tags: ['odd'], statuses: ['running'] }],
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(asked.map(([action, query]) => all(action, query)));
  }
  going = false;
  const [first, second, third] = await Promise.all(working);
  expect(Number(first) + Number(second) + Number(third)).toBeGreaterThan(JOBS);
  expect((await deadlocks()) - before).toBe(0);
  await all({ kind: 'resume' }, {});
  expect(await store.count({ ids })).toBe(JOBS);
  expect(
    await database.query(`
      select 'in two places' as what, id::text from ratchet.jobs group by id having count(*) > 1
      union all
      select 'a key twice', max(id::text) from ratchet.job where business_key is not null group by business_key having count(*) > 1
      union all
      select 'two executions of one claim', job_id::text from ratchet.executions group by job_id, claim_seq having count(*) > 1
      union all
      select 'executions miscounted', j.id::text from ratchet.jobs j left join ratchet.executions e on e.job_id = j.id
       group by j.id, j.executions having count(e.job_id) <> j.executions
      union all
      select 'still marked or paused', id::text from ratchet.job where pause_requested or status = 2`),
  ).toEqual([]);
}, 60_000);
