import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** Rows of one give-back statement. */
export const RESCUE_CHUNK = 1_000;

/** `$1` offset, node id, epoch: takes away every bucket of older epochs. Waits for exchanges in flight, which hold the rows. */
export const loseOwnBuckets: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket set status = 'lost', epoch = epoch + 1, status_at = ${storeClock('$1')}
 where node_id = $2 and node_epoch < $3::bigint
returning id`,
});

/**
 * Buckets that running jobs name and that do not exist. In one snapshot that is certain: a claim shares the lock of its
 * bucket's row, so whoever deletes that row comes before the claim or after it. Hops from bucket to bucket in the index of
 * running jobs: its cost goes by the buckets, not by the jobs.
 */
export const selectMissingBuckets: MakeStatement = (schema) => {
  const nextBucket = (after: string): string =>
    `(select j.bucket from ${schema}.job j where j.status = 1 ${after} order by j.bucket limit 1)`;
  return {
    name: 'ratchet-missing-buckets',
    text: `
with recursive named as (
  ${nextBucket('')}
  union all
  select ${nextBucket('and j.bucket > n.bucket')} from named n where n.bucket is not null
)
select n.bucket::text as id from named n
 where n.bucket is not null and not exists (select from ${schema}.bucket b where b.id = n.bucket)`,
  };
};

/**
 * `$1` offset, bucket, crash budget, node id (null: unknown, the bucket is gone): gives back one chunk. Each row pays one
 * crash; the first redelivery is at once, later ones wait 1 s doubling up to a minute; a row over the budget goes to the
 * dead letter. Both leave a closed execution under the claim that was lost, where its late worker may still leave its word.
 * `claim_seq` rises, so that nothing else of that worker counts.
 */
export const rescueChunk = (wait: boolean): MakeStatement => (wait ? rescueWaiting : rescueSkipping);

const rescueSkipping: MakeStatement = (schema) => ({ text: rescueText(schema, 'skip locked') });
const rescueWaiting: MakeStatement = (schema) => ({ text: rescueText(schema, '') });

function rescueText(schema: string, locking: string): string {
  return `
with clock as materialized (
  select ${storeClock('$1')} as now, coalesce('node ' || $4::text || ' stopped', 'its bucket was deleted') || '; outcome unknown' as error
),
taken as materialized (
  select id from ${schema}.job where bucket = $2::uuid and status = 1 limit ${String(RESCUE_CHUNK)} for update ${locking}
),
dead as (
  delete from ${schema}.job j using taken t where j.id = t.id and j.crashes >= $3::int
  returning j.*
),
buried as (
  insert into ${schema}.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, node,
         begun_at, ended_at, outcome, executions, failures, crashes, max_retries, backoff, timeout_ms, business_key, tags,
         metadata, parent_id, progress, error)
  select d.id, d.name, d.version, d.lane, d.priority, d.scheduled_at, d.created_at, d.payload, d.claim_seq + 1, $4::text,
         d.begun_at, c.now, 'crashed', d.executions, d.failures, d.crashes + 1, d.max_retries, d.backoff, d.timeout_ms,
         d.business_key, d.tags, d.metadata, d.parent_id, d.progress,
         c.error || '; crash ' || (d.crashes + 1) || ', the budget is ' || $3::int || ' redeliveries'
    from dead d cross join clock c
),
back as (
  update ${schema}.job j
     set status = 0, bucket = null, begun_at = null, claim_seq = j.claim_seq + 1, crashes = j.crashes + 1, last_error = c.error,
         scheduled_at = case when j.crashes = 0 then j.scheduled_at
                             else c.now + least(60, 2 ^ least(j.crashes - 1, 10)) * interval '1 second' end
    from taken t cross join clock c
   where j.id = t.id and j.crashes < $3::int
  returning j.id, j.claim_seq - 1 as claim_seq, j.executions
),
begun as materialized (select j.id, j.begun_at from ${schema}.job j join taken t on t.id = j.id),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, error, began_at, ended_at)
  select e.id, e.claim_seq, e.executions, $4::text, 'crashed', c.error, b.begun_at, c.now
    from (select id, claim_seq, executions from back union all select id, claim_seq, executions from dead) e
    join begun b on b.id = e.id cross join clock c
)
select (select count(*) from back)::int as recovered, (select count(*) from dead)::int as failed`;
}

/** SKIP LOCKED finding nothing is no proof of an empty bucket; this is. */
export const countClaims: MakeStatement = (schema) => ({
  text: `select count(*)::int as left_over from ${schema}.job where bucket = $1::uuid and status = 1`,
});

export const deleteLostBucket: MakeStatement = (schema) => ({
  text: `
delete from ${schema}.bucket b where b.id = $1::uuid and b.status = 'lost'
   and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)`,
});
