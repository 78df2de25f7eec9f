import { type Settlement } from '../../../job-store.js';
import { failureJobs } from '../failure-jobs.js';
import { type ExchangeShape } from './shape.js';

/** How an outcome travels. */
export const KIND: Record<Settlement['outcome'], number> = {
  succeeded: 0,
  failed: 1,
  retried: 2,
  snoozed: 3,
  released: 4,
};
export const PROGRESS = 5;

/**
 * CTEs that record what finished; they make `sent`, `standing` (its claim stands in this snapshot) and `locked` (and its row is
 * ours). A job that was claimed ahead has no `begun_at` of its own: `ran_ms` says how long ago it began, and that it did; one
 * that is given back without it was never begun, so it counts no execution and leaves none.
 */
export function settlePart(schema: string, { wait, failing, marking }: ExchangeShape, now: string): string {
  const moved = 'j.id, j.name, j.version, j.lane, j.priority';
  const counters = marking ? 'j.executions + l.counts as executions' : 'j.executions';
  const begun = marking
    ? `coalesce(j.begun_at, ${now} - s.ran_ms * interval '1 millisecond') as begun_at,
         (j.begun_at is null and s.ran_ms is not null)::int as counts`
    : 'j.begun_at';
  const standing = `j.claim_seq = s.seq and j.status is not distinct from 1 and j.bucket is not distinct from @bucket::uuid`;
  return `sent as materialized (
  select s.* from unnest(@ids::uuid[], @seqs::bigint[], @kinds::smallint[], @results::text[], @errors::text[], @delays::bigint[],
                         @drops::boolean[], @progress::text[]${marking ? ', @ran::float8[]' : ''})
    as s (id, seq, kind, result, error, delay_ms, dropped, progress${marking ? ', ran_ms' : ''})
),
standing as materialized (
  select s.id from sent s join ${schema}.job j on j.id = any (array[s.id])
   where ${standing}
),
locked as materialized (
  select s.*, ${begun} from sent s join ${schema}.job j on j.id = any (array[s.id])
   where ${standing}
     for update of j${wait ? '' : ' skip locked'}
),
ended as (
  delete from ${schema}.job j using locked l
   where j.id = any (array[l.id]) and l.kind in (${KIND.succeeded}, ${KIND.failed})
  returning ${moved}, j.scheduled_at, j.created_at, j.payload, j.claim_seq, l.begun_at, ${counters}, j.failures, j.crashes,
            j.max_retries, j.backoff, j.timeout_ms, j.business_key, j.tags, j.metadata, j.parent_id,
            coalesce(l.progress::jsonb, j.progress) as progress, l.kind, l.result, l.error, l.dropped
),
to_history as (
  insert into ${schema}.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, payload, claim_seq,
         node, begun_at, ended_at, executions, failures, crashes, max_retries, business_key, tags, metadata, parent_id,
         progress, result)
  select e.id, e.name, e.version, e.lane, e.priority, 'succeeded', e.scheduled_at, e.created_at, e.payload, e.claim_seq,
         @node::text, e.begun_at, ${now}, e.executions, e.failures, e.crashes, e.max_retries, e.business_key, e.tags, e.metadata,
         e.parent_id, e.progress, e.result::jsonb
    from ended e where e.kind = ${KIND.succeeded} and not e.dropped
),
dropped_payload as (
  delete from ${schema}.job_payload p using ended e
   where e.dropped and e.kind = ${KIND.succeeded} and e.payload is null and p.job_id = e.id
),
${failing ? buriedJobs(schema, now) : ''}given_back as (
  update ${schema}.job j
     set status = case when j.pause_requested then 2 else 0 end, pause_requested = false, bucket = null, begun_at = null,
         scheduled_at = case when l.delay_ms is null then j.scheduled_at
                             else ${now} + l.delay_ms * interval '1 millisecond' end,
         failures = j.failures + case l.kind when ${KIND.retried} then 1 else 0 end,
         claim_seq = j.claim_seq + case l.kind when ${KIND.released} then 1 else 0 end,
         last_error = case l.kind when ${KIND.retried} then l.error else j.last_error end,
         progress = coalesce(l.progress::jsonb, j.progress)${marking ? ', executions = j.executions + l.counts' : ''}
    from locked l
   where j.id = any (array[l.id]) and l.kind in (${KIND.retried}, ${KIND.snoozed}, ${KIND.released})
  returning j.id, l.seq, j.executions, l.kind, l.error, l.begun_at
),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, error, began_at, ended_at)
  select g.id, g.seq, g.executions, @node::text,
         case g.kind when ${KIND.retried} then 'retried' when ${KIND.snoozed} then 'snoozed' else 'released' end,
         g.error, g.begun_at, ${now}
    from given_back g${marking ? ' where g.begun_at is not null' : ''}
),
progressed as (
  update ${schema}.job j set progress = l.progress::jsonb from locked l where j.id = any (array[l.id]) and l.kind = ${PROGRESS}
)`;
}

/** From the live table to the dead letter, and into the queues of failure handlers. */
function buriedJobs(schema: string, now: string): string {
  return `to_dead_letter as (
  insert into ${schema}.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq,
         node, begun_at, ended_at, executions, failures, crashes, max_retries, backoff, timeout_ms, business_key, tags,
         metadata, parent_id, progress, error)
  select e.id, e.name, e.version, e.lane, e.priority, e.scheduled_at, e.created_at, e.payload, e.claim_seq,
         @node::text, e.begun_at, ${now}, e.executions, e.failures + 1, e.crashes, e.max_retries, e.backoff, e.timeout_ms,
         e.business_key, e.tags, e.metadata, e.parent_id, e.progress, e.error
    from ended e where e.kind = ${KIND.failed}
),
buried as (
  select e.id, e.name, e.version, e.lane, e.priority, e.created_at, e.payload, @node::text as node, e.executions,
         e.failures + 1 as failures, e.crashes, e.business_key, e.tags, e.metadata, e.error
    from ended e where e.kind = ${KIND.failed}
),${failureJobs(schema, 'buried', now)},
`;
}
