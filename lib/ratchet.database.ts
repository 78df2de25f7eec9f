import { type ModulesContainer } from '@nestjs/core';
import { type ClientConfig } from 'pg';
import { type DataSource } from 'typeorm';
import { findDataSource } from './ratchet.data-source.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { clientConfigOf, connectionConfigOf } from './store/postgres/connections/connection-config.js';
import { DataSourceSqlClient } from './store/postgres/connections/data-source-sql-client.js';
import { PoolSqlClient } from './store/postgres/connections/pool-sql-client.js';
import { type SqlClient } from './store/sql-client.js';

/** The way to the database, whichever of the three the options chose. */
export interface RatchetDatabaseLink {
  /** For what the app asks: its own DataSource, or a pool. */
  readonly client: SqlClient;
  /** For the engine's own connections, asked anew for each. */
  readonly engine: () => Promise<ClientConfig>;
  /** The app's, which transactions may be enlisted from. */
  readonly dataSource: DataSource | undefined;
  /** Closes what was opened here: the pool, the embedded server. Never the app's DataSource. Idempotent. */
  close(): Promise<void>;
}

export async function openDatabase(
  options: ResolvedOptions,
  modules: ModulesContainer,
): Promise<RatchetDatabaseLink> {
  const { database } = options;
  switch (database.kind) {
    case 'dataSource': {
      const dataSource = await findDataSource(database.dataSource, modules);
      const client = new DataSourceSqlClient(dataSource);
      return { client, engine: connectionConfigOf(dataSource), dataSource, close: () => client.close() };
    }
    case 'connection':
      return pooled(clientConfigOf(database.settings), options);
    case 'embedded': {
      // Only here: the package that it needs is an optional peer.
      const { startEmbeddedPostgres } = await import('./embedded/index.js');
      const server = await startEmbeddedPostgres({ dataDir: database.dataDir, port: database.port });
      return pooled(clientConfigOf(server.url), options, () => server.stop());
    }
  }
}

function pooled(
  engine: () => Promise<ClientConfig>,
  options: ResolvedOptions,
  stop?: () => Promise<void>,
): RatchetDatabaseLink {
  const client = new PoolSqlClient(engine, options.pool.client);
  const close = async (): Promise<void> => {
    await client.close();
    await stop?.();
  };
  return { client, engine, dataSource: undefined, close };
}
