import pg from 'pg';
import { StoreClosedError } from '../../../errors/store-errors.js';
import { type StoreTransaction } from '../../job-store.js';
import { type Row, type SqlClient, type Statement } from '../../sql-client.js';
import { plainTypes } from './plain-types.js';
import { destroySocket, within } from './sockets.js';

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2_000;

/** A small pool of our own, opened at first use: for `connection` and `database: 'embedded'`. Closing it is bounded in time. */
export class PoolSqlClient implements SqlClient {
  #pool: Promise<pg.Pool> | undefined;
  readonly #open = new Set<pg.PoolClient>();
  #closed = false;

  constructor(
    private readonly config: () => Promise<pg.ClientConfig>,
    private readonly size: number,
  ) {}

  async query(statement: Statement, parameters: readonly unknown[] = []): Promise<Row[]> {
    const pool = await this.#opened();
    return (await pool.query<Row>({ ...statement, values: [...parameters] })).rows;
  }

  async transaction<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    const pool = await this.#opened();
    const client = await pool.connect();
    let broken = false;
    // The pool listens to idle clients only: a loss between two statements of ours would end the process.
    const onLoss = (): void => {
      broken = true;
    };
    client.on('error', onLoss);
    try {
      await client.query('begin');
      const result = await work({
        query: async (text, parameters) => (await client.query<Row>({ text, values: [...parameters] })).rows,
      });
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => (broken = true));
      throw error;
    } finally {
      client.off('error', onLoss);
      client.release(broken);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pool = await this.#pool?.catch(() => undefined);
    if (!pool || pool.ending) return;
    // The pool waits for statements in flight, whose server may be gone.
    if (await within(CLOSE_TIMEOUT_MS, pool.end())) return;
    for (const client of this.#open) destroySocket(client);
  }

  #opened(): Promise<pg.Pool> {
    if (this.#closed) return Promise.reject(new StoreClosedError());
    this.#pool ??= this.#create().catch((error: unknown) => {
      this.#pool = undefined;
      throw error;
    });
    return this.#pool;
  }

  async #create(): Promise<pg.Pool> {
    const config = await this.config();
    const pool = new pg.Pool({
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      ...config,
      types: plainTypes,
      max: this.size,
    });
    // An idle connection that dies is replaced by the pool; without a listener it would end the process.
    pool.on('error', () => undefined);
    pool.on('connect', (client) => this.#open.add(client));
    pool.on('remove', (client) => this.#open.delete(client));
    return pool;
  }
}
