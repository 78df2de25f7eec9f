import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** Why an execution's signal was aborted. */
export type AbortKind = 'timeout' | 'canceled' | 'shutdown' | 'lost';

/**
 * Throw it in a handler (or a subclass, or anything with `code: 'UNRECOVERABLE'`) when no retry can help: the job goes to
 * the dead letter at once.
 *
 * @example
 * throw new UnrecoverableError('the account is closed', { cause: error });
 */
export class UnrecoverableError extends RatchetError {
  override readonly code = 'UNRECOVERABLE';
}

/** The execution ran longer than its timeout. It is a failure like any other: retries and backoff apply. */
export class JobTimeoutError extends RatchetError {
  override readonly code = 'JOB_TIMEOUT';

  constructor(
    readonly jobName: string,
    readonly timeoutMs: number,
  ) {
    super(
      `JOB_TIMEOUT: ${showValue(jobName)}: the handler ran longer than its timeout of ${timeoutMs} ms; ` +
        'let it stop at ctx.signal, do less in one job, or raise the timeout',
    );
  }
}

const ABORT_WORDS: Record<AbortKind, string> = {
  timeout: 'it ran longer than its timeout',
  canceled: 'the job was canceled',
  shutdown: 'the node shuts down; the job has been given back',
  lost: 'the job is no longer this execution’s: another node may be running it',
};

/** The reason of `ctx.signal` when it is aborted; what waits on the signal rejects with it. */
export class RatchetAbort extends RatchetError {
  override readonly code = 'JOB_ABORTED';

  constructor(
    readonly reason: AbortKind,
    readonly jobName: string,
    readonly jobId: string,
  ) {
    super(
      `JOB_ABORTED: ${showValue(jobName)} (${jobId}): ${ABORT_WORDS[reason]}; its outcome no longer counts`,
    );
    // As with the platform's own, so that libraries that look for an abort find one.
    this.name = 'AbortError';
  }
}

/** The execution no longer owns its job: what it asked for was not done. */
export class ClaimLostError extends RatchetError {
  override readonly code = 'CLAIM_LOST';

  constructor(
    readonly jobId: string,
    readonly claimSeq: string,
  ) {
    super(
      `CLAIM_LOST: job ${jobId} is no longer held by claim ${claimSeq}: it was canceled, given back or taken over; stop at ctx.signal`,
    );
  }
}

/** `ctx.snooze` was given no duration. */
export class InvalidSnoozeError extends RatchetError {
  override readonly code = 'INVALID_SNOOZE';

  constructor(jobName: string, value: unknown, allowed: string) {
    super(
      `INVALID_SNOOZE: ${showValue(jobName)}: ctx.snooze: ${showValue(value)} is wrong; allowed: ${allowed}`,
    );
  }
}

/** With `enhancers: { guards: true }`: a guard of the app returned false, so the handler was not called. */
export class GuardRefusedError extends RatchetError {
  override readonly code = 'GUARD_REFUSED';

  constructor(owner: string, options: { cause: unknown }) {
    super(
      `GUARD_REFUSED: ${owner}: a guard refused the execution: Forbidden resource; let the guard pass ` +
        `what has context.getType() === 'ratchet', or throw an UnrecoverableError where no retry can help`,
      options,
    );
  }
}
