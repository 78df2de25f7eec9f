import {
  dataSourceOf,
  type DataSourceShape,
  type QueryRunnerShape,
  type SubscriberShape,
} from './typeorm-shapes.js';

/** Called once, after the commit. What it throws is swallowed: a fault of ours must never reject a committed transaction. */
export type CommitListener = () => void;

/** Hears of the beginnings and ends of transactions and savepoints, of every query runner of a DataSource that is watched. */
export interface TransactionBoundaries {
  /** A transaction or a savepoint is asked for. It begins when the promise has resolved; it must not reject. */
  beforeStart(runner: object): Promise<void> | undefined;
  /** A commit, or the release of a savepoint, is asked for. The same holds. */
  beforeCommit(runner: object): Promise<void> | undefined;
  beforeRollback(runner: object): void;
  /** Committed, released or rolled back. */
  afterEnd(runner: object): void;
  /** Whatever the runner sends, right before it does. Must not throw. */
  beforeQuery(runner: object, text: unknown): void;
}

/**
 * Tells when somebody else's TypeORM transaction was committed, by a subscriber in its DataSource.
 *
 * It is a hint and nothing may be correct because of it: a commit whose reply was lost is never announced. It tells
 * only of query runners that were given to {@link AfterCommit.listen}, and cannot throw. After a commit nobody waits for it.
 *
 * - A released savepoint announces itself as a commit while the transaction is still active: ignored.
 * - A rollback to a savepoint keeps the listeners of the outer transaction, and those of the inner one too: a wakeup too
 *   many costs one look at an empty queue.
 * - A commit that fails is followed by a rollback: the listeners are dropped.
 */
export class AfterCommit {
  readonly #listeners = new WeakMap<object, CommitListener[]>();
  #watched: WeakRef<DataSourceShape>[] = [];

  readonly #subscriber: SubscriberShape = {
    beforeTransactionStart: ({ queryRunner }) => this.boundaries?.beforeStart(queryRunner),
    beforeTransactionCommit: ({ queryRunner }) => this.boundaries?.beforeCommit(queryRunner),
    beforeTransactionRollback: ({ queryRunner }) => this.boundaries?.beforeRollback(queryRunner),
    afterTransactionCommit: ({ queryRunner }) => this.#ended(queryRunner, true),
    afterTransactionRollback: ({ queryRunner }) => this.#ended(queryRunner, false),
    beforeQuery: ({ queryRunner, query }) => this.boundaries?.beforeQuery(queryRunner, query),
  };

  constructor(private readonly boundaries?: TransactionBoundaries) {}

  /** Calls `listener` after the commit of the transaction that `runner` is in now; never, when it is rolled back. */
  listen(runner: QueryRunnerShape, listener: CommitListener): void {
    this.watch(runner);
    const listeners = this.#listeners.get(runner);
    if (listeners) listeners.push(listener);
    else this.#listeners.set(runner, [listener]);
  }

  /**
   * Sees to it that the events of `runner` are heard from now on.
   *
   * @returns whether they were heard before: false at first, when `initialize()` has made a new list, and always for a
   *   DataSource whose list takes nothing in.
   */
  watch(runner: QueryRunnerShape): boolean {
    const source = dataSourceOf(runner);
    const subscribers = source?.subscribers;
    if (!source || !Array.isArray(subscribers)) return false;
    if (subscribers.includes(this.#subscriber)) return true;
    // First in the list: a subscriber of the app that throws ends the round.
    if (Object.isExtensible(subscribers)) subscribers.unshift(this.#subscriber);
    if (!this.#watched.some((reference) => reference.deref() === source))
      this.#watched.push(new WeakRef(source));
    return false;
  }

  /** Takes the subscriber out of every DataSource again. */
  close(): void {
    for (const reference of this.#watched) {
      const subscribers = reference.deref()?.subscribers;
      const index = subscribers?.indexOf(this.#subscriber) ?? -1;
      if (index >= 0) subscribers?.splice(index, 1);
    }
    this.#watched = [];
  }

  #ended(runner: object, committed: boolean): void {
    this.boundaries?.afterEnd(runner);
    const listeners = this.#listeners.get(runner);
    if (!listeners || ('isTransactionActive' in runner && runner.isTransactionActive)) return;
    this.#listeners.delete(runner);
    if (!committed) return;
    for (const listener of listeners) {
      try {
        listener();
      } catch {
        // See CommitListener.
      }
    }
  }
}
