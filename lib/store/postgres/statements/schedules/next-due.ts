import { RECURRENCE_KEYS } from '../../../../jobs/recurrence.js';

/**
 * That a live job of the schedule exists, whatever its status; `id` is an expression. Served by the index `job_recurring`, and not an
 * `exists`: of that the planner may make a hash of all jobs, or a join.
 */
export const hasLiveJob = (schema: string, id: string): string =>
  `((select true from ${schema}.job j where j.metadata ->> '${RECURRENCE_KEYS.schedule}' = ${id} limit 1) is not null)`;

/** That a schedule, `s`, may make jobs: neither broken nor removed. A paused one may: what waits was decided before, or by hand. */
export const MAKES_JOBS = 's.fault is null and s.removed_at is null';

/** That every node which serves the lane of a schedule, `s`, has switched its priority off. */
export const isSwitchedOff = (schema: string): string =>
  `exists (select from ${schema}.lane l where l.name = s.lane and l.disabled <> '{}' and s.priority = any (l.disabled))`;

/**
 * A query for the schedules of which an occurrence waits while none of their jobs is live: `schedule_id`, ascending. Hops from
 * schedule to schedule in the index of those that wait, lazily: who asks for one reads up to the first.
 */
export const promotableSchedules = (schema: string): string => {
  const nextWaiting = (after: string): string =>
    `(select o.schedule_id from ${schema}.occurrence o where o.outcome = 'waiting' ${after} order by o.schedule_id limit 1)`;
  return `
  with recursive waits as (
    ${nextWaiting('')}
    union all
    select ${nextWaiting('and o.schedule_id > w.schedule_id')} from waits w where w.schedule_id is not null
  )
  select w.schedule_id
    from waits w cross join lateral (select from ${schema}.schedule s where s.id = w.schedule_id and ${MAKES_JOBS} limit 1) s
   where not ${hasLiveJob(schema, 'w.schedule_id')}`;
};

/** Milliseconds from `now` until the next schedule is due, rounded up, so that a timer does not ring early. */
export const nextDueInMs = (schema: string, now: string, condition = 'true'): string => `
  (select ceil(greatest(0, extract(epoch from s.next_at - ${now}) * 1000)) from ${schema}.schedule s
    where s.next_at is not null and ${condition} order by s.next_at, s.id limit 1)`;
