import { RECURRENCE_KEYS } from '../../../../jobs/recurrence.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { canceling } from '../cancel.js';
import { storeClock } from '../clock.js';

/** Jobs that one statement cancels at most: locked for some ten milliseconds. */
export const CANCEL_CHUNK = 500;

const ofSchedule = `j.metadata ->> '${RECURRENCE_KEYS.schedule}'`;

/**
 * Cancels pending and paused jobs as `cancel` does, of schedules that `condition` still means. The order of the candidates is that of
 * their index: with another one, or none, a plan may look for them in the whole table. Returns the canceled ones, and a row without an
 * id: how many candidates there were.
 */
const cancelText = (schema: string, condition: string, locking: string): string => `
with clock as materialized (select ${storeClock('$1')} as now),
candidates as materialized (
  select j.id from ${schema}.job j
   where ${ofSchedule} = any ($2::text[]) and j.status in (0, 2) ${condition}
   order by ${ofSchedule} limit ${String(CANCEL_CHUNK)}
),
taken as materialized (
  select j.id from ${schema}.job j where j.id = any (array(select id from candidates)) and j.status in (0, 2)
   order by j.id for update of j ${locking}
),${canceling(schema)}
select o.id::text as id, o.metadata ->> '${RECURRENCE_KEYS.schedule}' as schedule, null as candidates from owned o
union all select null, null, count(*)::text from candidates`;

/** What one of these statements did. `complete`: there were no more candidates. */
export interface CanceledJobs {
  readonly jobs: readonly { readonly id: string; readonly schedule: string }[];
  readonly complete: boolean;
}

export function decodeCanceledJobs(rows: readonly Row[]): CanceledJobs {
  const end = rows.find((row) => row['id'] === null);
  const jobs = rows.filter((row) => row !== end);
  return {
    jobs: jobs.map((row) => ({ id: row['id'] as string, schedule: row['schedule'] as string })),
    complete: Number(end?.['candidates']) < CANCEL_CHUNK,
  };
}

/** `$1` offset, `$2` schedules, whose rows the caller's transaction holds: waits for whoever holds a job. */
export const cancelJobsOf: MakeStatement = (schema) => ({ text: cancelText(schema, '', '') });

/**
 * The same of schedules that are removed, on its own: a job that somebody holds is about to run or is dealt with by another hand, and is
 * left.
 */
export const cancelJobsOfRemoved: MakeStatement = (schema) => ({
  text: cancelText(
    schema,
    `and exists (select from ${schema}.schedule s where s.id = ${ofSchedule} and s.removed_at is not null)`,
    'skip locked',
  ),
});
