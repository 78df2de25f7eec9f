import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { nextRevision } from './write.js';

/**
 * `$1` offset, `$2` convergence window in ms: marks annotated schedules that no node has as orphaned, unmarks those that one has
 * again, and removes those that have been orphaned for longer. What the snapshot says of a row is looked at again under its lock,
 * which a node that registers takes too (nodes.ts).
 *
 * Returns those that were `removed`, and those `left` by an earlier sweep: removed, and still with `orphaned_at`, because their jobs
 * have not been dealt with.
 */
export const sweepSchedules: MakeStatement = (schema) => {
  const isPast = `s.orphaned_at <= c.now - $2::float8 * interval '1 millisecond'`;
  return {
    name: 'ratchet-schedules-sweep',
    text: `
with clock as materialized (select date_trunc('milliseconds', ${storeClock('$1')}) as now),
looked as materialized (
  select s.id, s.orphaned_at, s.id in (select unnest(n.schedules) from ${schema}.node n) as is_had
    from ${schema}.schedule s where s.origin = 'annotation' and s.removed_at is null order by s.id
),
left_over as materialized (
  select id from ${schema}.schedule where removed_at is not null and orphaned_at is not null
),
swept as (
  update ${schema}.schedule s
     set orphaned_at = case when l.is_had then null else coalesce(s.orphaned_at, c.now) end,
         removed_at = case when not l.is_had and ${isPast} then c.now end,
         next_at = case when l.is_had or not coalesce(${isPast}, false) then s.next_at end,
         revision = case when not l.is_had and ${isPast} then ${nextRevision(schema)} else s.revision end
    from looked l cross join clock c
   where s.id = any (array[l.id]) and s.removed_at is null
     and case when l.is_had then s.orphaned_at is not null else s.orphaned_at is null or ${isPast} end
  returning s.id, s.removed_at
)
select 'removed' as tag, id from swept where removed_at is not null
union all select 'left', id from left_over`,
  };
};

/** `$1` offset, `$2` ids: what waited does not run any more, and with that a removal is complete. */
export const completeRemoval: MakeStatement = (schema) => ({
  text: `
with completed as (
  update ${schema}.schedule set orphaned_at = null where id = any ($2::text[]) and removed_at is not null returning id
)
update ${schema}.occurrence o set outcome = 'skipped', job_id = null, payload = null, decided_at = ${storeClock('$1')}
  from completed c where o.schedule_id = c.id and o.outcome = 'waiting'`,
});
