import { type DataSource, type QueryRunner } from 'typeorm';
import { describeError } from '../../../errors/describe-error.js';
import { StoreClosedError } from '../../../errors/store-errors.js';
import { type StoreTransaction } from '../../job-store.js';
import { type Row, type SqlClient, type Statement } from '../../sql-client.js';
import { StoreError } from '../../store-fault.js';
import { within } from './sockets.js';

/** A pool may keep its callers waiting for ever, and does when each of its connections waits for one of them. */
const CONNECT_TIMEOUT_MS = 10_000;

/** The application's own TypeORM DataSource (0.3 and 1.x). Never closes it. */
export class DataSourceSqlClient implements SqlClient {
  #closed = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly connectTimeoutMs = CONNECT_TIMEOUT_MS,
  ) {}

  query(statement: Statement, parameters: readonly unknown[] = []): Promise<Row[]> {
    return this.#use((runner) => run(runner, statement.text, parameters));
  }

  transaction<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    return this.#use(async (runner) => {
      await runner.startTransaction();
      try {
        const result = await work({ query: (text, parameters) => run(runner, text, parameters) });
        await runner.commitTransaction();
        return result;
      } catch (error) {
        // The first error says what happened; a rollback that fails too means that the connection is gone.
        if (runner.isTransactionActive) await runner.rollbackTransaction().catch(() => undefined);
        throw error;
      }
    });
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  async #use<T>(work: (runner: QueryRunner) => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreClosedError();
    const runner = await connectedRunner(this.dataSource, this.connectTimeoutMs);
    try {
      return await work(runner);
    } finally {
      await runner.release();
    }
  }
}

/** The part of pg's pool that is used of it, by shape. */
interface Pool {
  on(event: 'connect', listener: (client: { on(event: 'error', listener: () => void): void }) => void): void;
}

/** Whose connections are listened to from their first moment. */
const heard = new WeakSet<object>();

/**
 * The pool listens to connections that are idle, TypeORM to those that it has handed out. One that the server ends in the very
 * packet that ends the connect falls between the two, and would end the process. Nothing is swallowed: what is sent on such a
 * connection is rejected.
 */
function hearLosses(dataSource: DataSource): void {
  const { master } = dataSource.driver as { master?: Partial<Pool> };
  if (!master || typeof master.on !== 'function' || heard.has(master)) return;
  heard.add(master);
  master.on('connect', (client) => client.on('error', () => undefined));
}

/** A runner that has its connection. */
export async function connectedRunner(
  dataSource: DataSource,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<QueryRunner> {
  hearLosses(dataSource);
  const runner = dataSource.createQueryRunner();
  const connecting = runner.connect();
  if (!(await within(timeoutMs, connecting))) {
    // A runner that is released before it has its connection never gives that connection back.
    const giveBack = (): Promise<void> => runner.release();
    void connecting.then(giveBack, giveBack);
    throw noneFree(`within ${String(timeoutMs)} ms`);
  }
  try {
    await connecting.catch(rethrowNamed);
    return runner;
  } catch (error) {
    await runner.release();
    throw error;
  }
}

/** What the pool says when its own limit strikes sounds like a server that is away. */
function rethrowNamed(error: unknown): never {
  const { message } = describeError(error);
  throw /timeout exceeded when trying to connect/.test(message)
    ? noneFree(`in time (${message})`, error)
    : error;
}

/** Nothing was sent. */
function noneFree(when: string, cause?: unknown): StoreError {
  return new StoreError(
    'unavailable',
    `STORE_FAULT: no connection of the DataSource's pool was to be had ${when}; inside a transaction give its manager as the ` +
      'option "transaction", or the call waits for a connection that your transactions hold; otherwise raise the poolSize',
    undefined,
    { cause },
  );
}

/** With the structured result `records` are rows for every command; the plain one differs between INSERT and UPDATE. */
export async function run(
  runner: Pick<QueryRunner, 'query'>,
  text: string,
  parameters: readonly unknown[],
): Promise<Row[]> {
  const result = await runner.query(text, parameters.length === 0 ? undefined : [...parameters], true);
  return (result.records as Row[] | undefined) ?? [];
}
