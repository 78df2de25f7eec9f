import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset, then id, node id, node epoch, lane. No row: another process has registered the id since. The share lock makes
 * such a registration, and the rescue after it, wait for the bucket.
 */
export const openBucket: MakeStatement = (schema) => ({
  text: `
insert into ${schema}.bucket (id, node_id, node_epoch, lane, status, created_at, status_at)
select $2::uuid, n.id, n.epoch, $5, 'active', ${storeClock('$1')}, ${storeClock('$1')}
  from ${schema}.node n where n.id = $3 and n.epoch = $4::bigint for share
returning epoch`,
});

/** `$1` offset, then id, epoch, from, to. Waits for the exchange in flight, which holds the row. */
export const setBucketStatus: MakeStatement = (schema) => ({
  text: `
update ${schema}.bucket set status = $5, status_at = ${storeClock('$1')}
 where id = $2::uuid and epoch = $3::int and status = $4 returning id`,
});

/** Only a bucket that nothing claims into any more is deleted, so the look for its jobs cannot be overtaken by a claim. */
export const deleteBucket: MakeStatement = (schema) => ({
  text: `
delete from ${schema}.bucket b where b.id = $1::uuid and b.epoch = $2::int and b.status = 'ready_to_delete'
   and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)`,
});
