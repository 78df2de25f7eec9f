import { statusesBefore } from '../../bucket-transitions.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset, then id, node id, node epoch, lane, priority (null: all). One that the node has opened under that id already is its bucket,
 * whatever has become of it since: the answer was lost. Without an epoch: another process has registered the id since, and the row
 * says which; without a row, that one has left too, or somebody deleted the row. The share lock makes such a registration,
 * and the rescue after it, wait for the bucket; and the drain of the node by hand, after which it opens none (`cordoned`).
 */
export const openBucket: MakeStatement = (schema) => ({
  text: `
with owner as materialized (select id, epoch, host, pid, cordoned_at from ${schema}.node where id = $3 for share),
opened as (
  insert into ${schema}.bucket as b (id, node_id, node_epoch, lane, priority, status, created_at, status_at)
  select $2::uuid, o.id, o.epoch, $5, $6::smallint, 'active', ${storeClock('$1')}, ${storeClock('$1')}
    from owner o where o.epoch = $4::bigint and o.cordoned_at is null
  on conflict (id) do update set status = b.status
    where b.node_id = excluded.node_id and b.node_epoch = excluded.node_epoch and b.status <> 'lost'
  returning b.epoch
),
before as (
  select b.epoch from ${schema}.bucket b join owner o on o.id = b.node_id and o.epoch = b.node_epoch
   where b.id = $2::uuid and o.epoch = $4::bigint and o.cordoned_at is not null and b.status <> 'lost'
)
select coalesce(b.epoch, e.epoch) as epoch, o.host, o.pid, (o.epoch = $4::bigint and o.cordoned_at is not null)::text as cordoned from owner o left join opened b on true left join before e on true`,
});

/**
 * `$1` offset, then ids, their epochs, from, to. Waits for the exchange in flight, which holds the row. One that is there already counts
 * as moved: the answer to the move was lost, or somebody drained it by hand. A bucket that holds jobs is never `ready_to_delete`: it
 * stays where those who look for lost work look.
 */
export const setBucketStatuses: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket b set status = $5, status_at = case when b.status = $5 then b.status_at else ${storeClock('$1')} end
  from unnest($2::uuid[], $3::int[]) as m (id, epoch)
 where b.id = m.id and b.epoch = m.epoch and b.status in ($4, $5)
   and ($5 <> 'ready_to_delete' or not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1))
returning b.id`,
});

/**
 * Ids, epochs; returns those that are gone, also those that were gone before. Only a bucket that nothing claims into any more is deleted,
 * so the look for its jobs cannot be overtaken by a claim.
 */
export const deleteBuckets: MakeStatement = (schema) => ({
  text: `
with gone as (
  delete from ${schema}.bucket b using unnest($1::uuid[], $2::int[]) as m (id, epoch)
   where b.id = m.id and b.epoch = m.epoch and b.status = 'ready_to_delete'
     and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)
  returning b.id
),
unmarked as (delete from ${schema}.start_mark m using gone g where m.bucket = g.id)
select id from gone
union all
select m.id from unnest($1::uuid[]) as m (id) where not exists (select from ${schema}.bucket b where b.id = m.id)`,
});

const LOSABLE = statusesBefore('lost', 'owner')
  .map((status) => `'${status}'`)
  .join(', ');

/** `$1` offset, node id, epoch: buckets of a node that has left. Waits for the turn in flight, after which nothing is claimed into them. */
export const loseBucketsOf: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket set status = 'lost', epoch = epoch + 1, status_at = ${storeClock('$1')}
 where node_id = $2 and node_epoch = $3::bigint and status in (${LOSABLE}) and drainer_id is null`,
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
