import { type Migration } from './migration.js';

/** Pausing, failure handlers, and ids that the database makes itself. */
export const jobControl: Migration = {
  version: 2,
  name: 'job-control',
  oldestNode: 1,
  sql: `
-- Asked for while it ran: the job is paused when that execution gives it back.
alter table $schema$.job add column pause_requested boolean not null default false;

-- Jobs that have an @OnJobFailure handler somewhere: whoever moves one to the dead letter inserts the job "<name>#failed".
create table $schema$.failure_handler (
  job_name text primary key,
  lane text not null,
  seen_at timestamptz not null
);

-- A UUIDv7 of a time, for jobs that a statement makes.
create function $schema$.uuid_at(at timestamptz) returns uuid language sql volatile parallel safe
set search_path = pg_catalog, pg_temp as $ratchet$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
                 placing substring(int8send((extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
$ratchet$;

create or replace view $schema$.jobs as
  select j.id, j.name, j.version, (array['pending', 'running', 'paused'])[j.status + 1] as status, j.lane, j.priority,
         coalesce(j.payload, p.payload) as payload, null::jsonb as result, j.last_error as error, j.progress,
         j.scheduled_at, j.created_at, j.begun_at, null::timestamptz as ended_at, b.node_id as node,
         j.executions, j.failures, j.crashes, j.claim_seq, j.max_retries, j.business_key, j.tags, j.metadata, j.parent_id,
         j.pause_requested
    from $schema$.job j
    left join $schema$.job_payload p on j.payload is null and p.job_id = j.id
    left join $schema$.bucket b on b.id = j.bucket
  union all
  select h.id, h.name, h.version, h.outcome, h.lane, h.priority, coalesce(h.payload, p.payload), h.result, h.error, h.progress,
         h.scheduled_at, h.created_at, h.begun_at, h.ended_at, h.node,
         h.executions, h.failures, h.crashes, h.claim_seq, h.max_retries, h.business_key, h.tags, h.metadata, h.parent_id, false
    from $schema$.job_history h
    left join $schema$.job_payload p on h.payload is null and p.job_id = h.id
  union all
  select d.id, d.name, d.version, 'failed', d.lane, d.priority, coalesce(d.payload, p.payload), null::jsonb, d.error, d.progress,
         d.scheduled_at, d.created_at, d.begun_at, d.ended_at, d.node,
         d.executions, d.failures, d.crashes, d.claim_seq, d.max_retries, d.business_key, d.tags, d.metadata, d.parent_id, false
    from $schema$.dead_letter d
    left join $schema$.job_payload p on d.payload is null and p.job_id = d.id;
`,
};
