import { type StandardSchemaV1 } from '@standard-schema/spec';
import { type FailedJob, type JobFailure } from './job-failure.js';
import { type PriorityRank, priorityOf } from './priority.js';

/** The payload of a job `<name>#failed`, as the statement writes it that moves the failed job to the dead letter. */
export interface StoredFailure {
  readonly payload: unknown;
  readonly error: string;
  readonly job: Omit<FailedJob, 'priority' | 'node' | 'createdAt' | 'failedAt' | 'businessKey' | 'tags'> & {
    readonly priority: PriorityRank;
    readonly node: string | null;
    /** As PostgreSQL writes times in JSON: ISO 8601. */
    readonly createdAt: string;
    readonly failedAt: string;
    readonly businessKey: string | null;
    readonly tags: readonly string[] | null;
  };
}

/** Makes of it what methods are given: the words and types that jobs have everywhere else. */
export const FAILURE_SCHEMA: StandardSchemaV1<StoredFailure, JobFailure> = Object.freeze({
  '~standard': Object.freeze({
    version: 1,
    vendor: 'nestjs-ratchet',
    validate: (stored: unknown) => ({ value: failureOf(stored as StoredFailure) }),
  }),
});

function failureOf({ payload, error, job }: StoredFailure): JobFailure {
  return {
    payload,
    error,
    job: {
      ...job,
      priority: priorityOf(job.priority),
      node: job.node ?? undefined,
      createdAt: new Date(job.createdAt),
      failedAt: new Date(job.failedAt),
      businessKey: job.businessKey ?? undefined,
      tags: job.tags ?? [],
      metadata: job.metadata ?? undefined,
    },
  };
}
