import { JOB_PRIORITIES } from '../../../jobs/priority.js';
import { type LaneMove } from '../../bucket-store.js';
import { type MakeStatement } from '../postgres-session.js';
import { nodesThatDisable } from './lanes.js';

/** Jobs that one step moves at most. */
export const MOVE_CHUNK = 1_000;

/** Conditions on `j`, one for each index that holds jobs which wait. Each has the lane first. */
const PENDING = 'j.status = 0 and j.crashes < 2';
const SUSPECT = 'j.status = 0 and j.crashes >= 2';
const PAUSED = 'j.status = 2';

/**
 * `$1` from, `$2` to, `$3` priorities. Jobs that somebody holds are being claimed or changed: they are passed over. Due times, claims and all
 * else of a job stay as they are, so that nothing of it has to be fenced: nobody has a claim on what waits.
 */
export const moveLane: MakeStatement = (schema) => {
  const left = (...parts: string[]): string =>
    `greatest(0, ${String(MOVE_CHUNK)} - ${parts.map((part) => `(select count(*) from ${part})`).join(' - ')})`;
  return {
    text: `
with pending as materialized (
  select s.id from unnest($3::smallint[]) as p
   cross join lateral (
     select j.id from ${schema}.job j where ${PENDING} and j.lane = $1::text and j.priority = p
      order by j.lane, j.priority, j.scheduled_at, j.id limit ${String(MOVE_CHUNK)} for update of j skip locked
   ) s limit ${String(MOVE_CHUNK)}
),
suspects as materialized (
  select j.id from ${schema}.job j where ${SUSPECT} and j.lane = $1::text and j.priority = any ($3::smallint[])
   order by j.lane, j.scheduled_at, j.id limit ${left('pending')} for update of j skip locked
),
paused as materialized (
  select j.id from ${schema}.job j where ${PAUSED} and j.lane = $1::text and j.priority = any ($3::smallint[])
   order by j.lane, j.id limit ${left('pending', 'suspects')} for update of j skip locked
),
moved as (
  update ${schema}.job j set lane = $2::text
    from (select id from pending union all select id from suspects union all select id from paused) t
   where j.id = any (array[t.id])
  returning j.id
)
select count(*)::text as moved from moved`,
  };
};

/** `$1` from, `$2` to, `$3` priority or null: those of `to` that are switched off, if they were asked for or have jobs to move. */
export const selectMoveObstacles: MakeStatement = (schema) => {
  const any = [PENDING, SUSPECT, PAUSED]
    .map(
      (jobs) =>
        `exists (select from ${schema}.job j where ${jobs} and j.lane = $1::text and j.priority = p limit 1)`,
    )
    .join(' or ');
  return {
    text: `
select json_build_object('priority', p, 'nodes', ${nodesThatDisable(schema, '$2::text', 'p')})::text as row
  from ${schema}.lane l cross join lateral unnest(l.disabled) as p
 where l.name = $2::text and (p = $3::smallint or ($3::smallint is null and (${any})))
 order by p`,
  };
};

export function moveParameters({ from, to, priority }: LaneMove): unknown[] {
  return [from, to, priority === undefined ? JOB_PRIORITIES.map((_, rank) => rank) : [priority]];
}
