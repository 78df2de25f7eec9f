import { type ListSchedules, type ScheduleRow } from '../../../schedule-store.js';
import { RECURRENCE_KEYS } from '../../../../jobs/recurrence.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { isSwitchedOff } from './next-due.js';
import { epochMs, readSchedule, SCHEDULE_COLUMNS } from './schedule-json.js';

/** Rows of a query for schedules, `s`, each as JSON text. */
const shown = (schema: string, schedules: string): string => `
select v.id, to_json(v)::text as row from (
  select ${SCHEDULE_COLUMNS},
         (select count(*) from ${schema}.job j where j.metadata ->> '${RECURRENCE_KEYS.schedule}' = s.id) as live_jobs,
         (select count(*) from ${schema}.occurrence o where o.schedule_id = s.id and o.outcome = 'waiting') as waiting,
         case s.scope when 'node' then exists (select from ${schema}.node n where s.id = any (n.schedules))
                      else exists (select from ${schema}.node n where s.job_name = any (n.handlers)) end as served,
         ${isSwitchedOff(schema)} as switched_off
    from (${schedules}) s
) v`;

/** `$1` offset, `$2` ids. One row more, without an id, has the time. */
export const schedulesByIds: MakeStatement = (schema) => ({
  text: `
${shown(schema, `select * from ${schema}.schedule where id = any ($2::text[])`)}
union all select null, ${epochMs(`date_trunc('milliseconds', ${storeClock('$1')})`)}::text`,
});

/** `$1` the id after which they begin, `$2` limit, then tag, business key, origin, each or null, and whether removed ones too. */
export const listSchedules: MakeStatement = (schema) => ({
  text: `
${shown(
  schema,
  `select * from ${schema}.schedule
    where id > coalesce($1::text, '') and ($3::text is null or $3::text = any (tags))
      and ($4::text is null or business_key = $4::text) and ($5::text is null or origin = $5::text)
      and ($6::boolean or removed_at is null)
    order by id limit $2::int`,
)} order by v.id`,
});

export function listParameters(request: ListSchedules): unknown[] {
  const { after, limit, tag, businessKey, origin, removed = false } = request;
  return [after ?? null, limit, tag ?? null, businessKey ?? null, origin ?? null, removed];
}

export function decodeSchedule(row: Row): ScheduleRow {
  const text = row['row'] as string;
  const shown = JSON.parse(text) as {
    live_jobs: number;
    waiting: number;
    served: boolean;
    switched_off: boolean;
  };
  const { live_jobs: liveJobs, waiting, served, switched_off: switchedOff } = shown;
  return { ...readSchedule(text).schedule, liveJobs, waiting, served, switchedOff };
}
