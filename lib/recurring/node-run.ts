import { uuidv7 } from 'uuidv7';
import { type AbortKind } from '../errors/execution-errors.js';
import { type Recurrence, recurrenceMetadata } from '../jobs/recurrence.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type ClaimedJob, type Settlement } from '../store/job-store.js';

/** A run of scope `node` under way: like the execution of a job, but nothing of it is recorded. */
export interface NodeRun {
  /** Never rejects; stays pending when it was aborted before its end. */
  readonly settlement: Promise<Settlement>;
  /** The handler's body has ended. Never rejects. */
  readonly ended: Promise<unknown>;
  abort(kind: AbortKind): void;
}

/** The claim of what nobody claimed: the database never gives this one. */
export const NO_CLAIM = '0';

/** What an executor runs for an occurrence of scope `node`. It is in no table, and has no retries. */
export function nodeJob(
  { spec: { template }, jobName }: AnnotatedSchedule,
  recurrence: Recurrence,
): ClaimedJob {
  return {
    id: uuidv7(),
    name: jobName,
    version: template.version,
    lane: template.lane,
    priority: template.priority,
    begun: true,
    claimSeq: NO_CLAIM,
    payload: JSON.parse(template.payload) as unknown,
    scheduledAt: recurrence.scheduledFor,
    place: '',
    createdAt: recurrence.scheduledFor,
    waitedMs: 0,
    executions: 1,
    failures: 0,
    crashes: 0,
    maxRetries: 0,
    backoff: undefined,
    timeoutMs: template.timeoutMs,
    businessKey: undefined,
    tags: template.tags,
    metadata: JSON.parse(recurrenceMetadata(recurrence)) as unknown,
    parentId: undefined,
    lastError: undefined,
  };
}
