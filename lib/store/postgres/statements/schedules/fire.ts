import { type FiredJob, type Firing, type FiringOutcome, MOST_WAITING } from '../../../schedule-store.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { storeClock } from '../clock.js';
import { hasLiveJob, isSwitchedOff, MAKES_JOBS } from './next-due.js';
import { dateOf, decodeFiredJob, SELECT_JOBS, selectOther } from './occurrence-answer.js';
import { occurrenceJobs } from './occurrence-jobs.js';

/**
 * `$1` offset, `$2` firings as JSON, by id, ascending. What a reader must know:
 *
 * - `seen` is a plain read of the statement's snapshot, also of the jobs that are live. `locked` takes those rows, unless somebody
 *   holds them, and only as they were seen: a row that was fired, triggered or changed after the snapshot has another `job_seq` or
 *   `revision` under the lock, and is left out, because the snapshot would not show the job that came of it.
 * - A job is made of an occurrence only if its row is new: whatever the caller believes, a time cannot become two jobs.
 * - Of a schedule whose priority is switched off in its lane no occurrence runs or waits: each is skipped, and the answer says why.
 * - The first run of a firing may find the schedule free; those after it find that one.
 * - Rows are looked up by subqueries with a limit, which no plan can turn round, or by `any (array[…])` (exchange.ts): otherwise a plan
 *   that was made on the empty table walks all schedules for each firing.
 */
export const fire: MakeStatement = (schema) => ({
  name: 'ratchet-schedules-fire',
  text: `
with clock as materialized (select ${storeClock('$1')} as now),
seen as materialized (
  select f.*, s.job_seq, s.off, ${hasLiveJob(schema, 'f.id')} as live,
         (select count(*) from (
            select from ${schema}.occurrence o where o.schedule_id = f.id and o.outcome = 'waiting' limit ${String(MOST_WAITING)}
          ) w) as waiting
    from json_to_recordset($2::json) as f (id text, revision bigint, next_at timestamptz, advance_to timestamptz, untold bigint,
         runs json, missed json)
   cross join lateral (
     select s.job_seq, ${isSwitchedOff(schema)} as off from ${schema}.schedule s
      where s.id = f.id and s.revision = f.revision and date_trunc('milliseconds', s.next_at) = f.next_at and ${MAKES_JOBS} limit 1
   ) s
),
locked as materialized (
  select n.* from seen n join ${schema}.schedule s on s.id = any (array[n.id])
   where s.revision = n.revision and s.job_seq = n.job_seq
     for update of s skip locked
),
made as (
  insert into ${schema}.occurrence (schedule_id, due_at, through_at, count, outcome, missed, delay_ms, job_id, decided_at)
  select x.id, x.at, x.through, x.count, x.outcome, x.missed, x.delay_ms, case when x.outcome <> 'skipped' then x.job_id end, c.now
    from clock c cross join (
      select l.id, r.at, r.at as through, 1 as count, r.missed, r.delay_ms, r.job_id,
             case when l.off then 'skipped'
                  when r.if_busy = 'run' or (r.place = 1 and not l.live and l.waiting = 0) then 'enqueued'
                  when r.if_busy = 'wait' and l.waiting + r.waits <= ${String(MOST_WAITING)} then 'waiting'
                  when r.if_busy = 'follow' and r.place > 1 and not l.live and l.waiting = 0 then 'waiting'
                  else 'skipped' end as outcome
        from locked l
       cross join lateral json_to_recordset(l.runs) as r (at timestamptz, job_id uuid, delay_ms bigint, missed bigint, if_busy text,
             place integer, waits integer)
      union all
      select l.id, m.at, m.through, m.count, 0, 0, null, 'missed'
        from locked l cross join lateral json_to_recordset(l.missed) as m (at timestamptz, through timestamptz, count bigint)
    ) x
  on conflict do nothing
  returning schedule_id, due_at, outcome, job_id, missed, delay_ms
),${occurrenceJobs(
    schema,
    `select m.schedule_id, m.due_at, m.job_id, m.missed, m.delay_ms, null::jsonb as payload,
            lag(m.due_at) over (partition by m.schedule_id order by m.due_at) as previous
       from made m where m.outcome = 'enqueued'`,
  )},
turned as materialized (
  select x.id, max(x.advance_to) as advance_to, max(x.newest) as newest, sum(x.untold) as untold, bool_or(x.told) as told
    from (
      select l.id, l.advance_to, null::timestamptz as newest, l.untold, false as told from locked l
      union all
      select m.schedule_id, null, case m.outcome when 'enqueued' then m.due_at end, 0, true
        from made m where m.outcome in ('enqueued', 'waiting')
    ) x group by x.id
),
advanced as (
  update ${schema}.schedule s
     set next_at = t.advance_to, last_at = greatest(s.last_at, t.newest), job_seq = s.job_seq + 1,
         untold = case when t.told then 0 else s.untold + t.untold end
    from turned t where s.id = any (array[t.id])
)
${SELECT_JOBS}
union all ${selectOther("case when l.off then 'off' else 'fired' end", 'l.id')} from locked l
union all ${selectOther('m.outcome', 'm.schedule_id', 'm.due_at')} from made m where m.outcome in ('skipped', 'waiting')`,
});

/** In the order of ids, as all statements lock schedules. */
export function fireParameters(firings: readonly Firing[], offsetMs: number): unknown[] {
  const inOrder = [...firings].sort((a, b) => (a.id < b.id ? -1 : 1));
  return [offsetMs, JSON.stringify(inOrder.map(firingRow))];
}

function firingRow({ id, revision, nextAt, advanceTo, runs, missed }: Firing): object {
  let waits = 0;
  return {
    id,
    revision,
    next_at: nextAt,
    advance_to: advanceTo,
    untold: missed.reduce((sum, { count }) => sum + count, 0),
    runs: runs.map(({ at, jobId, delayMs, ifBusy, missed: untold }, index) => ({
      at,
      job_id: jobId,
      delay_ms: Math.round(delayMs),
      missed: untold,
      if_busy: ifBusy,
      place: index + 1,
      waits: ifBusy === 'wait' ? (waits += 1) : waits,
    })),
    missed: missed.map(({ from, to, count }) => ({ at: from, through: to, count })),
  };
}

/** In the order of `firings`. */
export function decodeFired(firings: readonly Firing[], rows: readonly Row[]): FiringOutcome[] {
  const fired = new Map<string, { jobs: FiredJob[]; skipped: Date[]; waiting: Date[] }>();
  const off = new Set<string>();
  const of = (id: string): { jobs: FiredJob[]; skipped: Date[]; waiting: Date[] } => {
    const known = fired.get(id) ?? { jobs: [], skipped: [], waiting: [] };
    fired.set(id, known);
    return known;
  };
  for (const row of rows) {
    if (row['tag'] === 'job') {
      const job = decodeFiredJob(row);
      of(job.scheduleId).jobs.push(job);
    } else {
      const answer = of(row['id'] as string);
      if (row['tag'] === 'off') off.add(row['id'] as string);
      else if (row['tag'] !== 'fired') answer[row['tag'] as 'skipped' | 'waiting'].push(dateOf(row));
    }
  }
  return firings.map(({ id }) => {
    const answer = fired.get(id);
    if (!answer) return { id, outcome: 'superseded' };
    answer.jobs.sort((a, b) => a.at.getTime() - b.at.getTime());
    return off.has(id)
      ? { id, outcome: 'fired', ...answer, skipped: [], refused: answer.skipped }
      : { id, outcome: 'fired', ...answer };
  });
}
