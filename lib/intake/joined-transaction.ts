import { randomUUID } from 'node:crypto';
import { TransactionNotActiveError } from '../errors/enqueue-errors.js';
import { type StoreTransaction } from '../store/job-store.js';
import { type QueryRunnerShape } from './typeorm-shapes.js';

/**
 * One transaction or savepoint of a caller, from the first enqueue that meant it to its end. It carries the mark by which
 * the store tells it from whatever the connection does later.
 */
export class JoinedTransaction implements StoreTransaction {
  readonly mark = randomUUID();
  #marked: Promise<void> = Promise.resolve();
  #rolledBack = false;

  constructor(readonly runner: QueryRunnerShape) {}

  async query(text: string, parameters: readonly unknown[]): Promise<Record<string, unknown>[]> {
    // Structured: otherwise UPDATE and DELETE … RETURNING answer with [rows, count].
    const { records } = await this.runner.query(text, [...parameters], true);
    return records ?? [];
  }

  /**
   * Has the transaction marked. Sent at once, whatever else waits for the connection: only what is sent during the call is
   * certain to reach the transaction that the caller has in mind.
   */
  enlist(send: (transaction: StoreTransaction) => Promise<void>): void {
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
