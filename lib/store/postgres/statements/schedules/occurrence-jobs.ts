import { RECURRENCE_KEYS } from '../../../../jobs/recurrence.js';
import { INLINE_PAYLOAD_BYTES } from '../../inline-payload.js';

/** As `Date.toISOString` writes it: what `recurrenceOf` reads. */
const isoText = (time: string): string =>
  `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/**
 * CTEs that make jobs of occurrences, by the template in the row of their schedule. That row is the one of the statement's snapshot:
 * whoever uses this has locked it, and made sure that nobody has changed it since.
 *
 * They read `clock (now)` and `source`, a query with `schedule_id`, `due_at`, `job_id`, `missed`, `delay_ms`, `payload` (instead of
 * the template's, if not null) and `previous` (a run before it in this very statement, if not null); and make
 * `jobs (id, lane, name, priority, scheduled_at, metadata)`.
 */
export function occurrenceJobs(schema: string, source: string): string {
  return `
templated as materialized (
  select o.job_id, s.job_name, s.job_version, s.lane, s.priority, s.max_retries, s.backoff, s.timeout_ms,
         nullif(s.tags, '{}'::text[]) as tags, coalesce(o.payload, s.payload) as payload,
         octet_length(coalesce(o.payload, s.payload)::text) > ${String(INLINE_PAYLOAD_BYTES)} as large,
         o.due_at + o.delay_ms * interval '1 millisecond' as scheduled_at,
         jsonb_strip_nulls(jsonb_build_object(
           '${RECURRENCE_KEYS.schedule}', s.id, '${RECURRENCE_KEYS.scheduledFor}', ${isoText('o.due_at')},
           '${RECURRENCE_KEYS.previous}', ${isoText('coalesce(o.previous, s.last_at)')},
           '${RECURRENCE_KEYS.missed}', o.missed)) as metadata
    from (${source}) o cross join lateral (select * from ${schema}.schedule where id = o.schedule_id limit 1) s
),
jobs as (
  insert into ${schema}.job (id, name, version, lane, priority, scheduled_at, created_at, payload, max_retries, backoff,
         timeout_ms, tags, metadata)
  select t.job_id, t.job_name, t.job_version, t.lane, t.priority, t.scheduled_at, c.now, case when t.large then null else t.payload end,
         t.max_retries, t.backoff, t.timeout_ms, t.tags, t.metadata
    from templated t cross join clock c
  returning id, lane, name, priority, scheduled_at, metadata
),
large_payloads as (
  insert into ${schema}.job_payload (job_id, payload) select t.job_id, t.payload from templated t where t.large
)`;
}
