import { type PriorityRank } from '../../../jobs/priority.js';
import {
  type FallbackNeed,
  type FallbackNeedRequest,
  type StarvingAnswer,
  type StarvingRequest,
} from '../../fallback.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';
import { runnable } from './handler-filter.js';

/** Lanes that are looked at, and streams that are told: nobody reads more. */
const MOST_LANES = 10_000;
const MOST_STREAMS = 100;
/** Rows of one stream that are read, in search of jobs that the node can run, and jobs that are counted. */
const MOST_READ = 10_000;
const MOST_COUNTED = 1_000;
const MOST_NAMES = 10;

/** What live nodes serve. A bucket without a priority serves all of them. */
const serving = (schema: string, where = ''): string => `
  select b.lane, b.priority from ${schema}.bucket b join ${schema}.node n on n.id = b.node_id and n.epoch = b.node_epoch
   where b.status = 'active' and b.kind = 'standard' and n.state = 'running' ${where}`;

/**
 * The first rows of a stream, `lane` and `priority` being expressions, that pass `due`: those of the index of jobs to claim, and
 * those of the index of jobs that may have killed nodes, which are few.
 */
const stream = (schema: string, lane: string, priority: string, due: string): string => `
  (select j.name, j.version, j.scheduled_at from ${schema}.job j
    where j.status = 0 and j.crashes < 2 and j.lane = ${lane} and j.priority = ${priority} ${due}
    order by j.lane, j.priority, j.scheduled_at, j.id limit ${String(MOST_READ)})
  union all
  (select k.name, k.version, k.scheduled_at from (
     select j.name, j.version, j.scheduled_at, j.priority from ${schema}.job j
      where j.status = 0 and j.crashes >= 2 and j.lane = ${lane} ${due}
      order by j.lane, j.scheduled_at, j.id limit ${String(MOST_READ)}) k
    where k.priority = ${priority})`;

/** Whether {@link stream} may have left rows out, so that what it has not found may be there. */
const cutShort = (schema: string, lane: string, priority: string): string => `(
  exists (select from ${schema}.job j where j.status = 0 and j.crashes < 2 and j.lane = ${lane} and j.priority = ${priority}
           order by j.lane, j.priority, j.scheduled_at, j.id offset ${String(MOST_READ - 1)} limit 1)
  or exists (select from ${schema}.job j where j.status = 0 and j.crashes >= 2 and j.lane = ${lane}
              order by j.lane, j.scheduled_at, j.id offset ${String(MOST_READ - 1)} limit 1))`;

/**
 * `$1` offset, names and versions of the handlers, `$4` ms, node id, node epoch, `$7` fallback buckets that the node knows. It hops
 * from lane to lane in the two indexes of pending jobs, as the look for unserved lanes does: only jobs of streams that nobody serves
 * are read. A paused lane starves by somebody's wish.
 */
export const starvingStreams: MakeStatement = (schema) => {
  // Not min(lane): on a table without statistics PostgreSQL 15 plans that as an aggregate over the whole index.
  const nextLane = (after: string): string => `least(
    (select j.lane from ${schema}.job j where j.status = 0 and j.crashes < 2 ${after} order by j.lane limit 1),
    (select j.lane from ${schema}.job j where j.status = 0 and j.crashes >= 2 ${after} order by j.lane limit 1))`;
  return {
    name: 'ratchet-starving-streams',
    text: `
with recursive clock as materialized (select ${storeClock('$1')} as now),
serving as materialized (${serving(schema)}),
lanes as (
  select ${nextLane('')} as lane, 1 as hops
  union all
  select ${nextLane('and j.lane > l.lane')}, l.hops + 1 from lanes l where l.lane is not null and l.hops < ${String(MOST_LANES)}
),
unserved as materialized (
  select l.lane, p.priority from lanes l cross join unnest('{0,1,2,3,4}'::smallint[]) as p (priority)
   where l.lane is not null
     and not exists (select from serving s where s.lane = l.lane and (s.priority is null or s.priority = p.priority))
     and not exists (select from ${schema}.lane w where w.name = l.lane and w.paused_at is not null)
     and not exists (select from ${schema}.bucket f where f.lane = l.lane and f.kind = 'fallback' and f.status = 'active'
                        and not (f.node_id = $5::text and f.node_epoch = $6::bigint and f.id <> all ($7::uuid[])))
)
select u.lane, u.priority, w.due, w.oldest_ms, w.names, (select array_agg(distinct s.lane) from serving s) as served
  from unserved u
 cross join clock c
 cross join lateral (
   select count(*)::int as due, (extract(epoch from c.now - min(d.scheduled_at)) * 1000)::float8 as oldest_ms,
          (array_agg(distinct d.name))[1:${String(MOST_NAMES)}] as names
     from (
       select r.name, r.scheduled_at from (
         ${stream(schema, 'u.lane', 'u.priority', "and j.scheduled_at <= c.now - $4::float8 * interval '1 millisecond'")}
       ) r
        where ${runnable('r', '$2', '$3')}
        limit ${String(MOST_COUNTED)}
     ) d
 ) w
 where w.due > 0
 order by u.lane, u.priority desc
 limit ${String(MOST_STREAMS)}`,
  };
};

