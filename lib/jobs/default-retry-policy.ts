import { describeError } from '../errors/describe-error.js';
import { nextBackoffMs } from './backoff.js';
import { type FailedExecution, RetryPolicy } from './retry-policy.js';

/** Retries with the job's backoff until `maxRetries` is used up; never what is unrecoverable. */
export class DefaultRetryPolicy extends RetryPolicy {
  constructor(private readonly random: () => number = Math.random) {
    super();
  }

  override nextDelayMs({ error, failures, maxRetries, backoff }: FailedExecution): number | undefined {
    if (failures > maxRetries || isUnrecoverable(error)) return undefined;
    return nextBackoffMs(backoff, failures, this.random());
  }
}

/** By code or name, so that a second copy of the package, or another library's error of that name, counts too. */
export function isUnrecoverable(error: unknown): boolean {
  const { code, name } = describeError(error);
  return code === 'UNRECOVERABLE' || name === 'UnrecoverableError';
}
