import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { KEY_LOCK_TIMEOUT } from './insert-jobs.js';
import { begunAt } from './start-marks.js';

/**
 * CTEs that move live rows to history as canceled. A running one loses its claim: the execution is closed under that claim,
 * the row moves on under the next, and its owner finds a notice.
 *
 * They read `clock (now)` and `taken (id)`, rows that are locked; and make `changed`, with the claim of those that were running.
 */
export function canceling(schema: string): string {
  return `
gone as (
  delete from ${schema}.job j using taken t cross join clock c where j.id = any (array[t.id])
  returning j.*, c.now
),
owned as materialized (
  select g.*, b.node_id, b.node_epoch, w.began, g.executions + (g.begun_at is null and w.began is not null)::int as counted
    from gone g cross join lateral (select case when g.status = 1 then ${begunAt(schema, 'g')} end as began) w left join ${schema}.bucket b on b.id = g.bucket
),
history as (
  insert into ${schema}.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         node, begun_at, ended_at, executions, failures, crashes, max_retries, business_key, tags, metadata, parent_id,
         progress, error)
  select o.id, o.name, o.version, o.lane, o.priority, 'canceled', o.scheduled_at, o.created_at, o.payload,
         o.claim_seq + (o.status = 1)::int, o.node_id, o.began, o.now, o.counted, o.failures, o.crashes,
         o.max_retries, o.business_key, o.tags, o.metadata, o.parent_id, o.progress, o.last_error
    from owned o
),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, began_at, ended_at)
  select o.id, o.claim_seq, o.counted, o.node_id, 'canceled', o.began, o.now from owned o where o.began is not null
),
noticed as (
  insert into ${schema}.notice (node_id, node_epoch, job_id, claim_seq, reason, created_at)
  select o.node_id, o.node_epoch, o.id, o.claim_seq, 'canceled', o.now from owned o
   where o.status = 1 and o.node_id is not null
  on conflict do nothing
),
changed as (
  select o.id, o.name, o.lane, o.priority, case when o.status = 1 then o.claim_seq end as claim_seq, o.node_id as node
    from owned o
)`;
}

/** `$1` offset, `$2` id. Waits a moment for whoever holds the row. */
export const cancel: MakeStatement = (schema) => ({
  text: `
with clock as materialized (
  select ${storeClock('$1')} as now, set_config('lock_timeout', '${KEY_LOCK_TIMEOUT}', true)
),
taken as materialized (select j.id from ${schema}.job j cross join clock where j.id = $2::uuid for update of j),${canceling(schema)}
select c.lane, c.name, (c.claim_seq is not null)::text as running, c.claim_seq::text as claim_seq, c.node from changed c`,
});
