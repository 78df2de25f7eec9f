import { type BeatAnswer, type BeatRequest, type NodeView } from '../../membership.js';
import { type Notice } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { nextDueInMs, promotableSchedules } from './schedules/next-due.js';

/** Rows that could not be taken back are not tried again sooner, by no node. */
const STUCK_PAUSE = "interval '5 seconds'";

/**
 * A lost bucket with rows that its last drainer, which it still names, could not take back a moment ago. The end of the moment is
 * left out when the clock was set back.
 */
export const bucketPauses = (now: string): string =>
  `(b.drainer_id is not null and b.status_at <= ${now} and b.status_at > ${now} - ${STUCK_PAUSE})`;

/**
 * A bucket that nobody looks after: lost, or of an owner (or drainer) that has no row. `b` is the bucket. An owner's row is
 * locked by whoever opens a bucket, so a bucket without one was not just opened. One that the node who asks (its id and epoch are
 * parameters) drains itself counts too: whoever asks has just ended a round, so what it still has was left by a fault.
 */
export const bucketIsUnowned = (schema: string, id: string, epoch: string, now: string): string => `
  case when b.status = 'lost' then not ${bucketPauses(now)}
       when b.status = 'draining' and b.drainer_id = ${id}::text and b.drainer_epoch = ${epoch}::bigint then true
       when b.status = 'draining' and b.drainer_id is not null
         then not exists (select from ${schema}.node n where n.id = b.drainer_id and n.epoch = b.drainer_epoch)
       else not exists (select from ${schema}.node n where n.id = b.node_id and n.epoch = b.node_epoch) end`;

/**
 * `$1` offset, node id, epoch, grace in ms, running, lag in ms: one statement that beats, takes the notices, and looks whether
 * somebody else has stopped beating, and when the next schedule is due. The rows that it reads are those of the nodes and their
 * buckets, which are few, and the first of the schedules.
 */
export const beat: MakeStatement = (schema) => ({
  name: 'ratchet-beat',
  text: `
with clock as materialized (select ${storeClock('$1')} as now),
beaten as (
  update ${schema}.node n set heartbeat_at = c.now, running = $5::int, lag_ms = $6::int from clock c
   where n.id = $2::text and n.epoch = $3::bigint
  returning n.id, n.cordoned_at
),
noticed as (
  delete from ${schema}.notice where node_id = $2::text and node_epoch = $3::bigint
  returning job_id, claim_seq, reason
)
select (exists (select from beaten))::text as alive,
       (select count(*) from ${schema}.node)::text as nodes,
       (exists (select from ${schema}.node n cross join clock c
                 where n.heartbeat_at < c.now - greatest($4::float8, n.grace_ms) * interval '1 millisecond' and n.id <> $2::text)
        or exists (select from ${schema}.bucket b where ${bucketIsUnowned(schema, '$2', '$3', '(select now from clock)')}))::text as lost,
       (select json_agg(json_build_object('jobId', n.job_id, 'claimSeq', n.claim_seq::text, 'reason', n.reason))
          from noticed n)::text as notices,
       case when exists (${promotableSchedules(schema)}) then '0'
            else ${nextDueInMs(schema, '(select now from clock)')}::text end as schedule_in_ms,
       (exists (select from beaten where cordoned_at is not null))::text as cordoned,
       (exists (select from ${schema}.node n where n.buffers and n.id <> $2::text))::text as buffers_elsewhere`,
});

export function beatParameters(request: BeatRequest, offsetMs: number): unknown[] {
  const { node, graceMs, running, lagMs } = request;
  return [offsetMs, node.id, node.epoch, graceMs, running, Math.round(lagMs)];
}

/** Every column is text, so that it is the same from a connection with any type parsers, and through a worker thread. */
export function decodeBeat(row: Row | undefined): BeatAnswer {
  const notices = row?.['notices'] as string | null | undefined;
  return {
    alive: row?.['alive'] === 'true',
    nodes: Number(row?.['nodes']),
    lost: row?.['lost'] === 'true',
    notices: notices ? (JSON.parse(notices) as Notice[]) : [],
    scheduleInMs: millisecondsOf(row?.['schedule_in_ms']),
    cordoned: row?.['cordoned'] === 'true',
    buffersElsewhere: row?.['buffers_elsewhere'] === 'true',
  };
}

/** Of a column of text. */
const millisecondsOf = (text: unknown): number | undefined =>
  typeof text === 'string' ? Number(text) : undefined;

/** `$1` offset. */
export const selectNodes: MakeStatement = (schema) => ({
  text: `
select json_build_object('id', n.id, 'epoch', n.epoch::text, 'host', n.host, 'pid', n.pid, 'version', n.version, 'lanes', n.lanes,
         'handlers', n.handlers, 'schedules', n.schedules, 'state', n.state, 'startedAt', n.started_at, 'heartbeatAt', n.heartbeat_at,
         'heartbeatAgeMs', greatest(0, round(extract(epoch from ${storeClock('$1')} - n.heartbeat_at) * 1000)),
         'running', n.running, 'lagMs', n.lag_ms, 'drainedAt', n.cordoned_at)::text as row
  from ${schema}.node n order by n.started_at, n.id`,
});

export function decodeNode(row: Row): NodeView {
  const { drainedAt, ...node } = JSON.parse(row['row'] as string) as Omit<
    NodeView,
    'startedAt' | 'heartbeatAt' | 'drainedAt'
  > & { startedAt: string; heartbeatAt: string; drainedAt: string | null };
  return {
    ...node,
    startedAt: new Date(node.startedAt),
    heartbeatAt: new Date(node.heartbeatAt),
    ...(drainedAt === null ? {} : { drainedAt: new Date(drainedAt) }),
  };
}
