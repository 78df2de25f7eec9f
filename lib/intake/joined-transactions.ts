import { TransactionNotActiveError } from '../errors/enqueue-errors.js';
import { type StoreTransaction } from '../store/job-store.js';
import { type TransactionBoundaries } from './after-commit.js';
import { JoinedTransaction } from './joined-transaction.js';
import { TransactionEnd } from './transaction-end.js';
import { TransactionLevel } from './transaction-level.js';
import { type QueryRunnerShape } from './typeorm-shapes.js';

/** A boundary that is sent as text, perhaps. Wrong guesses cost a statement. */
const BOUNDARY = /\b(?:savepoint|rollback|abort|commit)\b|(?:^|;)\s*(?:begin|start|end)\b/i;

/**
 * Keeps enqueues inside the transactions that they were made for, although they wait for each other: a connection does one
 * thing at a time, and keys are taken in call order.
 *
 * While they wait, the caller may ask for the transaction's end: one of them rejects in a `Promise.all`, and TypeORM sends
 * ROLLBACK. The next insert would then run behind it, on its own. So a commit and a savepoint wait for what was enqueued
 * before, after a rollback was asked for nothing more is sent, and the store refuses what comes too late all the same: a
 * caller may send ROLLBACK as text, and the events of TypeORM may be out of reach.
 *
 * A mark that was made behind a savepoint goes with it. So what is enqueued after a text that may be a boundary is marked
 * anew, and what was enqueued before it keeps the mark that it had: it is written where it was meant to be, or refused.
 */
export class JoinedTransactions implements TransactionBoundaries {
  /** By query runner: where an enqueue that is made now belongs. */
  readonly #current = new WeakMap<object, JoinedTransaction>();
  readonly #tails = new WeakMap<object, Promise<void>>();
  readonly #rollingBack = new WeakSet();
  readonly #ends = new WeakMap<object, TransactionEnd>();
  /** The innermost. */
  readonly #levels = new WeakMap<object, TransactionLevel>();

  /** @param enlist - has the store mark a transaction. */
  constructor(private readonly enlist: (transaction: StoreTransaction) => Promise<unknown>) {}

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
    const joined = new JoinedTransaction(runner, this.#endOf(runner, heard), this.#levelOf(runner, heard));
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

  /** Something of it failed, perhaps because its mark is gone: what is enqueued from now on does not rely on that. */
  doubt(joined: JoinedTransaction): void {
    if (this.#current.get(joined.runner) === joined) this.#current.delete(joined.runner);
  }

  beforeQuery(runner: object, text: unknown): void {
    if (this.#current.has(runner) && typeof text === 'string' && BOUNDARY.test(text))
      this.#current.delete(runner);
  }

  beforeStart(runner: object): Promise<void> | undefined {
    this.#forget(runner);
    this.#levels.set(runner, new TransactionLevel(this.#levels.get(runner)));
    return this.#tails.get(runner);
  }

  beforeCommit(runner: object): Promise<void> | undefined {
    return this.#tails.get(runner);
  }

  beforeRollback(runner: object): void {
    this.#current.get(runner)?.rollBack();
    this.#levels.get(runner)?.rollBack();
    this.#rollingBack.add(runner);
    // Nothing of it is sent any more, so nobody need wait for it.
    this.#tails.delete(runner);
  }

  afterEnd(runner: object): void {
    this.#forget(runner);
    const outer = this.#levels.get(runner)?.end();
    this.#levels.delete(runner);
    // A savepoint ends within a transaction that goes on.
    if ('isTransactionActive' in runner && runner.isTransactionActive) {
      if (outer) this.#levels.set(runner, outer);
      return;
    }
    this.#ends.get(runner)?.tell();
    this.#ends.delete(runner);
  }

  /** Savepoints of one transaction share it. */
  #endOf(runner: QueryRunnerShape, heard: boolean): TransactionEnd {
    const known = heard ? this.#ends.get(runner) : undefined;
    if (known && !known.isOver) return known;
    const end = new TransactionEnd(runner);
    this.#ends.set(runner, end);
    return end;
  }

  #levelOf(runner: QueryRunnerShape, heard: boolean): TransactionLevel {
    const known = heard ? this.#levels.get(runner) : undefined;
    const level = known ?? new TransactionLevel(undefined);
    this.#levels.set(runner, level);
    return level;
  }

  #forget(runner: object): void {
    this.#current.delete(runner);
    this.#rollingBack.delete(runner);
  }
}
