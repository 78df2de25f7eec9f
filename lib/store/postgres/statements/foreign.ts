import { JOB_PRIORITIES, type PriorityRank } from '../../../jobs/priority.js';
import { type ForeignRequest, type ForeignStream } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { READ_AHEAD } from './exchange/claim-part.js';
import { runnable } from './handler-filter.js';

const RANKS = JOB_PRIORITIES.map((_, rank) => rank as PriorityRank);
const MOST_NAMES = 10;
/** The longest walk for a job of ours, a fraction of a second on the service connection. */
const LONGEST_WALK = 500_000;

/**
 * `$1` offset: streams at whose head stand due jobs that the node has no handler for, and the first row behind them that it
 * can run. Only a stream that shows such jobs within the reach of a claim is walked any further.
 */
export const foreign: MakeStatement = (schema) => {
  const now = `(now() + $1::float8 * interval '1 millisecond')`;
  const due = `j.status = 0 and j.crashes < 2 and j.lane = $4::text and j.priority = t.p
          and j.scheduled_at >= coalesce(t.floor, '-infinity') and j.scheduled_at <= ${now}`;
  const inOrder = 'order by j.lane, j.priority, j.scheduled_at, j.id';
  const ours = `(${runnable('j', '$5', '$6')}) is true`;
  return {
    name: 'ratchet-foreign',
    text: `
select t.p as priority, w.seen, w.names, own.id is not null as own, coalesce(same.hidden, 0)::int as hidden,
       coalesce(own.scheduled_at,
         (select j.scheduled_at from ${schema}.job j where ${due} ${inOrder} offset ${String(LONGEST_WALK)} limit 1),
         (select max(j.scheduled_at) from ${schema}.job j where ${due}))::text as resume_at
  from unnest($2::smallint[], $3::timestamptz[]) as t (p, floor)
 cross join lateral (
   select count(*)::int as seen, (array_agg(distinct head.name))[1:${String(MOST_NAMES)}] as names
     from (select j.name, ${ours} as ours from ${schema}.job j where ${due} ${inOrder} limit ${String(READ_AHEAD)}) head
    where not head.ours
 ) w
  left join lateral (
   select walked.id, walked.scheduled_at
     from (select j.id, j.scheduled_at, ${ours} as ours from ${schema}.job j where ${due} ${inOrder} limit ${String(LONGEST_WALK)}) walked
    where walked.ours limit 1
 ) own on true
  left join lateral (
   select count(*) as hidden from ${schema}.job j
    where ${due} and j.scheduled_at = own.scheduled_at and j.id < own.id
 ) same on own.id is not null
 where w.seen > 0`,
  };
};

export function foreignParameters(request: ForeignRequest, offsetMs: number): unknown[] {
  const ranks = request.priority === undefined ? RANKS : [request.priority];
  return [
    offsetMs,
    ranks,
    ranks.map((rank) => request.floors[rank] ?? null),
    request.lane,
    request.handlers.map(({ name }) => name),
    request.handlers.map(({ version }) => version),
  ];
}

export function decodeForeign(rows: readonly Row[]): ForeignStream[] {
  return rows.map((row) => ({
    priority: row['priority'] as PriorityRank,
    foreign: row['seen'] as number,
    names: row['names'] as string[],
    own: row['own'] as boolean,
    resumeAt: row['resume_at'] as string,
    hidden: row['hidden'] as number,
  }));
}
