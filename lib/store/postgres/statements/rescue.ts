import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { failureJobs } from './failure-jobs.js';
import { type BucketStatus } from '../../membership.js';
import { statusesBefore } from '../../bucket-transitions.js';
import { bucketIsUnowned, bucketPauses } from './heartbeat.js';
import { marksOf, orphanedMarks } from './start-marks.js';

/** How long a rescue waits for rows that somebody holds: what else the service connection has to do waits as well. */
const ROW_LOCK_TIMEOUT = '1s';

const statuses = (list: readonly BucketStatus[]): string => list.map((status) => `'${status}'`).join(', ');

/**
 * `$1` offset, `$2` grace in ms, `$3` who asks: declares dead who has not beaten for longer, and forgets its notices. A beat in flight holds the
 * row; the condition is looked at again under the lock, and a row that is held is left for the next time.
 */
export const removeStaleNodes: MakeStatement = (schema) => ({
  text: `
with clock as materialized (select ${storeClock('$1')} as now),
stale as materialized (
  select n.id from ${schema}.node n cross join clock c
   where n.heartbeat_at < c.now - greatest($2::float8, n.grace_ms) * interval '1 millisecond' and n.id <> $3::text
   order by n.id for update of n skip locked
),
dead as (
  delete from ${schema}.node n using stale s, clock c where n.id = s.id
  returning n.id, n.epoch, n.host, n.pid, extract(epoch from c.now - n.heartbeat_at) * 1000 as age
),
notices as (delete from ${schema}.notice t using dead d where t.node_id = d.id and t.node_epoch = d.epoch)
select id, epoch::text as epoch, host, pid, round(age)::float8 as age from dead order by id`,
});

/** `$1` offset, `$2` node id, or null for any node's, then id and epoch of who asks: buckets that nobody looks after. */
export const selectUnownedBuckets: MakeStatement = (schema) => ({
  text: `
with clock as materialized (select ${storeClock('$1')} as now)
select b.id::text as id from ${schema}.bucket b
 where ($2::text is null or b.node_id = $2::text)
   and (${bucketIsUnowned(schema, '$3', '$4', '(select now from clock)')}) order by b.id`,
});

/**
 * `$1` offset, `$2` bucket, then id and epoch of who asks: from whatever its owner had made of it to `lost`; returns that. Waits for
 * the exchange in flight, which holds the row: from then on nothing is claimed into it.
 */
export const loseBucket: MakeStatement = (schema) => ({
  text: `
with old as materialized (
  select b.id, b.status from ${schema}.bucket b
   where b.id = $2::uuid and b.status in (${statuses(statusesBefore('lost', 'watcher'))})
     and (${bucketIsUnowned(schema, '$3', '$4', storeClock('$1'))}) for update
)
update ${schema}.bucket b
   set status = 'lost', epoch = b.epoch + 1, drainer_id = null, drainer_epoch = null, status_at = ${storeClock('$1')}
  from old where b.id = old.id
returning old.status as was`,
});

/**
 * `$1` offset, `$2` bucket, then who takes it: node id and epoch. From `lost` to `draining`, by exactly one node; one that another
 * node has just now is skipped, and so is one that another node has just tried in vain.
 */
export const adoptBucket: MakeStatement = (schema) => ({
  text: `
with free as materialized (
  select b.id from ${schema}.bucket b
   where b.id = $2::uuid and b.status = 'lost' and not ${bucketPauses(storeClock('$1'))} for update skip locked
)
update ${schema}.bucket b
   set status = 'draining', epoch = b.epoch + 1, drainer_id = $3::text, drainer_epoch = $4::bigint, status_at = ${storeClock('$1')}
  from free where b.id = free.id
returning b.id::text as id, b.lane, b.epoch, b.node_id, b.node_epoch::text as node_epoch`,
});

/**
 * `$1` offset, `$2` bucket, `$3` epoch of the adoption, `$4` whether rows are left that could not be taken back: back to `lost`. With
 * such rows it goes on naming its drainer, and is left alone for a while.
 */
export const returnBucket: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket
   set status = 'lost', epoch = epoch + 1, status_at = ${storeClock('$1')},
       drainer_id = case when $4::boolean then drainer_id end, drainer_epoch = case when $4::boolean then drainer_epoch end
 where id = $2::uuid and epoch = $3::int and status = 'draining'`,
});

/** `$1` bucket, `$2` epoch of the adoption: from `draining` to gone, when it holds no job any more. */
export const deleteDrainedBucket: MakeStatement = (schema) => ({
  text: `
with gone as (
  delete from ${schema}.bucket b where b.id = $1::uuid and b.epoch = $2::int and b.status = 'draining'
     and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)
  returning b.id
),
unmarked as (delete from ${schema}.start_mark m using gone g where m.bucket = g.id)
select id from gone`,
});

/**
 * Buckets that running jobs name and that do not exist. In one snapshot that is certain: a claim shares the lock of its
 * bucket's row, so whoever deletes that row comes before the claim or after it. Hops from bucket to bucket in the index of
 * running jobs: its cost goes by the buckets, not by the jobs. Start marks that outlived their bucket (written by an exchange that
 * its end was waiting for) go by the way, once nothing is left that they could charge.
 */
export const selectMissingBuckets: MakeStatement = (schema) => {
  const nextBucket = (after: string): string =>
    `(select j.bucket from ${schema}.job j where j.status = 1 ${after} order by j.bucket limit 1)`;
  return {
    name: 'ratchet-missing-buckets',
    text: `
