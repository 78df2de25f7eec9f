import { type OccurrenceRow, type OccurrencesRequest } from '../../../schedule-store.js';
import { type Row } from '../../../sql-client.js';
import { type MakeStatement } from '../../postgres-session.js';
import { epochMs } from './schedule-json.js';

/**
 * `$1` schedule, `$2` limit, `$3` planned before, or null, `$4` planned at or after, or null: newest first. A job ends after it was
 * made, which spares the days before that.
 */
export const selectOccurrences: MakeStatement = (schema) => ({
  text: `
select json_build_object('scheduledFor', ${epochMs('o.due_at')}, 'through', ${epochMs('o.through_at')}, 'count', o.count,
         'outcome', o.outcome, 'triggered', o.triggered, 'decidedAt', ${epochMs('o.decided_at')}, 'jobId', o.job_id,
         'jobStatus', (select v.status from ${schema}.jobs v
                        where v.id = o.job_id and (v.ended_at is null or v.ended_at >= o.decided_at - interval '1 day') limit 1))::text as row
  from (
    select due_at, through_at, count, outcome, triggered, decided_at, case outcome when 'enqueued' then job_id end as job_id
      from ${schema}.occurrence
     where schedule_id = $1::text and due_at < coalesce($3::timestamptz, 'infinity') and due_at >= coalesce($4::timestamptz, '-infinity')
     order by due_at desc limit $2::int
  ) o order by o.due_at desc`,
});

export function occurrencesParameters({ scheduleId, limit, before, since }: OccurrencesRequest): unknown[] {
  return [scheduleId, limit, before?.toISOString() ?? null, since?.toISOString() ?? null];
}

type Stored = Omit<OccurrenceRow, 'scheduledFor' | 'through' | 'decidedAt' | 'jobId' | 'jobStatus'> & {
  readonly scheduledFor: number;
  readonly through: number;
  readonly decidedAt: number;
  readonly jobId: string | null;
  readonly jobStatus: string | null;
};

export function decodeOccurrence(row: Row): OccurrenceRow {
  const stored = JSON.parse(row['row'] as string) as Stored;
  return {
    ...stored,
    scheduledFor: new Date(stored.scheduledFor),
    through: new Date(stored.through),
    decidedAt: new Date(stored.decidedAt),
    jobId: stored.jobId ?? undefined,
    jobStatus: stored.jobStatus ?? undefined,
  };
}
