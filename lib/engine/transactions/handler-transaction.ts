import { type EntityManager } from 'typeorm';
import { describeError } from '../../errors/describe-error.js';
import {
  TransactionBrokenError,
  TransactionCutOffError,
  TransactionEndedByHandlerError,
} from '../../errors/transaction-errors.js';
import { type DebugPoints } from '../../observability/debug-points.js';
import { type AppTransaction, type CommitEnd } from '../../store/app-transactions.js';
import { type ClaimedJob, type JobStore, type Settlement } from '../../store/job-store.js';
import { faultKindOf, type StoreError, type StoreFaultKind } from '../../store/store-fault.js';
import { claimKey } from '../outbox.js';
import { type Patience } from '../patience.js';
import { type Grace } from './grace.js';

/** PostgreSQL's in_failed_sql_transaction: a statement failed before. */
const IN_FAILED_TRANSACTION = '25P02';

/** What the last statement may meet that is nobody's fault: others wrote to the same rows, a lock was held, a day has no partition yet. */
const EXCUSED: readonly StoreFaultKind[] = ['rolled_back', 'unavailable', 'missing_partition'];

/** `excused`: rolled back for a reason that is not the handler's, and not too often yet. */
export type Completed = 'recorded' | 'lost' | { readonly excused: unknown };

export type SettlementWithin = Settlement & { readonly outcome: 'succeeded' | 'snoozed' };

export interface HandlerTransactionParts {
  readonly job: ClaimedJob;
  readonly owner: string;
  readonly transaction: AppTransaction;
  readonly store: JobStore;
  readonly debug: DebugPoints;
  readonly patience: Patience;
  readonly grace: Grace;
  /** Called once, when its connection is free again. */
  readonly onEnd: () => void;
}

/**
 * The transaction of one execution. It holds no lock on its job while the handler works, so that nobody waits for a handler: the row
 * is taken by the last statement, which records the outcome if the claim still stands, and the COMMIT follows at once.
 */
export class HandlerTransaction {
  readonly #parts: HandlerTransactionParts;
  #over = false;
  #isStrict = false;

  constructor(parts: HandlerTransactionParts) {
    this.#parts = parts;
  }

  get manager(): EntityManager {
    return this.#parts.transaction.manager;
  }

  /** Its snapshot stands from its first statement on: what others write to the job's row meanwhile makes its end fail. */
  get isStrict(): boolean {
    return this.#isStrict;
  }

  /** Marks it, so that it can be told from whatever the handler makes of the connection. Ends it when that fails. */
  async enlist(): Promise<void> {
    const { store, transaction } = this.#parts;
    try {
      const { isolation } = await store.enlist(transaction);
      this.#isStrict = isolation !== 'read committed' && isolation !== 'read uncommitted';
    } catch (error) {
      await transaction.end();
      throw error;
    }
  }

  /** Never rejects. `reason`: what a handler that goes on gets from its manager. */
  async rollBack(reason?: Error): Promise<void> {
    await this.#parts.transaction.end(reason);
    this.#ended();
  }

  /** Whatever it is doing, also a commit, which stays in doubt. Never rejects. */
  async abandon(reason: Error): Promise<void> {
    await this.#parts.transaction.abandon(reason);
    this.#ended();
  }

  #ended(): void {
    if (this.#over) return;
    this.#over = true;
    this.#parts.onEnd();
  }

  /**
   * Records the outcome and commits. `lost`: the claim no longer stood, and all is rolled back. `settlementOf` is asked when all that
   * the handler sent is answered: from then on only the database decides.
   *
   * @throws what kept it from being committed, once it is certain that it is rolled back.
   * @throws CalledOff when that cannot be learned any more.
   */
  async complete(settlementOf: () => SettlementWithin): Promise<Completed> {
    const { job, grace } = this.#parts;
    let fault: { readonly error: unknown } | undefined;
    try {
      const completed = await this.#commit(settlementOf, (error) => (fault = { error }));
      grace.forget(job.id);
      return completed;
    } catch (error) {
      if (fault?.error === error && (await this.#excuses(error, EXCUSED))) return { excused: error };
      grace.forget(job.id);
      throw this.#named(error);
    }
  }

  /**
   * After the rollback: whether what the handler threw is a fault that we mend, and not too often yet. A child that replaces another
   * writes history too, and may meet a day that has no partition.
   */
  excuses(error: unknown): Promise<boolean> {
    return this.#excuses(error, ['missing_partition']);
  }

  /** `onFault` is told what our own last statement met. */
  async #commit(
    settlementOf: () => SettlementWithin,
    onFault: (error: unknown) => void,
  ): Promise<'recorded' | 'lost'> {
    const { transaction, store, debug, job } = this.#parts;
    let settlement: SettlementWithin;
    const settle = async (): Promise<boolean> => {
      try {
        if (!(await store.settleWithin(transaction, settlement))) return false;
      } catch (error) {
        onFault(error);
        throw error;
      }
      await debug.reach('transaction.committing', job.id);
      return true;
    };
    let end: CommitEnd;
    try {
      await transaction.close();
      settlement = settlementOf();
      await debug.reach('transaction.settling', job.id);
      end = await transaction.commit(settle);
      await debug.reach('transaction.committed', job.id);
    } finally {
      await this.rollBack();
    }
    if (end === 'refused') return 'lost';
    return end === 'committed' ? 'recorded' : this.#fate(settlement, end.inDoubt);
  }

  async #excuses(error: unknown, kinds: readonly StoreFaultKind[]): Promise<boolean> {
    const { store, grace, job } = this.#parts;
    const kind = faultKindOf(error);
    if (!kinds.includes(kind) || !grace.take(job.id)) return false;
    // Only now: it waits for the lock of whoever writes history, as this transaction did.
    if (kind === 'missing_partition') await store.ensurePartitions(0).catch(() => undefined);
    return true;
  }

  /** The commit was not answered. The row's lock tells when it is over, and the rows tell how. */
  async #fate({ id, claimSeq, drop }: Settlement, cause: unknown): Promise<'recorded' | 'lost'> {
    const { patience, store, owner } = this.#parts;
    const claim = { id, claimSeq, ...(drop ? { drop } : {}) };
    const fate = await patience.until(
      'commit of a handler',
      () => store.fateOf(claim),
      claimKey(id, claimSeq),
    );
    if (fate === 'standing') throw new TransactionCutOffError(owner, { cause });
    return fate;
  }

  #named(error: unknown): unknown {
    const { owner } = this.#parts;
    if (describeError(error).code === 'TRANSACTION_NOT_ACTIVE')
      return new TransactionEndedByHandlerError(owner, 'a COMMIT or ROLLBACK of its own');
    if ((error as Partial<StoreError>).sourceCode === IN_FAILED_TRANSACTION)
      return new TransactionBrokenError(owner, { cause: error });
    return faultKindOf(error) === 'unknown' ? new TransactionCutOffError(owner, { cause: error }) : error;
  }
}