with recursive swept as (${orphanedMarks(schema)}),
named as (
  ${nextBucket('')}
  union all
  select ${nextBucket('and j.bucket > n.bucket')} from named n where n.bucket is not null
)
select n.bucket::text as id from named n
 where n.bucket is not null and not exists (select from ${schema}.bucket b where b.id = n.bucket)`,
  };
};

/** `$1` bucket, `$2` ids to leave out, `$3` how many at most: claims of a bucket, by id. */
export const selectClaims: MakeStatement = (schema) => ({
  text: `
select j.id::text as id from ${schema}.job j
 where j.bucket = $1::uuid and j.status = 1 and j.id <> all ($2::uuid[]) order by j.id limit $3::int`,
});

/**
 * `$1` offset, bucket, crash budget, node id (null: unknown, the bucket is gone), ids: gives back these claims. What was only claimed
 * ahead goes back as it came. What had begun, by its claim or by a start mark, pays one
 * crash; the first redelivery is at once, later ones wait 1 s doubling up to a minute; a row over the budget goes to the
 * dead letter. Both leave a closed execution under the claim that was lost, where its late worker may still leave its word.
 * `claim_seq` rises, so that nothing else of that worker counts.
 */
export const rescueClaims = (wait: boolean): MakeStatement => (wait ? rescueWaiting : rescueSkipping);

const rescueSkipping: MakeStatement = (schema) => ({ text: rescueText(schema, 'skip locked') });
const rescueWaiting: MakeStatement = (schema) => ({ text: rescueText(schema, '') });

function rescueText(schema: string, locking: string): string {
  return `
with clock as materialized (
  select ${storeClock('$1')} as now, coalesce('node ' || $4::text || ' stopped', 'its bucket was deleted') || '; outcome unknown' as error,
         set_config('lock_timeout', '${ROW_LOCK_TIMEOUT}', true)
),
${marksOf(schema, '$2')},
held as materialized (
  select j.id, j.claim_seq, j.begun_at from clock c cross join ${schema}.job j
   where j.bucket = $2::uuid and j.status = 1 and j.id = any ($5::uuid[]) order by j.id for update of j ${locking}
),
taken as materialized (
  select h.id, coalesce(h.begun_at, m.begun_at) as begun_at, (h.begun_at is null and m.begun_at is not null)::int as counts
    from held h left join marks m on h.begun_at is null and m.id = h.id and m.seq = h.claim_seq
),
dead as (
  delete from ${schema}.job j using taken t where j.id = t.id and t.begun_at is not null and j.crashes >= $3::int
  returning j.id, j.name, j.version, j.lane, j.priority, j.scheduled_at, j.created_at, j.payload, j.claim_seq, t.begun_at,
            j.executions + t.counts as executions, j.failures, j.crashes, j.max_retries, j.backoff, j.timeout_ms, j.business_key,
            j.tags, j.metadata, j.parent_id, j.progress
),
fallen as (
  select d.id, d.name, d.version, d.lane, d.priority, d.scheduled_at, d.created_at, d.payload, d.claim_seq, d.begun_at, c.now,
         $4::text as node, d.executions, d.failures, d.crashes + 1 as crashes, d.max_retries, d.backoff, d.timeout_ms,
         d.business_key, d.tags, d.metadata, d.parent_id, d.progress,
         c.error || '; crash ' || (d.crashes + 1) || ', the budget is ' || $3::int || ' redeliveries' as error
    from dead d cross join clock c
),
buried as (
  insert into ${schema}.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, node,
         begun_at, ended_at, outcome, executions, failures, crashes, max_retries, backoff, timeout_ms, business_key, tags,
         metadata, parent_id, progress, error)
  select d.id, d.name, d.version, d.lane, d.priority, d.scheduled_at, d.created_at, d.payload, d.claim_seq + 1, d.node,
         d.begun_at, d.now, 'crashed', d.executions, d.failures, d.crashes, d.max_retries, d.backoff, d.timeout_ms,
         d.business_key, d.tags, d.metadata, d.parent_id, d.progress, d.error
    from fallen d
),${failureJobs(schema, 'fallen', '(select now from clock)')},
back as (
  update ${schema}.job j
     set status = case when j.pause_requested then 2 else 0 end, pause_requested = false,
         bucket = null, begun_at = null, claim_seq = j.claim_seq + 1, crashes = j.crashes + 1, last_error = c.error,
         scheduled_at = case when j.crashes = 0 then j.scheduled_at
                             else c.now + least(60, 2 ^ least(j.crashes - 1, 10)) * interval '1 second' end,
         executions = j.executions + t.counts
    from taken t cross join clock c
   where j.id = t.id and t.begun_at is not null and j.crashes < $3::int
  returning j.id, j.claim_seq - 1 as claim_seq, j.executions, t.begun_at
),
unbegun as (
  update ${schema}.job j
     set status = case when j.pause_requested then 2 else 0 end, pause_requested = false, bucket = null, claim_seq = j.claim_seq + 1
    from taken t where j.id = t.id and t.begun_at is null
  returning j.id
),
closed as (
  insert into ${schema}.execution (job_id, claim_seq, number, node, outcome, error, began_at, ended_at)
  select e.id, e.claim_seq, e.executions, $4::text, 'crashed', c.error, e.begun_at, c.now
    from (select id, claim_seq, executions, begun_at from back
          union all select id, claim_seq, executions, begun_at from dead) e cross join clock c
)
select (select count(*) from back)::int as recovered, (select count(*) from dead)::int as failed,
       (select count(*) from unbegun)::int as unbegun,
       (select json_agg(json_build_object('id', f.id, 'name', f.name, 'lane', f.lane, 'claimSeq', f.claim_seq::text, 'node', f.node,
                 'error', f.error, 'executions', f.executions, 'failures', f.failures, 'crashes', f.crashes))
          from fallen f)::text as buried`;
}
