import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** A transactional handler in an app whose module has no `dataSource`: there is no transaction that it could run in. */
export class TransactionalNeedsDataSourceError extends RatchetError {
  override readonly code = 'TRANSACTIONAL_NEEDS_DATA_SOURCE';

  constructor(owners: readonly string[]) {
    super(
      `TRANSACTIONAL_NEEDS_DATA_SOURCE: ${owners.join(', ')}: a transactional handler runs in a transaction of the app's TypeORM ` +
        'DataSource, and RatchetModule was given none; give it the option dataSource (instead of connection or database), or ' +
        'leave transactional out',
    );
  }
}

/** The DataSource's pool is too small for transactional handlers. */
export class TransactionalPoolTooSmallError extends RatchetError {
  override readonly code = 'TRANSACTIONAL_POOL_TOO_SMALL';

  constructor(owners: readonly string[], size: number, least: number) {
    super(
      `TRANSACTIONAL_POOL_TOO_SMALL: dataSource.poolSize: ${size} connections are too few for ${owners.join(', ')}: each transactional ` +
        `handler holds one, and two are left for what runs beside them; set poolSize (or extra.max) of the DataSource to at least ${least}`,
    );
  }
}

/** A statement of a transactional handler failed, the handler went on, and PostgreSQL has given its transaction up. */
export class TransactionBrokenError extends RatchetError {
  override readonly code = 'TRANSACTION_BROKEN';

  constructor(owner: string, options?: { cause?: unknown }) {
    super(
      `TRANSACTION_BROKEN: ${owner}: a statement failed within the handler's transaction and the handler went on, so that nothing of it ` +
        'can be committed (25P02); let the error out, or run what may fail in a nested transaction: manager.transaction(…)',
      options,
    );
  }
}

/** A transactional handler returned before a nested transaction of its own had ended. */
export class NestedTransactionOpenError extends RatchetError {
  override readonly code = 'NESTED_TRANSACTION_OPEN';

  constructor(owner: string) {
    super(
      `NESTED_TRANSACTION_OPEN: ${owner}: a nested transaction was open when the handler returned; await manager.transaction(…), ` +
        'and end what startTransaction() began',
    );
  }
}

/** The connection of a transactional handler was lost before the commit: nothing of it is kept. */
export class TransactionCutOffError extends RatchetError {
  override readonly code = 'TRANSACTION_CUT_OFF';

  constructor(owner: string, options?: { cause?: unknown }) {
    super(
      `TRANSACTION_CUT_OFF: ${owner}: the connection of its transaction was lost before the commit, so that nothing of it is kept; ` +
        'it is tried again like any failure',
      options,
    );
  }
}

/** A transactional handler ended the transaction that it runs in. */
export class TransactionEndedByHandlerError extends RatchetError {
  override readonly code = 'TRANSACTION_ENDED_BY_HANDLER';

  constructor(owner: string, how: string) {
    super(
      `TRANSACTION_ENDED_BY_HANDLER: ${owner}: ${how} ends the transaction that the job's outcome is committed with; leave its end to ` +
        'Ratchet: return to commit, throw to roll back; for a part of it use manager.transaction(…)',
    );
  }
}

/** Something was sent on the manager of a transactional handler after the handler had ended. */
export class TransactionOverError extends RatchetError {
  override readonly code = 'TRANSACTION_OVER';

  constructor(owner: string, statement: unknown) {
    super(
      `TRANSACTION_OVER: ${owner}: the handler has ended, and so has its transaction; not sent: ${showValue(statement, 200)}; ` +
        'await everything that the handler starts on ctx.manager',
    );
  }
}
