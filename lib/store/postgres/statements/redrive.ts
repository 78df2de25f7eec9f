import { type MakeStatement } from '../postgres-session.js';
import { quoteLiteral } from '../schema-name.js';
import { storeClock } from './clock.js';
import { KEY_LOCK_TIMEOUT } from './insert-jobs.js';

/**
 * CTEs that bring rows of the dead letter back to pending, due now, under the next claim. The delete reads from the insert:
 * while a live job holds the business key nothing moves. The failed execution, which the dead letter row *was*, becomes a closed
 * row, unless the partition of its day is gone already.
 *
 * They read `clock (now)` and `taken`, locked rows of the dead letter; and make `changed`. Rows enter in the order of their
 * keys, as those of an enqueue do, so that the two cannot wait for each other.
 */
export function redriving(schema: string): string {
  const partition = `to_regclass(${quoteLiteral(`${schema}.execution_`)} || to_char(d.ended_at at time zone 'UTC', 'YYYYMMDD'))`;
  return `
revived as (
  insert into ${schema}.job (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, executions,
         max_retries, backoff, timeout_ms, business_key, tags, metadata, parent_id, progress, last_error)
  select d.id, d.name, d.version, d.lane, d.priority, c.now, d.created_at, d.payload, d.claim_seq + 1, d.executions,
         d.max_retries, d.backoff, d.timeout_ms, d.business_key, d.tags, d.metadata, d.parent_id, d.progress, d.error
    from taken d cross join clock c
   order by d.business_key, d.id
  on conflict (business_key) where business_key is not null do nothing
  returning id, name, lane, priority
),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, error, began_at, ended_at, late_outcome,
         late_error, late_at)
  select d.id, d.claim_seq, d.executions, d.node, d.outcome, d.error, d.begun_at, d.ended_at, d.late_outcome,
         d.late_error, d.late_at
    from taken d join revived r on r.id = d.id
   where d.outcome <> 'crashed'
     and exists (select from pg_inherits i where i.inhrelid = ${partition} and not i.inhdetachpending)
),
gone as (delete from ${schema}.dead_letter d using revived r where d.id = any (array[r.id])),
changed as (select r.*, null::bigint as claim_seq from revived r)`;
}

/** `$1` offset, `$2` id. Waits a moment for whoever holds the row or the key. */
export const redrive: MakeStatement = (schema) => ({
  text: `
with clock as materialized (select ${storeClock('$1')} as now, set_config('lock_timeout', '${KEY_LOCK_TIMEOUT}', true)),
taken as materialized (
  select d.* from ${schema}.dead_letter d cross join clock where d.id = $2::uuid for update of d
),${redriving(schema)}
select d.lane, d.priority::text as priority, d.business_key, (exists (select from changed))::text as revived from taken d`,
});
