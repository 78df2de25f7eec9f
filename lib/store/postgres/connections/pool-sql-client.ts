import pg from 'pg';
import { StoreClosedError } from '../../../errors/store-errors.js';
import { type StoreTransaction } from '../../job-store.js';
import { type Row, type SqlClient, type Statement, type TransactionOptions } from '../../sql-client.js';
import { STATEMENT_GUARD_MS } from './pinned-settings.js';
import { plainTypes } from './plain-types.js';
import { destroySocket, guarded, within } from './sockets.js';

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * A small pool of our own, opened at first use: for `connection` and `database: 'embedded'`. A server that falls silent costs
 * a statement its time and the pool one socket, never the pool; closing is bounded in time too.
 */
export class PoolSqlClient implements SqlClient {
  #pool: Promise<pg.Pool> | undefined;
  readonly #open = new Set<pg.PoolClient>();
  #closed = false;

  constructor(
    private readonly config: () => Promise<pg.ClientConfig>,
    private readonly size: number,
    private readonly guardMs = STATEMENT_GUARD_MS,
  ) {}

  query(statement: Statement, parameters: readonly unknown[] = []): Promise<Row[]> {
    return this.#use(async (client) => {
      const { rows } = await guarded(
        client,
        this.guardMs,
        client.query<Row>({ ...statement, values: [...parameters] }),
      );
      return rows;
    });
  }

  transaction<T>(
    work: (transaction: StoreTransaction) => Promise<T>,
    { patient = false }: TransactionOptions = {},
  ): Promise<T> {
    return this.#use(async (client) => {
      const send = async (text: string, values: unknown[] = []): Promise<Row[]> => {
        const reply = client.query<Row>({ text, values });
        return (await (patient ? reply : guarded(client, this.guardMs, reply))).rows;
      };
      await send('begin');
      try {
        const result = await work({ query: (text, parameters) => send(text, [...parameters]) });
        await send('commit');
        return result;
      } catch (error) {
        await send('rollback').catch(() => undefined);
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pool = await this.#pool?.catch(() => undefined);
    if (!pool || pool.ending) return;
    // The pool waits for statements in flight, whose server may be gone.
    if (await within(CLOSE_TIMEOUT_MS, pool.end())) return;
    for (const client of this.#open) destroySocket(client);
  }

  /** After an error the connection is not used again: its session, or what it has prepared, may be of no more use. */
  async #use<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const pool = await this.#opened();
    const client = await pool.connect();
    let broken = true;
    try {
      const result = await work(client);
      broken = false;
      return result;
    } finally {
      client.release(broken);
    }
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
    pool.on('connect', (client) => {
      this.#open.add(client);
      // The pool listens to idle clients only: a loss between two statements of ours, or in the very packet that ends the
      // connect, would end the process.
      client.on('error', () => undefined);
    });
    pool.on('remove', (client) => this.#open.delete(client));
    return pool;
  }
}
