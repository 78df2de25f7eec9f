import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset, then id, node id, node epoch, lane, priority (null: all). Without an epoch: another process has registered the id since, and the row
 * says which; without a row, that one has left too, or somebody deleted the row. The share lock makes such a registration,
 * and the rescue after it, wait for the bucket; and the drain of the node by hand, after which it opens none (`cordoned`).
 */
export const openBucket: MakeStatement = (schema) => ({
  text: `
with owner as materialized (select id, epoch, host, pid, cordoned_at from ${schema}.node where id = $3 for share),
opened as (
  insert into ${schema}.bucket (id, node_id, node_epoch, lane, priority, status, created_at, status_at)
  select $2::uuid, o.id, o.epoch, $5, $6::smallint, 'active', ${storeClock('$1')}, ${storeClock('$1')}
    from owner o where o.epoch = $4::bigint and o.cordoned_at is null
  returning epoch
)
select b.epoch, o.host, o.pid, (o.epoch = $4::bigint and o.cordoned_at is not null)::text as cordoned from owner o left join opened b on true`,
});

/**
 * `$1` offset, then ids, their epochs, from, to. Waits for the exchange in flight, which holds the row. A bucket that holds jobs is
 * never `ready_to_delete`: it stays where those who look for lost work look.
 */
export const setBucketStatuses: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket b set status = $5, status_at = ${storeClock('$1')}
  from unnest($2::uuid[], $3::int[]) as m (id, epoch)
 where b.id = m.id and b.epoch = m.epoch and b.status = $4
   and ($5 <> 'ready_to_delete' or not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1))
returning b.id`,
});

/** Only a bucket that nothing claims into any more is deleted, so the look for its jobs cannot be overtaken by a claim. */
export const deleteBuckets: MakeStatement = (schema) => ({
  text: `
with gone as (
  delete from ${schema}.bucket b using unnest($1::uuid[], $2::int[]) as m (id, epoch)
   where b.id = m.id and b.epoch = m.epoch and b.status = 'ready_to_delete'
     and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)
  returning b.id
),
unmarked as (delete from ${schema}.start_mark m using gone g where m.bucket = g.id)
select id from gone`,
});

/** `$1` offset, node id, epoch: buckets of a node that has left. Waits for the turn in flight, after which nothing is claimed into them. */
export const loseBucketsOf: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket set status = 'lost', epoch = epoch + 1, status_at = ${storeClock('$1')}
 where node_id = $2 and node_epoch = $3::bigint and status <> 'lost' and drainer_id is null`,
});

/** Those of them that hold no job, in a snapshot after that. One that does stays for whoever rescues it. */
export const deleteEmptyBucketsOf: MakeStatement = (schema) => ({
  text: `
with gone as (
  delete from ${schema}.bucket b where b.node_id = $1 and b.node_epoch = $2::bigint and b.status = 'lost'
     and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)
  returning b.id
)
delete from ${schema}.start_mark m using gone g where m.bucket = g.id`,
});
