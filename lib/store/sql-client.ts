import { type StoreTransaction } from './job-store.js';

/** A statement by name (named ones are prepared once per connection, where the client can). */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

export type Row = Record<string, unknown>;

export interface TransactionOptions {
  /** Its statements may take as long as they need (a migration): silence is no sign that the server is gone. */
  readonly patient?: boolean;
}

/**
 * Where statements of the application's side run: enqueues, questions, migrations. Never the engine's own connections, so
 * that an enqueue that waits for a key cannot stop an exchange. The caller's pg type parsers may have been changed, so
 * statements return text and JSON text only. Errors come as the driver throws them.
 */
export interface SqlClient {
  query(statement: Statement, parameters?: readonly unknown[]): Promise<Row[]>;
  /** Runs `work` in a transaction on one connection: commits when it resolves, rolls back when it rejects. */
  transaction<T>(
    work: (transaction: StoreTransaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /** Closes what the client opened itself. Idempotent. */
  close(): Promise<void>;
}
