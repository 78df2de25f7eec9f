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

-- Priorities that the node has switched off: {"lane": [0, 1]}.
alter table $schema$.node add column disabled jsonb not null default '{}';
-- Jobs that it has claimed ahead, as of its last heartbeat.
alter table $schema$.node add column buffered integer not null default 0;
-- Drained by hand: it opens no bucket until somebody says otherwise, or its process ends.
alter table $schema$.node add column cordoned_at timestamptz;

-- One for each lane in the cluster.
create unique index bucket_fallback on $schema$.bucket (lane) where kind = 'fallback';

-- A batch of jobs, claimed ahead, that a bucket has begun.
create table $schema$.start_mark (
  bucket uuid not null,
  no bigint not null,
  ids uuid[] not null,
  seqs bigint[] not null,
  begun_at timestamptz not null,
  primary key (bucket, no)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
`,
};
