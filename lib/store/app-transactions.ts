import { type EntityManager } from 'typeorm';
import { type StoreTransaction } from './job-store.js';

/** What a transaction of the application is begun with. */
export interface AppTransactionRequest {
  /** Who runs in it: `InvoiceJobs.send`, for errors. */
  readonly owner: string;
  /** Undefined: as the application's connections have it. */
  readonly isolation: string | undefined;
  /** Asked on the same connection, before the transaction; with false there will be none. */
  readonly wanted: (connection: StoreTransaction) => Promise<boolean>;
}

/**
 * Transactions that the engine begins and ends on the application's own connections, and in which a handler works. Who has the
 * manager can end them too, by accident; that is told by their mark (see {@link StoreTransaction}).
 */
export interface AppTransactions {
  /** Connections of the application's pool. */
  readonly poolSize: number;
  /** Undefined: it was not wanted. Rejects with a {@link StoreError}. */
  begin(request: AppTransactionRequest): Promise<AppTransaction | undefined>;
}

export interface AppTransaction extends StoreTransaction {
  readonly mark: string;
  readonly manager: EntityManager;
  /**
   * From now on the manager sends nothing more for the handler; resolves when what it has sent is answered. Subscribers of the
   * application that hear of the end may still send, within its call.
   *
   * @throws TransactionEndedByHandlerError, NestedTransactionOpenError, TransactionCutOffError when it cannot be committed, and what
   * it was ended with meanwhile.
   */
  close(): Promise<void>;
  /**
   * Commits. `last` is called right before, when nobody else sends anything any more. Rejects when it is rolled back for certain,
   * with what `last` rejected with, too.
   */
  commit(last: () => Promise<boolean>): Promise<CommitEnd>;
  /**
   * Rolls back what is not committed, and gives the connection back, or up. A statement that does not end soon is canceled. What the
   * manager sends from now on is refused with `reason`. Never rejects; bounded in time; idempotent.
   */
  end(reason?: Error): Promise<void>;
  /** The same, also in the middle of a commit, which stays in doubt: nobody waits for its answer any more. */
  abandon(reason: Error): Promise<void>;
}

/** `refused`: `last` said no, and nothing is committed. `inDoubt`: committed or not, only the database knows. */
export type CommitEnd = 'committed' | 'refused' | { readonly inDoubt: unknown };
