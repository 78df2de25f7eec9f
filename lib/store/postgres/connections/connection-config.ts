import { type ClientConfig } from 'pg';
import { type DataSource } from 'typeorm';
import { DataSourceUnsupportedError } from '../../../errors/store-errors.js';

/** Connection settings in TypeORM's words. */
export interface ConnectionSettings {
  readonly url?: string;
  readonly host?: string;
  readonly port?: number;
  readonly username?: string;
  readonly password?: string | (() => string | Promise<string>);
  readonly database?: string;
  readonly ssl?: boolean | object;
  readonly connectTimeoutMS?: number;
  /** Passed on to `pg`, without what concerns pools, timeouts and parsers. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** Settings in `extra` that are the application's own: pool sizes, timeouts of statements, type parsers, the name. */
const NOT_OURS = new Set([
  'max',
  'min',
  'poolSize',
  'idleTimeoutMillis',
  'maxUses',
  'maxLifetimeSeconds',
  'allowExitOnIdle',
  'Client',
  'Promise',
  'verify',
  'log',
  'onConnect',
  'types',
  'binary',
  'parseInputDatesAsUTC',
  'query_timeout',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'application_name',
  'fallback_application_name',
]);

/**
 * The connection settings of a DataSource, and nothing else of it (never entities, `synchronize`, `dropSchema`, logging or
 * pool sizes). Of a replicated one the master's. A `password` function is passed on and so called for each connect.
 *
 * @throws DataSourceUnsupportedError when the DataSource is not of type `postgres`.
 */
export function connectionConfigOf(dataSource: DataSource): () => Promise<ClientConfig> {
  const options = dataSource.options as { type: string; replication?: { master: ConnectionSettings } };
  if (options.type !== 'postgres') throw new DataSourceUnsupportedError(options.type);
  const common = options as ConnectionSettings;
  const endpoint = options.replication?.master ?? common;
  return clientConfigOf({
    ...endpoint,
    ...(common.connectTimeoutMS === undefined ? {} : { connectTimeoutMS: common.connectTimeoutMS }),
    ...(common.extra === undefined ? {} : { extra: common.extra }),
  });
}

/** The same for settings of our own, or a URL. */
export function clientConfigOf(settings: ConnectionSettings | string): () => Promise<ClientConfig> {
  const given: ConnectionSettings = typeof settings === 'string' ? { url: settings } : settings;
  const extra = Object.entries(given.extra ?? {}).filter(([key]) => !NOT_OURS.has(key));
  const { url, options } = splitUrl(given.url);
  const config = {
    connectionString: url,
    host: given.host,
    port: given.port,
    user: given.username,
    password: given.password,
    database: given.database,
    ssl: given.ssl,
    connectionTimeoutMillis: given.connectTimeoutMS,
    options,
    ...Object.fromEntries(extra),
  };
  // pg reads its environment variables for what is absent, and `undefined` would count as given.
  const present = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
  return () => Promise.resolve({ ...present });
}

/** pg lets a URL's parameters win over everything else, ours included: they are taken out of it. */
function splitUrl(url: string | undefined): { url: string | undefined; options: string | undefined } {
  const at = url?.indexOf('?') ?? -1;
  if (url === undefined || at < 0) return { url, options: undefined };
  const parameters = new URLSearchParams(url.slice(at + 1));
  const options = parameters.get('options') ?? undefined;
  for (const name of [...parameters.keys()]) {
    if (name === 'options' || NOT_OURS.has(name)) parameters.delete(name);
  }
  const rest = parameters.toString();
  return { url: url.slice(0, at) + (rest && `?${rest}`), options };
}
