import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { RETENTION_CHUNK } from '../retention.js';

/** `$1` offset, `$2` age in ms: occurrences that were decided longer ago, the oldest first. Those that wait are not decided yet. */
export const forgetOccurrences: MakeStatement = (schema) => ({
  text: `
with old as materialized (
  select o.schedule_id, o.due_at from (select ${storeClock('$1')} - $2::float8 * interval '1 millisecond' as bound) b
   cross join lateral (
     select schedule_id, due_at from ${schema}.occurrence
      where decided_at < b.bound and outcome <> 'waiting' order by decided_at limit ${String(RETENTION_CHUNK)}
   ) o
),
gone as (
  delete from ${schema}.occurrence o using old where o.schedule_id = any (array[old.schedule_id]) and o.due_at = old.due_at
     and o.outcome <> 'waiting'
  returning 1
)
select (select count(*) from gone)::text as deleted, (select count(*) from old)::text as read`,
});

/** `$1` offset, `$2` age in ms: schedules that were removed longer ago, and of which no job is left to be dealt with. */
export const forgetSchedules: MakeStatement = (schema) => ({
  text: `
delete from ${schema}.schedule
 where removed_at < ${storeClock('$1')} - $2::float8 * interval '1 millisecond' and orphaned_at is null`,
});
