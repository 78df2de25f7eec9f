import { type ClientConfig } from 'pg';
import { TransactionNotActiveError } from '../../errors/enqueue-errors.js';
import { type StoreTransaction } from '../job-store.js';
import { type Row, type SqlClient, type Statement } from '../sql-client.js';
import { toStoreError } from './connections/classify-fault.js';
import { EngineConnections } from './connections/engine-connections.js';
import { quoteSchema } from './schema-name.js';
import { isStalePlan } from './stale-plan.js';

/** Makes a statement for a quoted schema. */
export type MakeStatement = (schema: string) => Statement;

/** A statement that writes for a caller. `marked` takes the transaction's mark as one parameter more, and minds it. */
export interface MarkableStatement {
  readonly plain: MakeStatement;
  readonly marked: MakeStatement;
}

export interface PostgresSessionOptions {
  readonly schema: string;
  /** Settings for the engine's own connections; asked for each connect. */
  readonly engine: () => Promise<ClientConfig>;
  /** The application's side. */
  readonly client: SqlClient;
  readonly exchangeConnections: number;
  readonly nodeLabel: string;
}

/** What every part of the PostgreSQL store works with: the schema, the two sides' connections, the clock's offset. */
export class PostgresSession {
  /** Quoted. */
  readonly schema: string;
  readonly schemaName: string;
  readonly engine: EngineConnections;
  readonly engineConfig: () => Promise<ClientConfig>;
  /** Added to the database's clock in every statement; 0 outside of tests. */
  offsetMs = 0;
  readonly #client: SqlClient;
  readonly #statements = new Map<MakeStatement, Statement>();

  constructor(options: PostgresSessionOptions) {
    this.schema = quoteSchema(options.schema);
    this.schemaName = options.schema;
    this.#client = options.client;
    this.engineConfig = options.engine;
    this.engine = new EngineConnections(options.engine, options.exchangeConnections, options.nodeLabel);
  }

  /** A statement's text for this schema, made once. */
  statement(make: MakeStatement): Statement {
    const made = this.#statements.get(make) ?? make(this.schema);
    this.#statements.set(make, made);
    return made;
  }

  /** A heartbeat: on a connection of its own, which nothing that waits can delay. */
  beat(make: MakeStatement, parameters: readonly unknown[]): Promise<Row[]> {
    return this.engine.heartbeat.query(this.statement(make), parameters);
  }

  service(make: MakeStatement, parameters: readonly unknown[] = []): Promise<Row[]> {
    return this.engine.service.query(this.statement(make), parameters);
  }

  /**
   * On the caller's transaction when there is one, else on the application's side. A text that is put together for one
   * question comes as a statement, and is not kept.
   */
  async app(
    make: MakeStatement | Statement,
    parameters: readonly unknown[] = [],
    transaction?: StoreTransaction,
  ): Promise<Row[]> {
    const statement = typeof make === 'function' ? this.statement(make) : make;
    try {
      return transaction
        ? await transaction.query(statement.text, parameters)
        : await this.#client.query(statement, parameters);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** As {@link app}, for questions that look into days of history, which retention may drop meanwhile. */
  async read(make: MakeStatement | Statement, parameters: readonly unknown[]): Promise<Row[]> {
    try {
      return await this.app(make, parameters);
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      return this.app(make, parameters);
    }
  }

  /**
   * As {@link app}, for what writes: in a transaction with a mark it writes there or nowhere.
   *
   * @throws TransactionNotActiveError when that transaction is over.
   */
  async write(
    { plain, marked }: MarkableStatement,
    parameters: readonly unknown[],
    transaction?: StoreTransaction,
  ): Promise<Row[]> {
    if (transaction?.mark === undefined) return this.app(plain, parameters, transaction);
    const rows = await this.app(marked, [...parameters, transaction.mark], transaction);
    if (rows.some(({ id }) => id === null)) throw TransactionNotActiveError.ended();
    return rows;
  }

  /** A transaction of our own on the application's side. */
  async transaction<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    try {
      return await this.#client.transaction(work);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.engine.close(), this.#client.close()]);
  }
}
