import { type Migration } from './migration.js';

/**
 * Recurring schedules. `next_at` is there only while a schedule may fire, so that the index of due ones holds nothing else.
 * Firing is no change: `revision` is of what people and deploys do.
 */
export const recurringSchedules: Migration = {
  version: 5,
  name: 'recurring-schedules',
  oldestNode: 3,
  sql: `
create sequence $schema$.schedule_revision;

create table $schema$.schedule (
  id text primary key,
  revision bigint not null,
  name text not null,
  expression text not null,
  time_zone text not null,
  origin text not null check (origin in ('annotation', 'api')),
  owner text,
  job_name text not null,
  job_version integer not null,
  lane text not null,
  priority smallint not null check (priority between 0 and 4),
  payload jsonb,
  max_retries integer,
  backoff jsonb,
  timeout_ms bigint,
  tags text[] not null,
  misfire text not null check (misfire in ('skip', 'once', 'catchUp')),
  catch_up integer,
  overlap text not null check (overlap in ('skip', 'queue', 'allow')),
  jitter_ms bigint not null,
  scope text not null check (scope in ('cluster', 'node')),
  business_key text,
  enabled boolean not null,
  paused boolean not null default false,
  fault text,
  anchor_at timestamptz not null,
  next_at timestamptz,
  last_at timestamptz,
  -- Rises with each job and each waiting occurrence that is made of it: who looked at its jobs before that has to look again.
  job_seq bigint not null default 0,
  -- Missed occurrences that no run has been told of.
  untold bigint not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  orphaned_at timestamptz,
  removed_at timestamptz,
  constraint schedule_finite check (isfinite(anchor_at) and isfinite(next_at))
) with (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0
);
create index schedule_due on $schema$.schedule (next_at, id) where next_at is not null;
create unique index schedule_business_key on $schema$.schedule (business_key) where business_key is not null;
-- What a sweep looks at: those that an annotation keeps, and those whose row is left.
create index schedule_annotated on $schema$.schedule (id) where origin = 'annotation' and removed_at is null;
create index schedule_removed on $schema$.schedule (removed_at) where removed_at is not null;

create table $schema$.occurrence (
  schedule_id text not null,
  due_at timestamptz not null,
  -- Of a range of missed ones: the last, and how many.
  through_at timestamptz not null,
  count bigint not null default 1,
  outcome text not null check (outcome in ('enqueued', 'waiting', 'skipped', 'missed')),
  triggered boolean not null default false,
  missed bigint not null default 0,
  delay_ms bigint not null default 0,
  -- Of a waiting one: the job that it will be.
  job_id uuid,
  -- Of a triggered one that waits, when it has one of its own.
  payload jsonb,
  decided_at timestamptz not null,
  primary key (schedule_id, due_at)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index occurrence_decided on $schema$.occurrence (decided_at);
create index occurrence_waiting on $schema$.occurrence (schedule_id, due_at) where outcome = 'waiting';

-- The live jobs of a schedule. Other jobs pay nothing for it.
create index job_recurring on $schema$.job ((metadata ->> 'ratchet:schedule')) where metadata ->> 'ratchet:schedule' is not null;

-- Which annotated schedules a live node has.
alter table $schema$.node add column schedules text[] not null default '{}';
-- By which the node itself sends its heartbeats: nobody who has a shorter one judges it sooner.
alter table $schema$.node add column grace_ms float8 not null default 0;
`,
};
