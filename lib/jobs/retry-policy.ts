import { type ResolvedBackoff } from './backoff.js';

/** What a retry policy may look at. */
export interface FailedExecution {
  readonly name: string;
  readonly error: unknown;
  /** Failures so far, this one included. */
  readonly failures: number;
  readonly maxRetries: number;
  readonly backoff: ResolvedBackoff;
}

/** Decides what follows a failure: milliseconds until the next execution, or `undefined` for none (dead letter). */
export abstract class RetryPolicy {
  abstract nextDelayMs(execution: FailedExecution): number | undefined;
}
