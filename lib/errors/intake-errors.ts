import { RatchetError } from './ratchet-error.js';

/** Too much waits for the database already: the process takes in more than can be saved. Try again later, or use `enqueueMany`. */
export class IntakeFullError extends RatchetError {
  override readonly code = 'INTAKE_FULL';
  override readonly retryable = true;

  constructor(waiting: number) {
    super(
      `INTAKE_FULL: ${waiting} jobs wait to be saved; await some enqueue() calls before making more, or use enqueueMany()`,
    );
  }
}

/** The transaction given is over, and its QueryRunner released: the connection may be in other hands. */
export class TransactionReleasedError extends RatchetError {
  override readonly code = 'TRANSACTION_RELEASED';

  constructor() {
    super(
      'TRANSACTION_RELEASED: enqueue.transaction: the transaction is over and its QueryRunner released; enqueue and await it inside, before the commit',
    );
  }
}

/** The transaction given belongs to a database that does not hold Ratchet's tables: nothing could be committed together. */
export class ForeignTransactionError extends RatchetError {
  override readonly code = 'FOREIGN_TRANSACTION';

  constructor(readonly database: string) {
    super(
      `FOREIGN_TRANSACTION: enqueue.transaction: the transaction is one of the ${database}, which is not where Ratchet keeps its jobs; ` +
        'give the manager of the DataSource that RatchetModule uses, or enqueue after the commit',
    );
  }
}

/** The database was lost while jobs were being saved: nobody can say whether they were. */
export class EnqueueInDoubtError extends RatchetError {
  override readonly code = 'ENQUEUE_IN_DOUBT';

  constructor(
    readonly ids: readonly string[],
    options: { cause: unknown },
  ) {
    super(
      `ENQUEUE_IN_DOUBT: the database was lost while ${ids.length === 1 ? `job ${String(ids[0])}` : `${ids.length} jobs`} were being saved, and they may or may not be there; ` +
        'ask get(id) once it is back, or enqueue with an idempotencyKey, which may be repeated safely',
      options,
    );
  }
}

/** The application stopped before a job of `durability: 'buffered'` was saved: it is not there. */
export class EnqueueAbandonedError extends RatchetError {
  override readonly code = 'ENQUEUE_ABANDONED';

  constructor(options?: { cause: unknown }) {
    super(
      "ENQUEUE_ABANDONED: enqueue.durability: the application stopped before this 'buffered' job was saved, so it is not there; " +
        "enqueue it again, and without 'buffered' where it must not be lost",
      options,
    );
  }
}

/** Only a job in the dead letter can be redriven. */
export class JobNotFailedError extends RatchetError {
  override readonly code = 'JOB_NOT_FAILED';

  constructor(
    readonly jobId: string,
    readonly status: string,
  ) {
    super(
      `JOB_NOT_FAILED: redrive: job ${jobId} is ${status}; only a failed job, which rests in the dead letter, can be redriven`,
    );
  }
}
