import { type MakeStatement, type MarkableStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { isInside } from './joined.js';
import { begunAt } from './start-marks.js';

/**
 * A transaction that has taken its job's row commits next. When it stands still instead (a frozen process, a connection that
 * was cut in silence), the server ends it after this long, so that the row is free again.
 */
export const STANDSTILL_MS = 5_000;

/**
 * The outcome of a claim, written inside a transaction of the application: the same rows as the exchange writes. `$1` offset, `$2` id,
 * `$3` claim, `$4` true for a success and false for a snooze, `$5` result, `$6` delay, `$7` drop, `$8` progress, `$9` how long ago it began, in
 * milliseconds, of one that was claimed ahead; marked: `$10` the mark. Comes back with the id, with nothing when the claim no longer stands, and with a row without an id outside of the
 * marked transaction.
 */
export const recordWithin: MarkableStatement = {
  plain: (schema) => ({ text: recordText(schema, undefined) }),
  marked: (schema) => ({ text: recordText(schema, isInside('$10')) }),
};

function recordText(schema: string, inside: string | undefined): string {
  return `
with clock as materialized (
  select ${storeClock('$1')} as now, set_config('idle_in_transaction_session_timeout', '${STANDSTILL_MS}', true)
   ${inside === undefined ? '' : `where ${inside}`}
),
locked as materialized (
  select j.id, ${begunAt(schema, 'j', `c.now - $9::float8 * interval '1 millisecond'`)} as begun_at, (j.begun_at is null)::int as counts, c.now, (select b.node_id from ${schema}.bucket b where b.id = j.bucket) as node
    from clock c join ${schema}.job j on j.id = any (array[$2::uuid])
   where j.claim_seq = $3::bigint and j.status is not distinct from 1
     for update of j
),
ended as (
  delete from ${schema}.job j using locked l where j.id = any (array[l.id]) and $4::boolean
  returning j.id, j.name, j.version, j.lane, j.priority, j.scheduled_at, j.created_at, j.payload, j.claim_seq, l.begun_at,
            j.executions + l.counts as executions, j.failures, j.crashes, j.max_retries, j.business_key, j.tags, j.metadata,
            j.parent_id, j.progress, l.now, l.node
),
to_history as (
  insert into ${schema}.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         node, begun_at, ended_at, executions, failures, crashes, max_retries, business_key, tags, metadata, parent_id,
         progress, result)
  select e.id, e.name, e.version, e.lane, e.priority, 'succeeded', e.scheduled_at, e.created_at, e.payload, e.claim_seq,
         e.node, e.begun_at, e.now, e.executions, e.failures, e.crashes, e.max_retries, e.business_key, e.tags, e.metadata,
         e.parent_id, coalesce($8::text::jsonb, e.progress), $5::text::jsonb
    from ended e where not $7::boolean
),
dropped_payload as (
  delete from ${schema}.job_payload p using ended e where $7::boolean and e.payload is null and p.job_id = e.id
),
given_back as (
  update ${schema}.job j
     set status = case when j.pause_requested then 2 else 0 end, pause_requested = false, bucket = null, begun_at = null,
         scheduled_at = l.now + coalesce($6::float8, 0) * interval '1 millisecond',
         progress = coalesce($8::text::jsonb, j.progress), executions = j.executions + l.counts
    from locked l where j.id = any (array[l.id]) and not $4::boolean
  returning j.id, j.claim_seq, j.executions, l.node, l.begun_at, l.now
),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, began_at, ended_at)
  select g.id, g.claim_seq, g.executions, g.node, 'snoozed', g.begun_at, g.now from given_back g
)
select l.id::text as id from locked l${
    inside === undefined ? '' : '\n union all select null where not exists (select from clock)'
  }`;
}

/**
 * `$1` id, `$2` claim: the row of a claim that stands, locked for a moment. Whoever waits here waits for the transaction that may
 * be committing it.
 */
export const awaitClaim: MakeStatement = (schema) => ({
  text: `
select j.id::text as id from ${schema}.job j where j.id = $1::uuid and j.claim_seq = $2::bigint and j.status = 1 for update of j`,
});

/**
 * `$1` offset, `$2` id, `$3` claim, `$4` whether a success leaves no trace: was the claim's outcome recorded as
 * {@link recordWithin} does? A release, a cancel or a retry under the same claim is somebody else's word.
 */
export const selectFate: MakeStatement = (schema) => {
  const recent = `ended_at >= now() + $1::float8 * interval '1 millisecond' - interval '1 day'`;
  return {
    text: `
select (exists (select from ${schema}.execution e where e.job_id = $2::uuid and e.claim_seq = $3::bigint and ${recent}
                  and e.outcome = 'snoozed')
     or exists (select from ${schema}.job_history h where h.id = $2::uuid and h.claim_seq = $3::bigint and ${recent}
                  and h.outcome = 'succeeded')
     or ($4::boolean and not exists (select from ${schema}.job j where j.id = $2::uuid)
         and not exists (select from ${schema}.job_history h where h.id = $2::uuid and ${recent})
         and not exists (select from ${schema}.dead_letter d where d.id = $2::uuid)))::text as recorded`,
  };
};
