import { type PriorityRank } from '../../../../jobs/priority.js';
import { MOST_WAITING, type OccurrenceOutcome } from '../../../schedule-store.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { nodesThatDisable } from '../lanes.js';
import { hasLiveJob, isSwitchedOff } from './next-due.js';
import { dateOf, decodeFiredJob, SELECT_JOBS, selectOther } from './occurrence-answer.js';
import { occurrenceJobs } from './occurrence-jobs.js';

/** Other occurrences may have the times from now on: so many milliseconds are tried. */
const TIMES_TRIED = 1_000;

/**
 * `$1` offset, `$2` id, `$3` id of the job, `$4` what to do when the schedule is busy, or null for what it says itself, `$5` payload
 * or null: an occurrence at the first free millisecond from now on. Those that are whole seconds from its next time are left to the plan:
 * a firing that finds its time taken passes it over. Only `seen` comes back when the row was fired or changed while the statement waited
 * for it: its snapshot would not show the job that came of that, so it has to be sent again. None is made while the schedule's priority is
 * switched off in its lane (`off`).
 */
export const trigger: MakeStatement = (schema) => ({
  text: `
with clock as materialized (
  select date_trunc('milliseconds', ${storeClock('$1')}) as now
),
seen as materialized (
  select s.id, s.revision, s.job_seq, s.lane, s.priority, ${isSwitchedOff(schema)} as off, date_trunc('milliseconds', s.next_at) as planned_at, ${hasLiveJob(schema, 's.id')} as live,
         coalesce($4::text, case s.overlap when 'allow' then 'run' when 'queue' then 'wait' else 'skip' end) as if_busy,
         (select count(*) from (
            select from ${schema}.occurrence o where o.schedule_id = s.id and o.outcome = 'waiting' limit ${String(MOST_WAITING)}
          ) w) as waiting
    from clock cross join ${schema}.schedule s where s.id = $2::text and s.removed_at is null
),
locked as materialized (
  select n.* from seen n join ${schema}.schedule s on s.id = n.id
   where s.revision = n.revision and s.job_seq = n.job_seq and not n.off
     for update of s
),
made as (
  insert into ${schema}.occurrence (schedule_id, due_at, through_at, outcome, triggered, job_id, payload, decided_at)
  select x.id, x.at, x.at, x.outcome, true, case when x.outcome <> 'skipped' then $3::uuid end,
         case when x.outcome = 'waiting' then $5::jsonb end, x.now
    from (
      select l.id, free.at, c.now,
             case when l.if_busy = 'run' or (not l.live and l.waiting = 0) then 'enqueued'
                  when l.if_busy = 'wait' and l.waiting < ${String(MOST_WAITING)} then 'waiting' else 'skipped' end as outcome
        from clock c cross join locked l cross join lateral (
          select c.now + k * interval '1 millisecond' as at from generate_series(0, ${String(TIMES_TRIED - 1)}) k
           where not exists (select from ${schema}.occurrence o
                              where o.schedule_id = l.id and o.due_at = c.now + k * interval '1 millisecond')
             and coalesce(mod(extract(epoch from c.now + k * interval '1 millisecond' - l.planned_at), 1) <> 0, true) limit 1
        ) free
    ) x
  on conflict do nothing
  returning schedule_id, due_at, outcome, job_id
),${occurrenceJobs(
    schema,
    `select m.schedule_id, m.due_at, m.job_id, 0 as missed, 0 as delay_ms, $5::jsonb as payload, null::timestamptz as previous
       from made m where m.outcome = 'enqueued'`,
  )},
advanced as (
  update ${schema}.schedule s
     set job_seq = s.job_seq + 1, last_at = greatest(s.last_at, case m.outcome when 'enqueued' then m.due_at end)
    from made m where s.id = m.schedule_id
)
${SELECT_JOBS}
union all ${selectOther("'seen'", 'n.id')} from seen n
union all
select 'off', n.id, (${nodesThatDisable(schema, 'n.lane', 'n.priority')})::text, n.lane, null, n.priority::text, null from seen n where n.off
union all ${selectOther('m.outcome', 'm.schedule_id', 'm.due_at')} from made m where m.outcome in ('skipped', 'waiting')`,
});

/** `again`: nothing was done, and it has to be sent again. Undefined: there is no such schedule. */
export function decodeTriggered(rows: readonly Row[]): OccurrenceOutcome | 'again' | undefined {
  const made = rows.find((row) => row['tag'] !== 'seen');
  if (!made) return rows.length > 0 ? 'again' : undefined;
  if (made['tag'] === 'off') {
    return {
      outcome: 'disabled',
      lane: made['lane'] as string,
      priority: Number(made['priority']) as PriorityRank,
      nodes: JSON.parse(made['occurrence'] as string) as string[],
    };
  }
  const outcome = made['tag'] as 'job' | 'skipped' | 'waiting';
  return outcome === 'job'
    ? { outcome: 'enqueued', job: decodeFiredJob(made) }
    : { outcome, at: dateOf(made) };
}
