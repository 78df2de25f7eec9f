import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A database of its own for a test file, on the run's server. */
export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  /** Runs SQL on a connection of the test's own. */
  query<Row extends object = Record<string, unknown>>(text: string, parameters?: unknown[]): Promise<Row[]>;
  /** A further connection, for held transactions. Closed by `drop`. */
  connect(): Promise<pg.Client>;
  /** Ends every other session of the database, as a failover or an administrator would. */
  terminateBackends(applicationLike?: string): Promise<number>;
  drop(): Promise<void>;
}

/** The run's server. */
export function serverUrl(): string {
  const url = process.env['RATCHET_TEST_DATABASE_URL'];
  if (!url) throw new Error('RATCHET_TEST_DATABASE_URL is not set: run the tests with `npm test`');
  return url;
}

async function admin<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl() });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export async function createTestDatabase(): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await admin((client) => client.query(`create database ${name}`));
  const url = new URL(serverUrl());
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 2, application_name: 'ratchet-test' });
  pool.on('error', () => {});
  const clients: pg.Client[] = [];
  return {
    name,
    url: url.href,
    async query<Row extends object>(text: string, parameters: unknown[] = []) {
      return (await pool.query<Row>(text, parameters)).rows;
    },
    async connect() {
      const client = new pg.Client({ connectionString: url.href, application_name: 'ratchet-test' });
      client.on('error', () => {});
      await client.connect();
      clients.push(client);
      return client;
    },
    terminateBackends(applicationLike = '%') {
      return admin(async (client) => {
        const { rowCount } = await client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where datname = $1 and application_name like $2 and application_name <> 'ratchet-test' and pid <> pg_backend_pid()`,
          [name, applicationLike],
        );
        return rowCount ?? 0;
      });
    },
    async drop() {
      await Promise.all(clients.map((client) => client.end().catch(() => {})));
      await pool.end();
      await admin((client) => client.query(`drop database if exists ${name} with (force)`));
    },
  };
}
