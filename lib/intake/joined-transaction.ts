import { randomUUID } from 'node:crypto';
import { TransactionNotActiveError } from '../errors/enqueue-errors.js';
import { type StoreTransaction } from '../store/job-store.js';
import { type TransactionEnd } from './transaction-end.js';
import { TransactionLevel } from './transaction-level.js';
import { type QueryRunnerShape } from './typeorm-shapes.js';

/**
 * One transaction or savepoint of a caller, from the first enqueue that meant it to its end. It carries the mark by which
 * the store tells it from whatever the connection does later.
 */
export class JoinedTransaction implements StoreTransaction {
  readonly mark = randomUUID();
  #marked: Promise<unknown> = Promise.resolve();
  #rolledBack = false;

  /** @param end - of the whole transaction, also when this is a savepoint. */
  constructor(
    readonly runner: QueryRunnerShape,
    readonly end: TransactionEnd,
    private readonly level = new TransactionLevel(undefined),
  ) {}

  /** What was written is rolled back, with it or with what it is part of. Savepoints that are sent as text are not heard of. */
  get isUndone(): boolean {
    return this.level.isUndone;
  }

  async query(text: string, parameters: readonly unknown[]): Promise<Record<string, unknown>[]> {
    // Structured: otherwise UPDATE and DELETE … RETURNING answer with [rows, count].
    const { records } = await this.runner.query(text, [...parameters], true);
    return records ?? [];
  }

  /**
   * Has the transaction marked. Sent at once, whatever else waits for the connection: only what is sent during the call is
   * certain to reach the transaction that the caller has in mind.
   */
  enlist(send: (transaction: StoreTransaction) => Promise<unknown>): void {
    this.#marked = send(this);
    // Whoever writes hears of it; there may be nobody.
    this.#marked.catch(() => undefined);
  }

  /** Its rollback was asked for: what still waits must not be sent. */
  rollBack(): void {
    this.#rolledBack = true;
  }

  /** @throws TransactionNotActiveError once a rollback was asked for. */
  async requireOpen(): Promise<void> {
    await this.#marked;
    if (this.#rolledBack) throw TransactionNotActiveError.ended();
  }
}
