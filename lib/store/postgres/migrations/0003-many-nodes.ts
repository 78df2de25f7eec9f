import { type Migration } from './migration.js';

/** Heartbeats, and buckets that a healthy node takes over. Nodes that know no heartbeat would be declared dead. */
export const manyNodes: Migration = {
  version: 3,
  name: 'many-nodes',
  oldestNode: 3,
  sql: `
alter table $schema$.node add column running integer not null default 0;
alter table $schema$.node add column lag_ms integer not null default 0;
-- Of the process alone: host and pid may be the same in the next container.
alter table $schema$.node add column process text;

-- Who drains a bucket that was lost. When that node dies as well, the bucket is lost again.
alter table $schema$.bucket add column drainer_id text;
alter table $schema$.bucket add column drainer_epoch bigint;
`,
};
