import { type PriorityRank } from '../../../jobs/priority.js';
import { type ProbeAnswer, type ProbeRequest } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { runnable } from './handler-filter.js';

/**
 * The oldest pending row of each asked stream, up to a place, that the node could run; and, in a row of its own, how long the
 * database took. Measured there: what a slow network adds says nothing about dead index entries.
 */
export const probe: MakeStatement = (schema) => ({
  name: 'ratchet-probe',
  text: `
with oldest as materialized (
select t.p as priority, o.scheduled_at::text as place
  from unnest($1::smallint[], $2::timestamptz[]) as t (p, up_to)
 cross join lateral (
   select j.scheduled_at from ${schema}.job j
    where j.status = 0 and j.crashes < 2 and j.lane = $3::text and j.priority = t.p and j.scheduled_at <= t.up_to
      and ${runnable('j', '$4', '$5')}
    order by j.lane, j.priority, j.scheduled_at, j.id limit 1
 ) o
)
select o.priority, o.place, null::float8 as took_ms from oldest o
union all
select null, null, extract(epoch from clock_timestamp() - statement_timestamp())::float8 * 1000 from (select count(*) from oldest) c`,
});

export function probeParameters(request: ProbeRequest): unknown[] {
  return [
    request.streams.map(({ priority }) => priority),
    request.streams.map(({ upTo }) => upTo),
    request.lane,
    request.handlers.map(({ name }) => name),
    request.handlers.map(({ version }) => version),
  ];
}

export function decodeProbe(rows: readonly Row[]): ProbeAnswer {
  const oldest: Partial<Record<PriorityRank, string>> = {};
  let tookMs = 0;
  for (const row of rows) {
    if (row['priority'] === null) tookMs = row['took_ms'] as number;
    else oldest[row['priority'] as PriorityRank] = row['place'] as string;
  }
  return { oldest, tookMs };
}
