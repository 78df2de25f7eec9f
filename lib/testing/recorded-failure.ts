import { type FailedExecution, RetryPolicy } from '../jobs/retry-policy.js';

/** Asks the app's own policy, and keeps the error itself: what is stored of it is text. One for each execution. */
export class RecordedFailure extends RetryPolicy {
  error: unknown;

  constructor(private readonly policy: RetryPolicy) {
    super();
  }

  override nextDelayMs(execution: FailedExecution): number | undefined {
    this.error = execution.error;
    return this.policy.nextDelayMs(execution);
  }
}
