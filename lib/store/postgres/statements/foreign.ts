import { JOB_PRIORITIES, type PriorityRank } from '../../../jobs/priority.js';
import { type ForeignRequest, type ForeignStream } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { READ_AHEAD } from './exchange.js';
import { runnable } from './handler-filter.js';

const RANKS = JOB_PRIORITIES.map((_, rank) => rank as PriorityRank);
const MOST_NAMES = 10;

/** `$1` offset: streams whose due head holds jobs that the node has no handler for, as far as one claim reads. */
export const foreign: MakeStatement = (schema) => ({
  name: 'ratchet-foreign',
  text: `
select t.p as priority, r.read, r.resume_at::text as resume_at, r.names
  from unnest($2::smallint[], $3::timestamptz[]) as t (p, floor)
 cross join lateral (
   select count(*)::int as read,
          coalesce(min(w.scheduled_at) filter (where w.ours), max(w.scheduled_at)) as resume_at,
          (array_agg(distinct w.name) filter (where not w.ours))[1:${String(MOST_NAMES)}] as names
     from (
       select j.name, j.scheduled_at, (${runnable('j', '$5', '$6')}) is true as ours from ${schema}.job j
        where j.status = 0 and j.lane = $4::text and j.priority = t.p
          and j.scheduled_at >= coalesce(t.floor, '-infinity')
          and j.scheduled_at <= now() + $1::float8 * interval '1 millisecond'
        order by j.lane, j.priority, j.scheduled_at, j.id limit ${String(READ_AHEAD)}
     ) w
 ) r
 where r.names is not null`,
});

export function foreignParameters(request: ForeignRequest, offsetMs: number): unknown[] {
  return [
    offsetMs,
    RANKS,
    RANKS.map((rank) => request.floors[rank] ?? null),
    request.lane,
    request.handlers.map(({ name }) => name),
    request.handlers.map(({ version }) => version),
  ];
}

export function decodeForeign(rows: readonly Row[]): ForeignStream[] {
  return rows.map((row) => ({
    priority: row['priority'] as PriorityRank,
    read: row['read'] as number,
    resumeAt: row['resume_at'] as string,
    names: row['names'] as string[],
  }));
}
