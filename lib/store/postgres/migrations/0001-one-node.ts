import { type Migration } from './migration.js';

/**
 * The first schema. `$schema$` stands for the quoted schema name. The live table holds live jobs only; a terminal outcome
 * moves the row to `job_history` or `dead_letter` in the statement that records it.
 */
export const oneNode: Migration = {
  version: 1,
  name: 'one-node',
  oldestNode: 1,
  sql: `
create sequence $schema$.node_epoch;

create table $schema$.node (
  id text primary key,
  epoch bigint not null unique,
  host text not null,
  pid integer not null,
  version text not null,
  lanes text[] not null,
  handlers text[] not null,
  state text not null check (state in ('running', 'draining')),
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now()
);

-- Nothing updates a bucket row on each turn: exchanges share-lock it, who takes a bucket away updates it and so waits for the turn in flight.
create table $schema$.bucket (
  id uuid primary key,
  node_id text not null,
  node_epoch bigint not null,
  lane text not null,
  priority smallint check (priority between 0 and 4),
  kind text not null default 'standard' check (kind in ('standard', 'fallback')),
  status text not null check (status in ('active', 'completing', 'ready_to_drain', 'lost', 'draining', 'ready_to_delete')),
  epoch integer not null default 1,
  created_at timestamptz not null default now(),
  status_at timestamptz not null default now()
);
create index bucket_node on $schema$.bucket (node_id, node_epoch);

create table $schema$.job (
  id uuid primary key,
  name text not null,
  version integer not null,
  lane text not null,
  priority smallint not null check (priority between 0 and 4),
  status smallint not null default 0 check (status in (0, 1, 2)),
  scheduled_at timestamptz not null,
  created_at timestamptz not null,
  payload jsonb,
  claim_seq bigint not null default 0,
  bucket uuid,
  begun_at timestamptz,
  executions integer not null default 0,
  failures integer not null default 0,
  crashes integer not null default 0,
  max_retries integer,
  backoff jsonb,
  timeout_ms bigint,
  business_key text,
  tags text[],
  metadata jsonb,
  parent_id uuid,
  progress jsonb,
  last_error text,
  constraint job_running_has_bucket check ((status = 1) = (bucket is not null))
) with (
  fillfactor = 100,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);
-- The claim index: five streams a lane. Future jobs lie behind the range that a claim reads.
create index job_claim on $schema$.job (lane, priority, scheduled_at, id) where status = 0 and crashes < 2;
-- Jobs that were running in two crashes or more: claimed apart, one at a time, so that a poison pill takes no innocents along.
create index job_suspect on $schema$.job (lane, scheduled_at, id) where status = 0 and crashes >= 2;
-- A bucket's rows. Partial, so that a settle by (id, claim_seq) can never be planned through it.
create index job_bucket on $schema$.job (bucket) where status = 1;
create unique index job_business_key on $schema$.job (business_key) where business_key is not null;

-- Payloads above about 1 kB are written here once and never move.
create table $schema$.job_payload (
  job_id uuid primary key,
  payload jsonb not null
);

create table $schema$.job_history (
  id uuid not null,
  name text not null,
  version integer not null,
  lane text not null,
  priority smallint not null,
  outcome text not null,
  scheduled_at timestamptz not null,
  created_at timestamptz not null,
  payload jsonb,
  claim_seq bigint not null,
  node text,
  begun_at timestamptz,
  ended_at timestamptz not null,
  executions integer not null,
  failures integer not null,
  crashes integer not null,
  max_retries integer,
  business_key text,
  tags text[],
  metadata jsonb,
  parent_id uuid,
  progress jsonb,
  result jsonb,
  error text
) partition by range (ended_at);
create index job_history_id on $schema$.job_history (id);

create table $schema$.dead_letter (
  id uuid primary key,
  name text not null,
  version integer not null,
  lane text not null,
  priority smallint not null,
  scheduled_at timestamptz not null,
  created_at timestamptz not null,
  payload jsonb,
  claim_seq bigint not null,
  node text,
  begun_at timestamptz,
  ended_at timestamptz not null,
  outcome text not null default 'failed',
  executions integer not null,
  failures integer not null,
  crashes integer not null,
  max_retries integer,
  backoff jsonb,
  timeout_ms bigint,
  business_key text,
  tags text[],
  metadata jsonb,
  parent_id uuid,
  progress jsonb,
  error text,
  late_outcome text,
  late_error text,
  late_at timestamptz
);
create index dead_letter_ended on $schema$.dead_letter (ended_at);

-- Closed executions that did not end their job. The running one is the live row, the last one is the history row.
create table $schema$.execution (
  job_id uuid not null,
  claim_seq bigint not null,
  number integer not null,
  node text,
  outcome text not null,
  error text,
  began_at timestamptz,
  ended_at timestamptz not null,
  late_outcome text,
  late_error text,
  late_at timestamptz
) partition by range (ended_at);
create index execution_job on $schema$.execution (job_id, claim_seq);

create table $schema$.idempotency_key (
  key text primary key,
  job_id uuid not null,
  expires_at timestamptz not null
);
create index idempotency_key_expiry on $schema$.idempotency_key (expires_at);

create table $schema$.lease (
  name text primary key,
  node_id text not null,
  node_epoch bigint not null,
  expires_at timestamptz not null
);

create table $schema$.notice (
  node_id text not null,
  node_epoch bigint not null,
  job_id uuid not null,
  claim_seq bigint not null,
  reason text not null,
  created_at timestamptz not null default now(),
  primary key (node_id, node_epoch, job_id, claim_seq)
);

-- One view for reading: live, history, dead letter.
create view $schema$.jobs as
  select j.id, j.name, j.version, (array['pending', 'running', 'paused'])[j.status + 1] as status, j.lane, j.priority,
         coalesce(j.payload, p.payload) as payload, null::jsonb as result, j.last_error as error, j.progress,
         j.scheduled_at, j.created_at, j.begun_at, null::timestamptz as ended_at, b.node_id as node,
         j.executions, j.failures, j.crashes, j.claim_seq, j.max_retries, j.business_key, j.tags, j.metadata, j.parent_id
    from $schema$.job j
    left join $schema$.job_payload p on j.payload is null and p.job_id = j.id
    left join $schema$.bucket b on b.id = j.bucket
  union all
  select h.id, h.name, h.version, h.outcome, h.lane, h.priority, coalesce(h.payload, p.payload), h.result, h.error, h.progress,
         h.scheduled_at, h.created_at, h.begun_at, h.ended_at, h.node,
         h.executions, h.failures, h.crashes, h.claim_seq, h.max_retries, h.business_key, h.tags, h.metadata, h.parent_id
    from $schema$.job_history h
    left join $schema$.job_payload p on h.payload is null and p.job_id = h.id
  union all
  select d.id, d.name, d.version, 'failed', d.lane, d.priority, coalesce(d.payload, p.payload), null::jsonb, d.error, d.progress,
         d.scheduled_at, d.created_at, d.begun_at, d.ended_at, d.node,
         d.executions, d.failures, d.crashes, d.claim_seq, d.max_retries, d.business_key, d.tags, d.metadata, d.parent_id
    from $schema$.dead_letter d
    left join $schema$.job_payload p on d.payload is null and p.job_id = d.id;

create view $schema$.executions as
  select e.job_id, e.claim_seq, e.number, e.node, e.outcome, e.error, e.began_at, e.ended_at,
         e.late_outcome, e.late_error, e.late_at
    from $schema$.execution e
  union all
  select j.id, j.claim_seq, j.executions, b.node_id, 'running', null, j.begun_at, null, null, null, null
    from $schema$.job j left join $schema$.bucket b on b.id = j.bucket
   where j.status = 1
  union all
  select h.id, h.claim_seq, h.executions, h.node, h.outcome, h.error, h.begun_at, h.ended_at, null, null, null
    from $schema$.job_history h where h.outcome <> 'canceled'
  union all
  select d.id, d.claim_seq, d.executions, d.node, d.outcome, d.error, d.begun_at, d.ended_at,
         d.late_outcome, d.late_error, d.late_at
    from $schema$.dead_letter d where d.outcome <> 'crashed';

-- Makes the day partitions (UTC) from the day before "first" (null: today) to "days" days after it, by CREATE (LIKE) and
-- ATTACH, which stop nobody's insert. SECURITY DEFINER: a role that only uses the tables keeps settling. Returns for how
-- many days after "first" both tables have partitions without a gap.
create function $schema$.ensure_partitions(days integer, first date default null) returns integer
language plpgsql security definer set search_path = $schema$, pg_temp as $ratchet$
declare
  today constant date := coalesce(first, (clock_timestamp() at time zone 'UTC')::date);
  parent text;
  day date;
  part text;
  ahead integer := 0;
begin
  if days not between 0 and 400 then
    raise exception 'ensure_partitions: days must be between 0 and 400, not %', days using errcode = '22023';
  end if;
  foreach parent in array array['job_history', 'execution'] loop
    for day in select generate_series(today - 1, today + days, interval '1 day')::date loop
      part := parent || '_' || to_char(day, 'YYYYMMDD');
      continue when exists (select from pg_inherits where inhrelid = to_regclass(part));
      -- Another maker may be faster at either step; what it made is as good.
      begin
        execute format('create table %I (like %I including all)', part, parent);
      exception when duplicate_table or unique_violation then
      end;
      begin
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, part,
                       day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00');
      exception when duplicate_table or invalid_object_definition or wrong_object_type then
      end;
    end loop;
  end loop;
  while exists (select from pg_inherits where inhrelid = to_regclass('job_history_' || to_char(today + ahead + 1, 'YYYYMMDD')))
    and exists (select from pg_inherits where inhrelid = to_regclass('execution_' || to_char(today + ahead + 1, 'YYYYMMDD'))) loop
    ahead := ahead + 1;
  end loop;
  return ahead;
end
$ratchet$;
select $schema$.ensure_partitions(14);
`,
};
