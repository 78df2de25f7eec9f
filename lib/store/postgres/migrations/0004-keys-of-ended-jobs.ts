import { type Migration } from './migration.js';

/**
 * Business keys of jobs that have ended can be looked up. Partial, so that a job without a key pays nothing for it; with the id, so
 * that the newest of a key come in order.
 */
export const keysOfEndedJobs: Migration = {
  version: 4,
  name: 'keys-of-ended-jobs',
  oldestNode: 3,
  sql: `
create index job_history_key on $schema$.job_history (business_key, id) where business_key is not null;
create index dead_letter_key on $schema$.dead_letter (business_key, id) where business_key is not null;
`,
};
