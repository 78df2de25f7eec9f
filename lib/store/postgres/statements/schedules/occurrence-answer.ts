import { type PriorityRank } from '../../../../jobs/priority.js';
import { recurrenceOf } from '../../../../jobs/recurrence.js';
import { type FiredJob } from '../../../schedule-store.js';
import { type Row } from '../../../sql-client.js';

/** The jobs that occurrence-jobs.ts has made. All columns are text. */
export const SELECT_JOBS = `
select 'job' as tag, j.id::text as id, j.metadata::text as occurrence, j.lane, j.name, j.priority::text as priority,
       greatest(0, ceil(extract(epoch from j.scheduled_at - c.now) * 1000))::text as due_in_ms
  from jobs j cross join clock c`;

/** Other rows of the same answer: a tag, the schedule's id, and a time. */
export const selectOther = (tag: string, id: string, at = 'null::timestamptz'): string =>
  `select ${tag}, ${id}, (extract(epoch from ${at}) * 1000)::bigint::text, null, null, null, null`;

export const dateOf = (row: Row): Date => new Date(Number(row['occurrence']));

export function decodeFiredJob(row: Row): FiredJob {
  const occurrence = recurrenceOf(JSON.parse(row['occurrence'] as string));
  return {
    scheduleId: occurrence?.scheduleId ?? '',
    at: occurrence?.scheduledFor ?? new Date(Number.NaN),
    missed: occurrence?.missed ?? 0,
    jobId: row['id'] as string,
    lane: row['lane'] as string,
    priority: Number(row['priority']) as PriorityRank,
    name: row['name'] as string,
    dueInMs: Number(row['due_in_ms']),
  };
}
