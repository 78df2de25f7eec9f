import { RECURRENCE_KEYS } from '../../../jobs/recurrence.js';
import { INLINE_PAYLOAD_BYTES } from '../inline-payload.js';

/** Without what makes it an occurrence: the failure handler's job is none, and must not keep the next one from running. */
const METADATA = `case when d.metadata ->> '${RECURRENCE_KEYS.schedule}' is null then d.metadata
              else nullif(d.metadata - array[${Object.values(RECURRENCE_KEYS)
                .map((key) => `'${key}'`)
                .join(', ')}], '{}'::jsonb) end`;

/**
 * CTEs that insert the job `<name>#failed` for each row that the statement moves to the dead letter, when some node has an
 * `@OnJobFailure` handler for it. In the same statement, so that a crash between the two loses nothing, and whoever moves the row
 * needs no handler. It keeps the metadata (a tenant, a trace) and records the failed job as its parent.
 *
 * `source` is a CTE with the columns of `dead_letter`; `now` an expression. Makes the CTE
 * `failure_jobs` with the columns `id`, `lane`, `name` and `priority`.
 */
export function failureJobs(schema: string, source: string, now: string): string {
  return `
failing as materialized (
  select ${schema}.uuid_at(${now}) as id, f.lane as handler_lane, d.id as failed_id, d.name, d.priority, ${METADATA} as metadata,
         jsonb_build_object(
           'payload', coalesce(d.payload, (select p.payload from ${schema}.job_payload p where p.job_id = d.id)),
           'error', d.error,
           'job', jsonb_build_object(
             'id', d.id, 'name', d.name, 'version', d.version, 'lane', d.lane, 'priority', d.priority, 'node', d.node,
             'createdAt', d.created_at, 'failedAt', ${now}, 'executions', d.executions, 'failures', d.failures,
             'crashes', d.crashes, 'businessKey', d.business_key, 'tags', d.tags, 'metadata', d.metadata)) as payload
    from ${source} d join ${schema}.failure_handler f on f.job_name = d.name
),
failure_jobs as (
  insert into ${schema}.job (id, name, version, lane, priority, scheduled_at, created_at, payload, metadata, parent_id)
  select i.id, i.name || '#failed', 1, i.handler_lane, i.priority, ${now}, ${now},
         case when octet_length(i.payload::text) <= ${INLINE_PAYLOAD_BYTES} then i.payload end, i.metadata, i.failed_id
    from failing i
  returning id, lane, name, priority
),
failure_payloads as (
  insert into ${schema}.job_payload (job_id, payload)
  select i.id, i.payload from failing i where octet_length(i.payload::text) > ${INLINE_PAYLOAD_BYTES}
)`;
}
