import { type Migration } from './migration.js';

/**
 * Buckets for a priority, lanes that are paused, nodes that are drained by hand, jobs that are claimed ahead. A running row with
 * `begun_at` was begun by its claim; one without was claimed ahead, and has begun when a start mark names its claim.
 */
export const buckets: Migration = {
  version: 6,
  name: 'buckets',
  oldestNode: 3,
  sql: `
-- What people have said of a lane, and what its nodes agree on. No row: nothing.
create table $schema$.lane (
  name text primary key,
  paused_at timestamptz,
  -- Priorities that every live node which serves the lane has switched off.
  disabled smallint[] not null default '{}'
);
-- What an enqueue looks at: as a rule, nothing.
create index lane_disabled on $schema$.lane (name) where disabled <> '{}';

-- Paused jobs by lane, for whoever moves them to another or lists what there is.
create index job_paused on $schema$.job (lane, id) where status = 2;

-- Priorities that the node has switched off: {"lane": [0, 1]}.
alter table $schema$.node add column disabled jsonb not null default '{}';
-- It may claim jobs ahead, so that others may ask it for some.
alter table $schema$.node add column buffers boolean not null default false;
-- Drained by hand: it opens no bucket until somebody says otherwise, or its process ends.
alter table $schema$.node add column cordoned_at timestamptz;

-- One for each lane in the cluster that claims. Those that end, for as long as that takes, keep nobody from making the next one.
create unique index bucket_fallback on $schema$.bucket (lane) where kind = 'fallback' and status = 'active';

-- A batch of jobs, claimed ahead, that a bucket has begun.
create table $schema$.start_mark (
  bucket uuid not null,
  no bigint not null,
  ids uuid[] not null,
  seqs bigint[] not null,
  begun_at timestamptz not null,
  primary key (bucket, no)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- Writes down what the nodes agree on. Called after a node has come or gone is committed. One at a time, and each of its statements sees
-- what was committed before it, so that the last of several calls has seen all of them.
create function $schema$.agree_on_disabled() returns void language plpgsql set search_path = $schema$, pg_temp as $ratchet$
begin
  if not exists (select from node where disabled <> '{}') and not exists (select from lane where disabled <> '{}') then
    return;
  end if;
  lock table lane in share row exclusive mode;
  with serving as (
    select distinct n.id, l.name, coalesce(n.disabled -> l.name, '[]') as off
      from node n cross join lateral unnest(n.lanes) as l (name) where n.state = 'running'
  ),
  agreed as (
    select s.name, array(select p::smallint from generate_series(0, 4) p
                          where not exists (select from serving o where o.name = s.name and not o.off @> to_jsonb(p))) as disabled
      from (select distinct name from serving) s
  ),
  wanted as (
    select name, disabled from agreed where disabled <> '{}' or name in (select name from lane)
    union all
    select l.name, '{}' from lane l where l.disabled <> '{}' and l.name not in (select name from agreed)
  )
  insert into lane as l (name, disabled) select name, disabled from wanted order by name
  on conflict (name) do update set disabled = excluded.disabled where l.disabled <> excluded.disabled;
end
$ratchet$;

-- A running job has begun by its claim, or by a start mark.
create or replace view $schema$.jobs as
  select j.id, j.name, j.version, (array['pending', 'running', 'paused'])[j.status + 1] as status, j.lane, j.priority,
         coalesce(j.payload, p.payload) as payload, null::jsonb as result, j.last_error as error, j.progress,
         j.scheduled_at, j.created_at,
         case when j.status = 1 then coalesce(j.begun_at, (
           select m.begun_at from $schema$.start_mark m where m.bucket = j.bucket
              and exists (select from unnest(m.ids, m.seqs) as s (id, seq) where s.id = j.id and s.seq = j.claim_seq)
            order by m.no desc limit 1)) end as begun_at, null::timestamptz as ended_at, b.node_id as node,
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

create or replace view $schema$.executions as
  select e.job_id, e.claim_seq, e.number, e.node, e.outcome, e.error, e.began_at, e.ended_at,
         e.late_outcome, e.late_error, e.late_at
    from $schema$.execution e
  union all
  select j.id, j.claim_seq, j.executions + (j.begun_at is null)::int, b.node_id, 'running', null, w.began, null, null, null, null
    from $schema$.job j left join $schema$.bucket b on b.id = j.bucket
    cross join lateral (select coalesce(j.begun_at, (
           select m.begun_at from $schema$.start_mark m where m.bucket = j.bucket
              and exists (select from unnest(m.ids, m.seqs) as s (id, seq) where s.id = j.id and s.seq = j.claim_seq)
            order by m.no desc limit 1)) as began) w
   where j.status = 1 and w.began is not null
  union all
  select h.id, h.claim_seq, h.executions, h.node, h.outcome, h.error, h.begun_at, h.ended_at, null, null, null
    from $schema$.job_history h where h.outcome <> 'canceled'
  union all
  select d.id, d.claim_seq, d.executions, d.node, d.outcome, d.error, d.begun_at, d.ended_at,
         d.late_outcome, d.late_error, d.late_at
    from $schema$.dead_letter d where d.outcome <> 'crashed';
`,
};
