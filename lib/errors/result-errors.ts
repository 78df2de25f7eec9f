import { counted } from './counted.js';
import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';
import { wrongValue } from './wrong-value.js';

/** How a job failed for good, as the dead letter has it. */
export interface JobFailureFacts {
  readonly jobId: string;
  readonly jobName: string;
  /** The text of its last error, with the stack. */
  readonly error: string;
  /** Begun executions; failures and crashes among them. */
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
}

/** A job failed for good: what `handle.result()` rejects with, and what an `@OnJobFailure` method is given. */
export class JobFailedError extends RatchetError {
  override readonly code = 'JOB_FAILED';
  readonly jobId: string;
  readonly jobName: string;
  /** The text of its last error, with the stack. */
  readonly error: string;
  /** Begun executions. */
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;

  constructor(facts: JobFailureFacts) {
    const { jobId, jobName, error, executions, failures, crashes } = facts;
    const [line = ''] = error.split('\n', 1);
    super(
      `JOB_FAILED: ${jobName}: job ${jobId} failed for good after ${counted(executions, 'execution')} (${counted(failures, 'failure')}, ` +
        `${counted(crashes, 'crash', 'crashes')}): ${showValue(line, 500)}; the dead letter has it, redrive(id) runs it again`,
      { cause: error },
    );
    this.jobId = jobId;
    this.jobName = jobName;
    this.error = error;
    this.executions = executions;
    this.failures = failures;
    this.crashes = crashes;
  }
}

/** The awaited job succeeded, and what its handler returned could not be stored. The job is done: it is not run again. */
export class ResultNotKeptError extends RatchetError {
  override readonly code = 'RESULT_NOT_KEPT';

  constructor(
    readonly jobId: string,
    readonly jobName: string,
    /** As the log said it when the job ended. */
    readonly reason: string,
  ) {
    super(
      `RESULT_NOT_KEPT: ${showValue(jobName, 200)}: job ${jobId} succeeded, but its result was not kept: ${showValue(reason)}; ` +
        'the job is done. For the next one raise limits.resultBytes, or store the result elsewhere and return a reference to it',
    );
  }
}

/** The awaited job was canceled. */
export class JobCanceledError extends RatchetError {
  override readonly code = 'JOB_CANCELED';

  constructor(
    readonly jobId: string,
    readonly jobName: string,
  ) {
    super(`JOB_CANCELED: ${jobName}: job ${jobId} was canceled, so it has no result`);
  }
}

/** `handle.result({ timeout })` waited that long; the job goes on. */
export class ResultTimeoutError extends RatchetError {
  override readonly code = 'RESULT_TIMEOUT';

  constructor(
    readonly jobId: string,
    readonly timeoutMs: number,
  ) {
    super(
      `RESULT_TIMEOUT: job ${jobId} had not ended after ${timeoutMs} ms; it goes on: await result() again, or ask get(id) what it is doing`,
    );
  }
}

/** An option of `result()` that cannot be right. */
export class InvalidResultOptionError extends RatchetError {
  override readonly code = 'INVALID_RESULT_OPTION';

  constructor(
    readonly option: string,
    readonly value: unknown,
    readonly allowed: string,
    options?: { cause?: unknown },
  ) {
    super(`INVALID_RESULT_OPTION: result: ${option}: ${wrongValue(value, allowed)}`, options);
  }
}

/** A call about one job was given something that cannot be the id of a job. Nothing was asked or changed. */
export class InvalidJobIdError extends RatchetError {
  override readonly code = 'INVALID_JOB_ID';

  constructor(
    /** The method: `handle`, `cancel`. */
    readonly call: string,
    readonly value: unknown,
  ) {
    super(
      `INVALID_JOB_ID: ${call}: ${showValue(value)} is no id of a job; give the id of a job, a UUID: handle.id, or the id of what find() returned`,
    );
  }
}

/** The awaited job is one of another definition: its result would not have the type of the handle. */
export class ResultOfOtherJobError extends RatchetError {
  override readonly code = 'RESULT_OF_OTHER_JOB';

  constructor(
    readonly jobId: string,
    /** Of the job. */
    readonly jobName: string,
    /** Of the definition that the handle was made with. */
    readonly expectedName: string,
  ) {
    super(
      `RESULT_OF_OTHER_JOB: result: job ${jobId} is a ${showValue(jobName, 200)}, and the handle was made for ${showValue(expectedName, 200)}; ` +
        'await it with its own definition: handle(definition, id), or without one: handle(id)',
    );
  }
}

/** A handler awaits the result of the job that it runs: it would wait for itself. */
export class ResultOfItselfError extends RatchetError {
  override readonly code = 'RESULT_OF_ITSELF';

  constructor(
    readonly jobId: string,
    readonly jobName: string,
  ) {
    super(
      `RESULT_OF_ITSELF: ${jobName}: job ${jobId} awaits its own result, which it has when its handler returns; ` +
        'await another job, or return the value',
    );
  }
}

/** A transactional handler awaits the result of a job that its own transaction enqueued: that runs after the commit, not before. */
export class ResultOfUncommittedError extends RatchetError {
  override readonly code = 'RESULT_OF_UNCOMMITTED';

  constructor(
    readonly jobId: string,
    readonly jobName: string,
  ) {
    super(
      `RESULT_OF_UNCOMMITTED: ${jobName}: awaits job ${jobId}, which its own transaction enqueued and which runs only after the commit; ` +
        'return first, and await the result elsewhere; or enqueue the job with scheduler.enqueue, outside of the transaction',
    );
  }
}

/** The application closed while somebody awaited a result; the job is not touched by it. */
export class ResultAbandonedError extends RatchetError {
  override readonly code = 'RESULT_ABANDONED';

  constructor(readonly jobId: string) {
    super(
      `RESULT_ABANDONED: job ${jobId}: the application closed before its result was known; the job goes on: ` +
        'await handle(id).result() in another process',
    );
  }
}
