import { type LaneView } from '../../bucket-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { storeClock } from './clock.js';

/** Lanes of live jobs that are looked at: nobody reads more. */
const MOST_LANES = 10_000;

/** `$1` offset, `$2` lane. A row comes back when it was not paused. */
export const pauseLane: MakeStatement = (schema) => ({
  text: `
insert into ${schema}.lane as l (name, paused_at) values ($2::text, ${storeClock('$1')})
on conflict (name) do update set paused_at = excluded.paused_at where l.paused_at is null
returning l.name`,
});

/** `$1` lane. A row comes back when it was paused. */
export const resumeLane: MakeStatement = (schema) => ({
  text: `update ${schema}.lane set paused_at = null where name = $1::text and paused_at is not null returning name`,
});

/** See the function, in the migration. */
export const agreeOnDisabled: MakeStatement = (schema) => ({
  text: `select ${schema}.agree_on_disabled()::text`,
});

/** Ids of the nodes that have switched off a priority in a lane, both expressions, as JSON. */
export const nodesThatDisable = (schema: string, lane: string, priority: string): string => `
  (select coalesce(json_agg(who.id order by who.id), '[]') from ${schema}.node who
    where who.state = 'running' and ${lane} = any (who.lanes) and coalesce(who.disabled -> ${lane}, '[]') @> to_jsonb(${priority}))`;

/** `$1` lane, `$2` priority. */
export const selectNodesThatDisable: MakeStatement = (schema) => ({
  text: `select (${nodesThatDisable(schema, '$1::text', '$2::int')})::text as nodes`,
});

/**
 * All lanes, each as JSON text. Those of live jobs are found by hopping in the indexes of pending and paused ones, so that the cost
 * goes by the lanes, not by the jobs; what runs is in the lane of its bucket.
 */
export const selectLanes: MakeStatement = (schema) => {
  const next = (after: string): string => {
    const first = (jobs: string): string =>
      `(select j.lane from ${schema}.job j where ${jobs} ${after} order by j.lane limit 1)`;
    return `least(${['j.status = 0 and j.crashes < 2', 'j.status = 0 and j.crashes >= 2', 'j.status = 2'].map(first).join(', ')})`;
  };
  return {
    text: `
with recursive waiting as (
  select ${next('')} as lane, 1 as hops
  union all
  select ${next('and j.lane > w.lane')}, w.hops + 1 from waiting w where w.lane is not null and w.hops < ${String(MOST_LANES)}
),
names as (
  select lane as name from waiting where lane is not null
  union select unnest(lanes) from ${schema}.node
  union select lane from ${schema}.bucket
  union select name from ${schema}.lane where paused_at is not null or disabled <> '{}'
)
select json_build_object('name', n.name, 'pausedAt', l.paused_at, 'disabled', coalesce(l.disabled, '{}'),
         'nodes', (select coalesce(json_agg(d.id order by d.id), '[]') from ${schema}.node d where n.name = any (d.lanes)),
         'buckets', (select count(*) from ${schema}.bucket b where b.lane = n.name))::text as row
  from names n left join ${schema}.lane l on l.name = n.name order by n.name`,
  };
};

export function decodeLane(row: Row): LaneView {
  const { pausedAt, ...lane } = JSON.parse(row['row'] as string) as Omit<LaneView, 'pausedAt'> & {
    readonly pausedAt: string | null;
  };
  return pausedAt === null ? lane : { ...lane, pausedAt: new Date(pausedAt) };
}
