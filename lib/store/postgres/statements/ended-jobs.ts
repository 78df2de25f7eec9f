import { type TerminalJobStatus } from '../../../jobs/job-status.js';
import { type EndedAnswer, type EndedJob } from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { type MakeStatement } from '../postgres-session.js';
import { storedWeight } from './stored-weight.js';

/** What one answer carries of results and error texts, about, as stored; one job's always fits. */
const ROOM_BYTES = 2_000_000;

/**
 * `$1` ids, `$2` and `$3` the times between which they may have ended. One snapshot for all: a job that is redriven, or ends,
 * meanwhile is either live or ended.
 *
 * The live table is asked id by id: a join would be read as a scan of all live jobs when many ids are asked for, on the
 * application's connections, whose planner nobody has told otherwise. For who is live that is all. Rows of the others carry
 * their results as pointers to where large values lie; only those that have room in the answer are fetched.
 */
export const selectEnded: MakeStatement = (schema) => ({
  text: `
with gone as materialized (
  select a.id, a.place from unnest($1::uuid[]) with ordinality as a (id, place)
   where (select true from ${schema}.job j where j.id = a.id) is null
),
found as materialized (
  select g.id, g.place, e.*, e.result is not null as kept from gone g left join lateral (
    select h.name, h.outcome as status, h.result, h.error, h.executions, h.failures, h.crashes
      from ${schema}.job_history h
     where h.id = g.id and h.ended_at >= $2::timestamptz and h.ended_at < $3::timestamptz
    union all
    select d.name, 'failed', null, d.error, d.executions, d.failures, d.crashes
      from ${schema}.dead_letter d where d.id = g.id
     limit 1
  ) e on true
),
weighed as materialized (
  select f.*, sum(${storedWeight('result')} + ${storedWeight('error')}) over (order by place rows unbounded preceding) as bytes,
         count(name) over (order by place rows unbounded preceding) as number
    from found f
)
select w.id::text as id,
       case when w.name is null then 'absent' when w.bytes > ${ROOM_BYTES} and w.number > 1 then 'postponed' end as lack,
       case when w.name is not null and (w.bytes <= ${ROOM_BYTES} or w.number = 1) then to_json(w)::text end as row
  from weighed w`,
});

export function decodeEnded(rows: readonly Row[]): EndedAnswer {
  const ended: EndedJob[] = [];
  const lacking = { absent: [] as string[], postponed: [] as string[] };
  for (const row of rows) {
    const lack = row['lack'] as keyof typeof lacking | null;
    if (lack) lacking[lack].push(row['id'] as string);
    else ended.push(decodeJob(JSON.parse(row['row'] as string) as Record<string, unknown>));
  }
  return { ended, ...lacking };
}

function decodeJob(v: Record<string, unknown>): EndedJob {
  const status = v['status'] as TerminalJobStatus;
  return {
    id: v['id'] as string,
    name: v['name'] as string,
    status,
    // A handler may have returned null, which is not nothing.
    result: v['kept'] === true ? v['result'] : undefined,
    error: (v['error'] as string | null) ?? undefined,
    executions: v['executions'] as number,
    failures: v['failures'] as number,
    crashes: v['crashes'] as number,
  };
}
