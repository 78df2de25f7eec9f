import { expect } from '@jest/globals';
import { type TestDatabase } from '../support/database.js';
import { bucketViolations } from '../support/bucket-audit.js';
import { resume } from './fleet-operator.js';
import { takeTurn } from './fleet-turn.js';
import { type FleetWorld } from './fleet-world.js';

interface Row {
  readonly place: string;
  readonly id: string;
  readonly lane: string;
  readonly seq: string;
  readonly bucket: string | null;
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
}

const COLUMNS = 'id::text, lane, claim_seq::text as seq, executions::int, failures::int, crashes::int';

/** The database is what the fleet should have made of it. */
export async function check(world: FleetWorld): Promise<void> {
  const { database } = world;
  expect(await bucketViolations(database)).toEqual([]);
  const rows = await database.query<Row>(`
    select (array['pending', 'running', 'paused'])[status + 1] as place, ${COLUMNS}, bucket::text from ratchet.job
    union all select outcome, ${COLUMNS}, null from ratchet.job_history
    union all select 'dead', ${COLUMNS}, null from ratchet.dead_letter`);
  const expected = [...world.jobs.values()].map((job) => ({
    place: job.place,
    id: job.id,
    lane: job.lane,
    seq: String(job.seq),
    executions: job.executions,
    failures: job.failures,
    crashes: job.crashes,
    bucket: job.claim?.bucket.ref.id ?? null,
  }));
  expect(byId(rows)).toEqual(byId(expected));
  const buckets = await database.query<{ id: string; status: string; owned: boolean }>(
    'select id::text as id, status, epoch = 1 as owned from ratchet.bucket',
  );
  const known = world.buckets
    .filter(({ status }) => status !== 'gone')
    .map(({ ref, status, taken }) => ({ id: ref.id, status, owned: !taken }));
  expect(byId(buckets)).toEqual(byId(known));
  const homeless = await database.query(`
    select 'job' as what, j.id from ratchet.job j where j.status = 1 and not exists (select from ratchet.bucket b where b.id = j.bucket)
    union all
    select 'start mark', m.bucket from ratchet.start_mark m where not exists (select from ratchet.bucket b where b.id = m.bucket)`);
  expect(homeless).toEqual([]);
}

/** One more node, and nobody disturbs it: all that there is ends. */
export async function heal(world: FleetWorld): Promise<void> {
  for (const lane of [...world.paused]) await resume(world, lane);
  for (const node of world.nodes) node.alive = false;
  await world.pass();
  const healer = await world.healer();
  await world.rescue(healer);
  await check(world);
  // Later than all that is to be run later.
  await world.pass(86_400_000);
  const settle = Array.from({ length: 99 }, () => ({ claim: 0, outcome: 'succeeded' as const }));
  for (let turns = 0; [...world.jobs.values()].some(({ place }) => place === 'pending'); turns++) {
    expect(turns).toBeLessThan(1_000);
    for (const bucket of healer.buckets) {
      const spec = { release: 0, begin: 0, want: 99, beginNow: 99, settle: [] };
      await takeTurn(world, bucket, spec);
      await takeTurn(world, bucket, { ...spec, want: 0, settle });
    }
  }
  await check(world);
  expect(await unaccounted(world.database)).toEqual([]);
  expect(world.buckets.filter(({ status }) => status !== 'gone')).toHaveLength(healer.buckets.length);
}

/** Costs more, as it plans over every partition: at the end of a run. */
function unaccounted(database: TestDatabase): Promise<object[]> {
  return database.query(`
    select 'two executions of one claim' as what, job_id from ratchet.executions group by job_id, claim_seq having count(*) > 1
    union all
    select 'executions miscounted', j.id from ratchet.jobs j left join ratchet.executions e on e.job_id = j.id
     group by j.id, j.executions having count(e.job_id) <> j.executions
    union all
    select 'crashes miscounted', j.id from ratchet.jobs j left join ratchet.executions e on e.job_id = j.id and e.outcome = 'crashed'
     group by j.id, j.crashes having count(e.job_id) <> j.crashes`);
}

function byId<T extends { readonly id: string }>(rows: readonly T[]): Record<string, readonly T[]> {
  const map: Record<string, T[]> = {};
  for (const row of [...rows].sort((a, b) => (a.id < b.id ? -1 : 1))) (map[row.id] ??= []).push(row);
  return map;
}
