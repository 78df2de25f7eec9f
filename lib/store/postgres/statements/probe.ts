import { type PriorityRank } from '../../../jobs/priority.js';
import { type ProbeRequest } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { runnable } from './handler-filter.js';

/** The oldest pending row of each asked stream, up to a place, that the node could run. */
export const probe: MakeStatement = (schema) => ({
  name: 'ratchet-probe',
  text: `
select t.p as priority, o.scheduled_at::text as place
  from unnest($1::smallint[], $2::timestamptz[]) as t (p, up_to)
 cross join lateral (
   select j.scheduled_at from ${schema}.job j
    where j.status = 0 and j.crashes < 2 and j.lane = $3::text and j.priority = t.p and j.scheduled_at <= t.up_to
      and ${runnable('j', '$4', '$5')}
    order by j.lane, j.priority, j.scheduled_at, j.id limit 1
 ) o`,
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

export function decodeProbe(rows: readonly Row[]): Partial<Record<PriorityRank, string>> {
  const oldest: Partial<Record<PriorityRank, string>> = {};
  for (const row of rows) oldest[row['priority'] as PriorityRank] = row['place'] as string;
  return oldest;
}
