import { uuidv7 } from 'uuidv7';
import { RECURRENCE_KEYS } from '../../jobs/recurrence.js';
import { type StoredFailure } from '../../jobs/stored-failure.js';
import { type NewJob } from '../../store/job-store.js';
import { LIST_NODE, type ListedJob } from './listed-job.js';

/** The job that a statement inserts when it moves a job to the dead letter: `definition` is its failure handler's. */
export function failureJob(failed: ListedJob, definition: { name: string; lane: string }): NewJob {
  const { job, id, priority } = failed;
  const metadata: unknown = job.metadata === undefined ? null : JSON.parse(job.metadata);
  const own = withoutOccurrence(metadata);
  const failure: StoredFailure = {
    payload: JSON.parse(job.payload),
    error: failed.error ?? '',
    job: {
      id,
      name: job.name,
      version: job.version,
      lane: job.lane,
      priority,
      node: LIST_NODE,
      createdAt: failed.createdAt.toISOString(),
      failedAt: (failed.endedAt ?? failed.createdAt).toISOString(),
      executions: failed.begun,
      failures: failed.failures,
      crashes: 0,
      businessKey: job.businessKey ?? null,
      tags: job.tags.length === 0 ? null : job.tags,
      metadata,
    },
  };
  return {
    id: uuidv7(),
    name: definition.name,
    version: 1,
    lane: definition.lane,
    priority,
    payload: JSON.stringify(failure),
    delayMs: 0,
    tags: [],
    ...(own === undefined ? {} : { metadata: own }),
    parent: { id, claimSeq: String(failed.claimSeq) },
  };
}

/** As JSON text. The failure handler's job is no occurrence, and must not keep the next one from running. */
function withoutOccurrence(metadata: unknown): string | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const keys: readonly string[] = Object.values(RECURRENCE_KEYS);
  const left = Object.entries(metadata).filter(([key]) => !keys.includes(key));
  return left.length === 0 ? undefined : JSON.stringify(Object.fromEntries(left));
}