export function starvingParameters(request: StarvingRequest, offsetMs: number): unknown[] {
  const { node, afterMs, known } = request;
  return [offsetMs, ...handlersOf(request), afterMs, node.id, node.epoch, [...known]];
}

export function decodeStarving(rows: readonly Row[]): StarvingAnswer {
  return {
    streams: rows.map((row) => ({
      lane: row['lane'] as string,
      priority: row['priority'] as PriorityRank,
      due: row['due'] as number,
      oldestMs: row['oldest_ms'] as number,
      names: row['names'] as string[],
    })),
    served: (rows[0]?.['served'] ?? []) as string[],
  };
}

/**
 * `$1` offset, then id, node id, node epoch, lane, known buckets. No row: another node has one, or this one may have no bucket. The share lock
 * is that of any other bucket. One of the node's own that it does not know was made by a statement whose reply was lost.
 */
export const openFallback: MakeStatement = (schema) => ({
  text: `
with owner as materialized (
  select id, epoch from ${schema}.node
   where id = $3::text and epoch = $4::bigint and state = 'running' and cordoned_at is null for share
),
opened as (
  insert into ${schema}.bucket (id, node_id, node_epoch, lane, kind, status, created_at, status_at)
  select $2::uuid, o.id, o.epoch, $5::text, 'fallback', 'active', ${storeClock('$1')}, ${storeClock('$1')} from owner o
  on conflict (lane) where kind = 'fallback' and status = 'active' do nothing
  returning id, epoch
)
select id::text as id, epoch from opened
union all
select b.id::text, b.epoch from owner o join ${schema}.bucket b on b.node_id = o.id and b.node_epoch = o.epoch
 where b.lane = $5::text and b.kind = 'fallback' and b.status = 'active' and b.id <> all ($6::uuid[])`,
});

/**
 * `$1` lane, names and versions of the handlers. Also jobs that are not due yet count: their bucket would be missed again. So does a stream
 * whose first rows are all for others, and that is longer: nobody knows.
 */
export const fallbackNeeded: MakeStatement = (schema) => ({
  text: `
with serving as materialized (${serving(schema, 'and b.lane = $1::text')}),
pending as materialized (
  select p.priority, exists (select from serving s where s.priority is null or s.priority = p.priority) as served
    from unnest('{0,1,2,3,4}'::smallint[]) as p (priority)
   where exists (select from (${stream(schema, '$1::text', 'p.priority', '')}) r where ${runnable('r', '$2', '$3')})
      or ${cutShort(schema, '$1::text', 'p.priority')}
)
select case when exists (select from pending where not served) then 'starving'
            when exists (select from pending) then 'served' else 'idle' end as need`,
});

export function neededParameters(request: FallbackNeedRequest): unknown[] {
  return [request.bucket.lane, ...handlersOf(request)];
}

export function decodeNeed(row: Row | undefined): FallbackNeed {
  return row?.['need'] as FallbackNeed;
}

function handlersOf({ handlers }: Pick<StarvingRequest, 'handlers'>): [string[], number[]] {
  return [handlers.map(({ name }) => name), handlers.map(({ version }) => version)];
}
