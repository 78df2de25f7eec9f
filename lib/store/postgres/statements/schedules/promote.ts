import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { promotableSchedules } from './next-due.js';
import { SELECT_JOBS, selectOther } from './occurrence-answer.js';
import { occurrenceJobs } from './occurrence-jobs.js';

/** `$1` how many at most: schedules of which an occurrence could become a job. */
export const selectPromotable: MakeStatement = (schema) => ({
  text: `
select s.id, s.revision::text as revision from (${promotableSchedules(schema)} limit $1::int) p
  join ${schema}.schedule s on s.id = any (array[p.schedule_id])`,
});

/**
 * `$1` offset, `$2` how many at most, `$3` of these schedules only, or null: the oldest occurrence that waits becomes a job, of each
 * schedule without a live one. As in fire.ts, a schedule that somebody holds or has changed since the snapshot is left out: `held`
 * says so, and the next call finds what came of that.
 */
export const promote: MakeStatement = (schema) => ({
  name: 'ratchet-schedules-promote',
  text: `
with clock as materialized (select ${storeClock('$1')} as now),
seen as materialized (
  select s.id, s.revision, s.job_seq
    from (select p.schedule_id from (${promotableSchedules(schema)}) p
           where $3::text[] is null or p.schedule_id = any ($3::text[]) limit $2::int) p
   cross join lateral (select * from ${schema}.schedule where id = p.schedule_id limit 1) s
),
locked as materialized (
  select n.id from seen n join ${schema}.schedule s on s.id = any (array[n.id])
   where s.revision = n.revision and s.job_seq = n.job_seq
     for update of s skip locked
),
oldest as materialized (
  select l.id, o.due_at from locked l cross join lateral (
    select due_at from ${schema}.occurrence where schedule_id = l.id and outcome = 'waiting' order by due_at limit 1
  ) o
),
made as (
  update ${schema}.occurrence o set outcome = 'enqueued', decided_at = c.now
    from oldest x cross join clock c where o.schedule_id = x.id and o.due_at = x.due_at
  returning o.schedule_id, o.due_at, o.job_id, o.missed, o.delay_ms, o.payload
),${occurrenceJobs(
    schema,
    'select m.schedule_id, m.due_at, m.job_id, m.missed, m.delay_ms, m.payload, null::timestamptz as previous from made m',
  )},
advanced as (
  update ${schema}.schedule s set last_at = greatest(s.last_at, m.due_at), job_seq = s.job_seq + 1
    from made m where s.id = any (array[m.schedule_id])
)
${SELECT_JOBS}
union all ${selectOther("'held'", 'null')} where (select count(*) from locked) < (select count(*) from seen)`,
});
