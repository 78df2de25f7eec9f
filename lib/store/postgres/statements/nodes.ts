import { type NodeRegistration } from '../../job-store.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/**
 * `$1` offset, then id, host, pid, version, lanes, handlers, the jobs with a failure handler (names and lanes), the process, the
 * schedules, the grace in ms, the priorities switched off, whether it is drained by hand,
 * and whether it claims ahead. A known id gets the next epoch; epochs never repeat.
 */
export const registerNode: MakeStatement = (schema) => ({
  text: registerText(
    schema,
    `on conflict (id) do update set epoch = excluded.epoch, host = excluded.host, pid = excluded.pid, version = excluded.version,
       lanes = excluded.lanes, handlers = excluded.handlers, state = 'running', started_at = excluded.started_at,
       heartbeat_at = excluded.heartbeat_at, process = excluded.process, schedules = excluded.schedules, grace_ms = excluded.grace_ms,
       disabled = excluded.disabled, buffers = excluded.buffers, cordoned_at = excluded.cordoned_at`,
  ),
});

/**
 * The same for a node whose row was removed: no row comes back when another process has the id by now. Safe to repeat after a lost
 * reply: a row that this process has just made is its own.
 */
export const returnNode: MakeStatement = (schema) => ({
  text: registerText(
    schema,
    'on conflict (id) do update set heartbeat_at = excluded.heartbeat_at where n.process = excluded.process',
  ),
});

/**
 * Schedules that were about to be removed stay: whoever removes one looks again under the lock that this takes, so that either it sees
 * the node, or the node, which reads its schedules afterwards, sees the removal.
 */
const registerText = (schema: string, onConflict: string): string => `
with failure_handlers as (
  insert into ${schema}.failure_handler as h (job_name, lane, seen_at)
  select f.name, f.lane, ${storeClock('$1')} from unnest($8::text[], $9::text[]) as f (name, lane) order by f.name
  on conflict (job_name) do update set lane = excluded.lane, seen_at = excluded.seen_at
),
kept_schedules as (
  update ${schema}.schedule set orphaned_at = null
   where id = any ($11::text[]) and orphaned_at is not null and removed_at is null
)
insert into ${schema}.node as n (id, epoch, host, pid, version, lanes, handlers, state, started_at, heartbeat_at, process,
       schedules, grace_ms, disabled, cordoned_at, buffers)
values ($2, nextval('${schema.replaceAll("'", "''")}.node_epoch'), $3, $4, $5, $6::text[], $7::text[], 'running',
        ${storeClock('$1')}, ${storeClock('$1')}, $10::text, $11::text[], $12::float8, $13::jsonb,
        case when $14::boolean then ${storeClock('$1')} end, $15::boolean)
${onConflict}
returning epoch::text as epoch`;

export const setNodeState: MakeStatement = (schema) => ({
  text: `update ${schema}.node set state = $3 where id = $1 and epoch = $2::bigint`,
});

/** With its notices, which nobody will read. */
export const removeNode: MakeStatement = (schema) => ({
  text: `
with notices as (delete from ${schema}.notice where node_id = $1 and node_epoch = $2::bigint)
delete from ${schema}.node where id = $1 and epoch = $2::bigint`,
});

export function registerParameters(node: NodeRegistration, offsetMs: number): unknown[] {
  const { id, host, pid, version, lanes, handlers, failureHandlers = [], schedules = [], graceMs = 0 } = node;
  const names = failureHandlers.map(({ jobName }) => jobName);
  const failureLanes = failureHandlers.map(({ lane }) => lane);
  return [
    offsetMs,
    id,
    host,
    pid,
    version,
    [...lanes],
    [...handlers],
    names,
    failureLanes,
    node.process ?? null,
    [...schedules].sort(),
    graceMs,
    JSON.stringify(node.disabled ?? {}),
    node.cordoned ?? false,
    node.buffers ?? false,
  ];
}
