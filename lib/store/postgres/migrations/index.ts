import { oneNode } from './0001-one-node.js';
import { jobControl } from './0002-job-control.js';
import { manyNodes } from './0003-many-nodes.js';
import { keysOfEndedJobs } from './0004-keys-of-ended-jobs.js';
import { recurringSchedules } from './0005-recurring-schedules.js';
import { buckets } from './0006-buckets.js';
import { type Migration } from './migration.js';

/** Every step, in order. */
export const MIGRATIONS: readonly Migration[] = [
  oneNode,
  jobControl,
  manyNodes,
  keysOfEndedJobs,
  recurringSchedules,
  buckets,
];

/** The schema version that this code is written for. */
export const SCHEMA_VERSION = MIGRATIONS.length;
