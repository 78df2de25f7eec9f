import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** `$1` offset, then id, host, pid, version, lanes, handlers. A known id gets the next epoch; epochs never repeat. */
export const registerNode: MakeStatement = (schema) => ({
  text: `
insert into ${schema}.node (id, epoch, host, pid, version, lanes, handlers, state, started_at, heartbeat_at)
values ($2, nextval('${schema.replaceAll("'", "''")}.node_epoch'), $3, $4, $5, $6::text[], $7::text[], 'running',
        ${storeClock('$1')}, ${storeClock('$1')})
on conflict (id) do update set epoch = excluded.epoch, host = excluded.host, pid = excluded.pid, version = excluded.version,
       lanes = excluded.lanes, handlers = excluded.handlers, state = 'running', started_at = excluded.started_at,
       heartbeat_at = excluded.heartbeat_at
returning epoch::text as epoch`,
});

export const setNodeState: MakeStatement = (schema) => ({
  text: `update ${schema}.node set state = $3 where id = $1 and epoch = $2::bigint`,
});

/**
 * With what is left of this epoch: notices that nobody will read, and buckets that were opened by a statement whose reply
 * was lost, so that nobody ever claimed into them. A bucket that holds jobs stays for whoever rescues it.
 */
export const removeNode: MakeStatement = (schema) => ({
  text: `
with notices as (delete from ${schema}.notice where node_id = $1 and node_epoch = $2::bigint),
buckets as (
  delete from ${schema}.bucket b where b.node_id = $1 and b.node_epoch = $2::bigint
     and not exists (select from ${schema}.job j where j.bucket = b.id and j.status = 1)
)
delete from ${schema}.node where id = $1 and epoch = $2::bigint`,
});

/** Deletes and returns what was left for the node. */
export const takeNotices: MakeStatement = (schema) => ({
  name: 'ratchet-take-notices',
  text: `delete from ${schema}.notice where node_id = $1 and node_epoch = $2::bigint
         returning job_id, claim_seq, reason`,
});
