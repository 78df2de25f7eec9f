import { startEmbeddedPostgres } from 'nestjs-ratchet/embedded';
import pg from 'pg';
import { type SampleOptions } from './sample-options.js';
import { ENGINE_SCHEMA, SHOP_SCHEMA } from './schemas.js';

/** The database of this start. */
export interface SampleDatabase {
  readonly url: string;
  /** Whose it is, for the first line that the sample prints. */
  readonly label: string;
  close(): Promise<void>;
}

/** The user's PostgreSQL when DATABASE_URL names one, else an embedded server. A server that a killed start left behind is taken over. */
export async function openDatabase(options: SampleOptions): Promise<SampleDatabase> {
  const own = process.env['DATABASE_URL'];
  const embedded = own ? undefined : await startEmbeddedPostgres({ dataDir: options.dataDir });
  const url = own ?? embedded?.url ?? '';
  const guard = await prepare(url, options);
  return {
    url,
    label: embedded ? `embedded PostgreSQL (${options.dataDir})` : 'your PostgreSQL (DATABASE_URL)',
    async close() {
      await guard.end();
      await embedded?.stop();
    },
  };
}

/** Makes the shop's schema. The connection stays open: it holds the lock that keeps a second start out, until this process ends in whatever way. */
async function prepare(url: string, options: SampleOptions): Promise<pg.Client> {
  const guard = new pg.Client({ connectionString: url, application_name: 'ratchet-sample' });
  await guard.connect();
  const { rows } = await guard.query<{ free: boolean }>(
    `select pg_try_advisory_lock(hashtext('ratchet-sample')) as free`,
  );
  if (!rows[0]?.free) {
    await guard.end();
    throw new Error('the sample is already running on this database');
  }
  if (options.reset) await guard.query(`drop schema if exists ${ENGINE_SCHEMA}, ${SHOP_SCHEMA} cascade`);
  await guard.query(`create schema if not exists ${SHOP_SCHEMA}`);
  return guard;
}
