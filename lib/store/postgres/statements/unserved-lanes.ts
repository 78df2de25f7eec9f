import { type UnservedLane } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** Lanes that are looked at, and lanes that are named: nobody reads more. */
const MOST_LANES = 10_000;
const MOST_UNSERVED = 20;
/** Due jobs that are counted of each stream. */
const MOST_COUNTED = 1_000;
const MOST_NAMES = 10;

/**
 * `$1` offset: lanes with due jobs that no running node has in its row. It hops from lane to lane in the two indexes of
 * pending jobs, so that its cost goes by the number of lanes, not of jobs; only the jobs of unserved lanes are read.
 */
export const unservedLanes: MakeStatement = (schema) => {
  // Not min(lane): on a table without statistics PostgreSQL 15 plans that as an aggregate over the whole index.
  const nextLane = (after: string): string => `least(
    (select j.lane from ${schema}.job j where j.status = 0 and j.crashes < 2 ${after} order by j.lane limit 1),
    (select j.lane from ${schema}.job j where j.status = 0 and j.crashes >= 2 ${after} order by j.lane limit 1))`;
  return {
    name: 'ratchet-unserved-lanes',
    text: `
with recursive clock as materialized (select ${storeClock('$1')} as now),
served as materialized (select distinct unnest(n.lanes) as lane from ${schema}.node n
  where n.state = 'running' and n.cordoned_at is null),
lanes as (
  select ${nextLane('')} as lane, 1 as hops
  union all
  select ${nextLane('and j.lane > l.lane')}, l.hops + 1 from lanes l where l.lane is not null and l.hops < ${String(MOST_LANES)}
),
unserved as materialized (
  select l.lane from lanes l where l.lane is not null and not exists (select from served s where s.lane = l.lane)
)
select u.lane, w.due, w.oldest_ms, w.names
  from unserved u
 cross join clock c
 cross join lateral (
   select count(*)::int as due, (extract(epoch from c.now - min(d.scheduled_at)) * 1000)::float8 as oldest_ms,
          (array_agg(distinct d.name))[1:${String(MOST_NAMES)}] as names
     from (
       select s.name, s.scheduled_at from unnest('{0,1,2,3,4}'::smallint[]) as p
        cross join lateral (
          select j.name, j.scheduled_at from ${schema}.job j
           where j.status = 0 and j.crashes < 2 and j.lane = u.lane and j.priority = p and j.scheduled_at <= c.now
           order by j.lane, j.priority, j.scheduled_at, j.id limit ${String(MOST_COUNTED)}
        ) s
       union all
       (select j.name, j.scheduled_at from ${schema}.job j
         where j.status = 0 and j.crashes >= 2 and j.lane = u.lane and j.scheduled_at <= c.now
         order by j.lane, j.scheduled_at, j.id limit ${String(MOST_COUNTED)})
     ) d
 ) w
 where w.due > 0
 limit ${String(MOST_UNSERVED)}`,
  };
};

export function decodeUnservedLanes(rows: readonly Row[]): UnservedLane[] {
  return rows.map((row) => ({
    lane: row['lane'] as string,
    due: row['due'] as number,
    oldestMs: row['oldest_ms'] as number,
    names: row['names'] as string[],
  }));
}
