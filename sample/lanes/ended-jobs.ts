import pg from 'pg';
import { LANES_SCHEMA } from './lanes.module.js';

/** What the database says of the jobs of one lane and priority. */
export interface EndedJobs {
  readonly lane: string;
  readonly priority: string;
  readonly jobs: number;
  readonly succeeded: number;
  /** From the enqueue to the start of the first execution. */
  readonly meanWaitMs: number;
}

/** What it says of all of them. */
export interface Proof {
  readonly groups: readonly EndedJobs[];
  /** Ids, and ids that have a recorded success: equal when each job was recorded once. */
  readonly jobs: number;
  readonly succeeded: number;
  /** Executions whose process was killed in their midst: each was charged, and its job ran again. */
  readonly crashed: number;
}

/** Reads Ratchet's views. */
export async function readProof(databaseUrl: string): Promise<Proof> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const groups = await client.query<EndedJobs>(
      `with first as (
         select job_id, min(began_at) as began_at from ${LANES_SCHEMA}.executions group by job_id)
       select j.lane, (array['lowest', 'low', 'normal', 'high', 'critical'])[j.priority + 1] as priority, count(*)::int as jobs,
              count(*) filter (where j.status = 'succeeded')::int as succeeded,
              coalesce(avg(extract(epoch from f.began_at - j.created_at)) * 1000, 0)::float8
                as "meanWaitMs"
         from ${LANES_SCHEMA}.jobs j left join first f on f.job_id = j.id
        group by j.lane, j.priority order by j.lane, j.priority desc`,
    );
    const all = await client.query<Omit<Proof, 'groups'>>(
      `select (select count(distinct id) from ${LANES_SCHEMA}.jobs)::int as jobs,
              (select count(*) from ${LANES_SCHEMA}.executions where outcome = 'succeeded')::int as succeeded,
              (select count(*) from ${LANES_SCHEMA}.executions where outcome = 'crashed')::int as crashed`,
    );
    return { groups: groups.rows, ...(all.rows[0] ?? { jobs: 0, succeeded: 0, crashed: 0 }) };
  } finally {
    await client.end();
  }
}

/** Prints it, and says whether it proves what the sample is to show. */
export function printProof(
  { groups, jobs, succeeded, crashed }: Proof,
  expected: { enqueued: number; crashed: number },
): boolean {
  const { enqueued } = expected;
  console.log('\nWhat the database says:\n');
  console.log('lane      priority    jobs  succeeded     mean wait');
  for (const { lane, priority, jobs, succeeded, meanWaitMs } of groups) {
    console.log(
      lane.padEnd(10) +
        priority.padEnd(8) +
        String(jobs).padStart(8) +
        String(succeeded).padStart(11) +
        msOf(meanWaitMs).padStart(14),
    );
  }
  const once = jobs === enqueued && succeeded === enqueued && groups.every((g) => g.succeeded === g.jobs);
  console.log(
    `\n${String(enqueued)} jobs enqueued, ${String(jobs)} in the database, ${String(succeeded)} successes recorded` +
      `${once ? ': each once' : ': NOT each once'}.`,
  );
  const charged = crashed === expected.crashed;
  console.log(
    `${String(crashed)} executions were cut off by the kill and charged; their jobs ran again elsewhere` +
      `${charged ? '' : `: NOT the ${String(expected.crashed)} that had begun`}.`,
  );
  const urgent = ['mail', 'reports'].map((lane) => isUrgentFirst(groups, lane));
  return once && charged && urgent.every(Boolean);
}

/** In a lane: the most urgent jobs waited less than the least urgent ones. */
function isUrgentFirst(groups: readonly EndedJobs[], lane: string): boolean {
  const own = groups.filter((group) => group.lane === lane);
  const [first, last] = [own[0], own.at(-1)];
  if (!first || !last || first === last) return false;
  const holds = first.meanWaitMs < last.meanWaitMs;
  console.log(
    `${lane}: ${first.priority} jobs waited ${msOf(first.meanWaitMs)}, ${last.priority} ones ` +
      `${msOf(last.meanWaitMs)}${holds ? '' : ': NOT less'}.`,
  );
  return holds;
}

function msOf(ms: number): string {
  return `${String(Math.round(ms))} ms`;
}
