import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';
import { wrongValue } from './wrong-value.js';

/** An option of `enqueue` or `enqueueMany` that cannot be right. */
export class InvalidEnqueueOptionError extends RatchetError {
  override readonly code = 'INVALID_ENQUEUE_OPTION';

  constructor(
    readonly jobName: string,
    /** The path of the option: `backoff.delay`. */
    readonly option: string,
    readonly value: unknown,
    readonly allowed: string,
    options?: { cause?: unknown },
  ) {
    super(`INVALID_ENQUEUE_OPTION: ${showValue(jobName)}: ${option}: ${wrongValue(value, allowed)}`, options);
  }
}

/** A live job holds the business key. The caller's transaction stays usable. */
export class BusinessKeyHeldError extends RatchetError {
  override readonly code = 'BUSINESS_KEY_HELD';

  constructor(
    readonly businessKey: string,
    /** The job that holds the key; `undefined` when it ended meanwhile, or is not visible to this transaction. */
    readonly holder: string | undefined,
    /** The holder is running, so that `onConflict: 'replace'` left it alone. */
    readonly running = false,
    /** Two items of one `enqueueMany` have the key: nobody holds it. */
    readonly items?: readonly [number, number],
    /** The job that was to be redriven, and stays in the dead letter. */
    readonly redriven?: string,
  ) {
    super(
      `BUSINESS_KEY_HELD: businessKey: ${showValue(businessKey, 200)} is ` +
        (items ? twice(items) : heldBy(holder) + mendOf(holder, running, redriven)),
    );
  }
}

function heldBy(holder: string | undefined): string {
  return `held by ${holder === undefined ? 'another live job' : `job ${holder}`}`;
}

function mendOf(holder: string | undefined, running: boolean, redriven: string | undefined): string {
  if (redriven !== undefined) {
    const stop = holder === undefined ? 'cancel that job' : `cancel('${holder}')`;
    return `; job ${redriven} stays in the dead letter: ${stop}, or wait until it has ended, and redrive again`;
  }
  return running
    ? ', which is running and is not replaced; cancel it first, or enqueue again when it has ended'
    : "; wait until it has ended, or set onConflict to 'return' or 'replace'";
}

function twice([one, other]: readonly [number, number]): string {
  return (
    `the key of items[${one}] and items[${other}] of the same call; leave one of them out, ` +
    `or set onConflict of items[${other}] to 'return', which gives it the job of the first`
  );
}

/**
 * Another transaction stood in the way: a serialization failure, a deadlock, or (outside a transaction of yours) a key that an
 * open transaction holds for longer than the lock timeout.
 */
export class EnqueueConflictError extends RatchetError {
  override readonly code = 'ENQUEUE_CONFLICT';
  override readonly retryable = true;

  constructor(options: { cause: unknown }) {
    super(
      'ENQUEUE_CONFLICT: enqueue: another transaction stood in the way (40001, 40P01, or a key that it holds uncommitted); ' +
        'try again, and inside a transaction roll it back and run all of it again',
      options,
    );
  }
}

/** What is given as `transaction` is not inside one, its connection was lost, or it ended before the job's turn: nothing was written. */
export class TransactionNotActiveError extends RatchetError {
  override readonly code = 'TRANSACTION_NOT_ACTIVE';

  constructor(
    what: string,
    problem = 'has no active transaction',
    mend = 'give the manager that dataSource.transaction() hands to its callback, or leave the option out',
  ) {
    super(`TRANSACTION_NOT_ACTIVE: enqueue.transaction: the ${what} ${problem}; ${mend}`);
  }

  /** Its connection was lost, or given back, before a commit. */
  static cutOff(): TransactionNotActiveError {
    return new TransactionNotActiveError(
      'QueryRunner',
      undefined,
      'its connection was lost or released before the commit, so that nothing of the transaction is kept; run all of it again',
    );
  }

  /** Committed or rolled back, or a savepoint of it was, between the call and its turn on the connection. */
  static ended(): TransactionNotActiveError {
    return new TransactionNotActiveError(
      'transaction or savepoint of this call',
      'ended before the job was written',
      'await enqueue() before you send COMMIT, ROLLBACK or ROLLBACK TO, and enqueue again where the job is still wanted',
    );
  }
}

/** There is no such job (any more). */
export class JobNotFoundError extends RatchetError {
  override readonly code = 'JOB_NOT_FOUND';

  constructor(readonly jobId: string) {
    super(
      `JOB_NOT_FOUND: ${showValue(jobId)} is no job: it was never committed, retention has removed it, or it succeeded and its definition keeps nothing (history: 'drop')`,
    );
  }
}
