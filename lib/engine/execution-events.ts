import { recurrenceOf } from '../jobs/recurrence.js';
import { type EngineEvents, type SettledExecution } from '../observability/engine-events.js';
import { type ExecutionEvent } from '../observability/ratchet-event-map.js';
import { type BucketRef, type ClaimedJob, type Settlement } from '../store/job-store.js';

/** What an outcome is the end of. */
export interface EndedWork {
  readonly job: ClaimedJob;
  /** Until the body ended, or timed out; undefined when it was given back before. */
  readonly tookMs: number | undefined;
  /** When its body began, on the monotonic clock; absent when it never did. */
  readonly beganMs?: number;
}

/** Whose claim it is. */
type Holder = Pick<BucketRef, 'id' | 'node'>;

/** The execution that a claim is, for events. Made only when somebody listens. */
export function executionEvent(job: ClaimedJob, { node }: Holder): ExecutionEvent {
  const { id, name, lane, claimSeq, executions } = job;
  return { jobId: id, name, lane, node: node.id, claimSeq, execution: executions };
}

/** Tells that an outcome is recorded, and that a job of a schedule has ended by it. */
export function tellSettled(
  events: EngineEvents,
  work: EndedWork,
  settlement: Settlement,
  bucket: Holder,
): void {
  if (events.heard('settled')) events.emit('settled', settledEvent(work, settlement, bucket));
  const { metadata, id } = work.job;
  // Most jobs have no metadata, and cost nothing here.
  if (metadata === undefined || metadata === null || !isEnd(settlement)) return;
  const scheduleId = recurrenceOf(metadata)?.scheduleId;
  if (scheduleId !== undefined) events.emit('schedule_job_ended', { scheduleId, jobId: id });
}

function isEnd({ outcome }: Settlement): boolean {
  return outcome === 'succeeded' || outcome === 'failed';
}

/** The event of an outcome that is recorded. */
export function settledEvent(
  { job, tookMs, beganMs }: EndedWork,
  { outcome, error, delayMs }: Settlement,
  bucket: Holder,
): SettledExecution {
  const failed = outcome === 'failed' || outcome === 'retried';
  return {
    ...executionEvent(job, bucket),
    bucket: bucket.id,
    outcome,
    error,
    failures: job.failures + (failed ? 1 : 0),
    crashes: job.crashes,
    delayMs,
    durationMs: tookMs,
    begun: job.begun || beganMs !== undefined,
  };
}
