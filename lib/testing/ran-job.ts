import { type ExecutionOutcome } from '../jobs/job-status.js';
import { type JobInfo } from '../scheduler/job-info.js';

/** What came of one execution. */
export interface RanJob<Payload = unknown, Result = unknown> {
  readonly id: string;
  readonly name: string;
  readonly lane: string;
  /** As it was enqueued, in its JSON form. */
  readonly payload: Payload;
  /** 1 for the first. */
  readonly execution: number;
  /**
   * `failed` is the dead letter; `retried` a failure that is followed by another execution. `canceled`: somebody canceled
   * it while it ran. `released`: the application was closed meanwhile. `lost`: its claim had gone when it ended.
   */
  readonly outcome: Exclude<ExecutionOutcome, 'crashed'> | 'lost';
  /** As it is stored (JSON); `undefined` unless the job succeeded and keeps its history. */
  readonly result: Result | undefined;
  /** The very thing that was thrown; a `JobTimeoutError` after a timeout. */
  readonly error: unknown;
  /** Milliseconds from the end until it is due again: `retried` and `snoozed`. */
  readonly againInMs: number | undefined;
}

/** A job that waits to be run, with the payload's type. */
export type EnqueuedJob<Payload = unknown> = Omit<JobInfo, 'payload'> & { readonly payload: Payload };
