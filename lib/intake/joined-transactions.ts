import { TransactionNotActiveError } from '../errors/enqueue-errors.js';
import { type StoreTransaction } from '../store/job-store.js';
import { type TransactionBoundaries } from './after-commit.js';
import { JoinedTransaction } from './joined-transaction.js';
import { type QueryRunnerShape } from './typeorm-shapes.js';

/**
 * Keeps enqueues inside the transactions that they were made for, although they wait for each other: a connection does one
 * thing at a time, and keys are taken in call order.
 *
 * While they wait, the caller may ask for the transaction's end: one of them rejects in a `Promise.all`, and TypeORM sends
 * ROLLBACK. The next insert would then run behind it, on its own. So a commit and a savepoint wait for what was enqueued
 * before, after a rollback was asked for nothing more is sent, and the store refuses what comes too late all the same: a
 * caller may send ROLLBACK as text, and the events of TypeORM may be out of reach.
 */
export class JoinedTransactions implements TransactionBoundaries {
  /** By query runner: where an enqueue that is made now belongs. */
  readonly #current = new WeakMap<object, JoinedTransaction>();
  readonly #tails = new WeakMap<object, Promise<void>>();
  readonly #rollingBack = new WeakSet();

  /** @param enlist - has the store mark a transaction. */
  constructor(private readonly enlist: (transaction: StoreTransaction) => Promise<void>) {}

  /**
   * The transaction or savepoint that the runner is in at the moment of the call.
   *
   * @param heard - whether its boundaries were told so far; otherwise every call has to find out anew.
   * @throws TransactionNotActiveError while it is being rolled back.
   */
  of(runner: QueryRunnerShape, heard: boolean): JoinedTransaction {
    if (heard && this.#rollingBack.has(runner)) throw TransactionNotActiveError.ended();
    const known = heard ? this.#current.get(runner) : undefined;
    if (known) return known;
    const joined = new JoinedTransaction(runner);
    this.#current.set(runner, joined);
    joined.enlist(this.enlist);
    return joined;
  }

  /** Runs `work` when all that was enqueued before on that connection is done. Rejects as `work` does. */
  inTurn<T>({ runner }: JoinedTransaction, work: () => Promise<T>): Promise<T> {
    const turn = (this.#tails.get(runner) ?? Promise.resolve()).then(work);
    const tail = turn.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(runner, tail);
    return turn;
  }

  beforeStart(runner: object): Promise<void> | undefined {
    this.#forget(runner);
    return this.#tails.get(runner);
  }

  beforeCommit(runner: object): Promise<void> | undefined {
    return this.#tails.get(runner);
  }

  beforeRollback(runner: object): void {
    this.#current.get(runner)?.rollBack();
    this.#rollingBack.add(runner);
    // Nothing of it is sent any more, so nobody need wait for it.
    this.#tails.delete(runner);
  }

  afterEnd(runner: object): void {
    this.#forget(runner);
  }

  #forget(runner: object): void {
    this.#current.delete(runner);
    this.#rollingBack.delete(runner);
  }
}
