import {
  dataSourceOf,
  type DataSourceShape,
  type QueryRunnerShape,
  type SubscriberShape,
} from './typeorm-shapes.js';

/** Called once, after the commit. What it throws is swallowed: a fault of ours must never reject a committed transaction. */
export type CommitListener = () => void;

/**
 * Tells when somebody else's TypeORM transaction was committed, by a subscriber in its DataSource.
 *
 * It is a hint and nothing may be correct because of it: a commit whose reply was lost is never announced. It hears only
 * query runners that were given to {@link AfterCommit.listen}, waits for nothing, and cannot throw.
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
    afterTransactionCommit: ({ queryRunner }) => this.#ended(queryRunner, true),
    afterTransactionRollback: ({ queryRunner }) => this.#ended(queryRunner, false),
  };

  /** Calls `listener` after the commit of the transaction that `runner` is in now; never, when it is rolled back. */
  listen(runner: QueryRunnerShape, listener: CommitListener): void {
    const source = dataSourceOf(runner);
    if (source) this.#watch(source);
    const listeners = this.#listeners.get(runner);
    if (listeners) listeners.push(listener);
    else this.#listeners.set(runner, [listener]);
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

  #watch(source: DataSourceShape): void {
    // Looked at each time: initialize() makes a new list.
    if (source.subscribers.includes(this.#subscriber)) return;
    // First in the list: a subscriber of the app that throws ends the round.
    source.subscribers.unshift(this.#subscriber);
    if (!this.#watched.some((reference) => reference.deref() === source))
      this.#watched.push(new WeakRef(source));
  }

  #ended(runner: object, committed: boolean): void {
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
