import { TransactionNotActiveError } from '../errors/enqueue-errors.js';
import { ForeignTransactionError, TransactionReleasedError } from '../errors/intake-errors.js';
import { type StoreTransaction } from '../store/job-store.js';
import { type JoinedTransaction } from './joined-transaction.js';
import {
  dataSourceOf,
  type DataSourceShape,
  isEntityManager,
  isQueryRunner,
  type QueryRunnerShape,
} from './typeorm-shapes.js';

export interface EnlistmentOptions {
  /** The DataSource that Ratchet's own tables are reached by, if it shares the app's. */
  readonly dataSource: object | undefined;
  /** The module option `transaction`: the ambient transaction of @Transactional users. */
  readonly ambient: (() => unknown) | undefined;
  /** Whether a transaction reaches the store's own tables; it must not fail the transaction. */
  readonly reaches: (transaction: StoreTransaction) => Promise<boolean>;
  /** What the runner is in now. */
  readonly join: (runner: QueryRunnerShape) => JoinedTransaction;
}

/**
 * Finds the caller's transaction: the EntityManager or QueryRunner that was given, or what the module option returns.
 * TypeORM 0.3 and 1.x alike, by shape.
 *
 * It never begins, ends or marks a transaction: it is the caller's.
 */
export class Enlistment {
  /** Further DataSources whose transactions were found to reach Ratchet's tables. */
  readonly #reaching = new WeakSet<DataSourceShape>();

  constructor(private readonly options: EnlistmentOptions) {}

  /**
   * The transaction to join, or `undefined` for none. Nothing is awaited: it is the one of the moment of the call.
   *
   * @param given - the `transaction` option of the call.
   * @throws TransactionNotActiveError when `given` is no manager or runner inside a transaction, or when the connection of
   *   that transaction is gone. A manager of the module option outside a transaction counts as none.
   * @throws TransactionReleasedError when the runner of `given` was released after its transaction.
   * @throws ForeignTransactionError when it is no transaction of PostgreSQL.
   */
  find(given: unknown): JoinedTransaction | undefined {
    const candidate = given ?? this.options.ambient?.();
    if (candidate === undefined || candidate === null) return undefined;
    const runner = runnerOf(candidate);
    if (!runner?.isTransactionActive) {
      if (given === undefined || given === null) return undefined;
      throw runner?.isReleased
        ? new TransactionReleasedError()
        : new TransactionNotActiveError(describe(candidate));
    }
    // TypeORM releases a runner whose connection was lost, and leaves its transaction marked as active.
    if (runner.isReleased) throw TransactionNotActiveError.cutOff();
    const source = dataSourceOf(runner);
    if (source && source.options.type !== 'postgres') throw new ForeignTransactionError(nameOf(source));
    return this.options.join(runner);
  }

  /** Whether the module option says that a transaction is under way. */
  isUnderWay(): boolean {
    return runnerOf(this.options.ambient?.())?.isTransactionActive === true;
  }

  /** @throws ForeignTransactionError when the transaction's database is not Ratchet's. */
  async requireReach(transaction: JoinedTransaction): Promise<void> {
    const source = dataSourceOf(transaction.runner);
    if (source === this.options.dataSource || !source || this.#reaching.has(source)) return;
    if (!(await this.options.reaches(transaction))) throw new ForeignTransactionError(nameOf(source));
    this.#reaching.add(source);
  }
}

function runnerOf(candidate: unknown): QueryRunnerShape | undefined {
  if (isQueryRunner(candidate)) return candidate;
  return isEntityManager(candidate) ? candidate.queryRunner : undefined;
}

function describe(candidate: unknown): string {
  if (typeof candidate !== 'object' || candidate === null) return typeof candidate;
  return isEntityManager(candidate) ? 'EntityManager' : candidate.constructor.name;
}

function nameOf({ options, driver }: DataSourceShape): string {
  const name = driver?.database;
  return typeof name === 'string' ? `${options.type} database "${name}"` : `${options.type} database`;
}
