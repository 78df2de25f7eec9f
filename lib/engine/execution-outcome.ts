import { cleanText } from '../errors/clean-text.js';
import { errorText } from '../errors/describe-error.js';
import { showValue } from '../errors/show-value.js';
import { type ResolvedBackoff } from '../jobs/backoff.js';
import { DefaultRetryPolicy } from '../jobs/default-retry-policy.js';
import { MAX_DURATION_MS } from '../jobs/duration.js';
import { encodeResult } from '../jobs/payload-codec.js';
import { type FailedExecution, type RetryPolicy } from '../jobs/retry-policy.js';
import { type ClaimedJob, type Settlement } from '../store/job-store.js';
import { type ExecutionLog } from './execution-log.js';

/** What counts for one execution: the row's own setting, else the handler's definition, else the module's. */
export interface ExecutionRules {
  readonly maxRetries: number;
  readonly backoff: ResolvedBackoff;
  readonly timeoutMs: number | undefined;
  /** Keep nothing of a success. */
  readonly drop: boolean;
  readonly resultBytes: number;
  readonly errorBytes: number;
}

const FALLBACK_POLICY = new DefaultRetryPolicy();

/** Makes settlements of what a handler did. No I/O; never throws, whatever was returned or thrown. */
export class ExecutionOutcome {
  constructor(
    private readonly job: ClaimedJob,
    private readonly rules: ExecutionRules,
    private readonly policy: RetryPolicy,
    private readonly log: ExecutionLog,
  ) {}

  succeeded(value: unknown): Settlement {
    const { drop, resultBytes } = this.rules;
    const result = drop ? undefined : encodeResult(value, resultBytes);
    if (result?.replaced !== undefined) this.log.warn(`the result is ${result.replaced} and is not kept`);
    return {
      ...this.#claim(),
      outcome: 'succeeded',
      ...(result ? { result: result.text } : {}),
      ...(drop ? { drop } : {}),
    };
  }

  snoozed(delayMs: number): Settlement {
    return { ...this.#claim(), outcome: 'snoozed', delayMs };
  }

  /** Given back as it was, due when it was. */
  released(cause: unknown): Settlement {
    return { ...this.#claim(), outcome: 'released', error: this.errorOf(cause) };
  }

  failed(error: unknown): Settlement {
    const text = this.errorOf(error);
    const delayMs = this.#nextDelayMs(error);
    return delayMs === undefined
      ? { ...this.#claim(), outcome: 'failed', error: text }
      : { ...this.#claim(), outcome: 'retried', error: text, delayMs };
  }

  /** Says what became of a failure. Once it is durable: until then a node that dies makes it untrue. */
  tell({ outcome, error = '', delayMs }: Settlement): void {
    const which = `failure ${this.job.failures + 1}, ${error.split('\n', 1).join().slice(0, 500)}`;
    if (outcome === 'failed') this.log.warn(`failed for good (${which}); it is in the dead letter`);
    else if (outcome === 'retried') this.log.debug(`is tried again in ${delayMs} ms (${which})`);
  }

  /** The text to store for an error. */
  errorOf(error: unknown): string {
    return cleanText(errorText(error), this.rules.errorBytes);
  }

  #nextDelayMs(error: unknown): number | undefined {
    const { maxRetries, backoff } = this.rules;
    const failure: FailedExecution = {
      name: this.job.name,
      error,
      failures: this.job.failures + 1,
      maxRetries,
      backoff,
    };
    try {
      const delayMs: unknown = this.policy.nextDelayMs(failure);
      if (delayMs === undefined) return undefined;
      if (typeof delayMs === 'number' && delayMs >= 0 && delayMs <= MAX_DURATION_MS)
        return Math.round(delayMs);
      this.log.warn(
        `the RetryPolicy answered ${showValue(delayMs)}, which is no delay in milliseconds; the default one decides`,
      );
    } catch (fault) {
      this.log.warn(`the RetryPolicy threw (${errorText(fault).slice(0, 500)}); the default one decides`);
    }
    return FALLBACK_POLICY.nextDelayMs(failure);
  }

  #claim(): { id: string; claimSeq: string } {
    return { id: this.job.id, claimSeq: this.job.claimSeq };
  }
}
