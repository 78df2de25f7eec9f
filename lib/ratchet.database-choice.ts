import { type InjectionToken } from '@nestjs/common';
import { type DataSource } from 'typeorm';
import { DEFAULTS } from './ratchet.defaults.js';
import { type OptionReader, isPlainObject } from './ratchet.option-reader.js';
import { type ConnectionSettings } from './store/postgres/connections/connection-config.js';

/** The way to the database, as the options chose it. */
export type DatabaseChoice =
  | { readonly kind: 'dataSource'; readonly dataSource: DataSource | InjectionToken }
  | { readonly kind: 'connection'; readonly settings: ConnectionSettings }
  | { readonly kind: 'embedded'; readonly dataDir: string; readonly port: number | undefined };

/** Reads `dataSource`, `connection` or `database`: exactly one must be there. */
export function readDatabase(reader: OptionReader): DatabaseChoice {
  const ways = ['dataSource', 'connection', 'database'].filter((key) => reader.has(key));
  if (ways.length !== 1) {
    const found = ways.length === 0 ? 'none of them is given' : `${ways.join(' and ')} are given`;
    reader.refuse('dataSource, connection, database', `${found}; give exactly one`);
    return { kind: 'dataSource', dataSource: 'default' };
  }
  if (reader.has('connection')) return { kind: 'connection', settings: readConnection(reader) };
  if (reader.has('database')) return readEmbedded(reader);
  return { kind: 'dataSource', dataSource: readDataSource(reader) };
}

function readDataSource(reader: OptionReader): DataSource | InjectionToken {
  const value = reader.peek('dataSource');
  const fits =
    (typeof value === 'string' && value !== '') ||
    typeof value === 'symbol' ||
    typeof value === 'function' ||
    (isPlainObject(value) && 'options' in value && 'createQueryRunner' in value);
  if (!fits)
    reader.wrong('dataSource', "'default', a name, an injection token, or a TypeORM DataSource instance");
  return value as DataSource | InjectionToken;
}

const POSTGRES_URL = 'a URL such as postgres://user:password@host:5432/database';

function isPostgresUrl(value: string): boolean {
  return /^postgres(ql)?:\/\//.test(value) && URL.canParse(value);
}

function readConnection(reader: OptionReader): ConnectionSettings {
  if (typeof reader.peek('connection') === 'string') {
    // Not shown when it is wrong: it may hold a password.
    const url = reader.peek('connection') as string;
    if (!isPostgresUrl(url)) reader.refuse('connection', `is no PostgreSQL URL; allowed: ${POSTGRES_URL}`);
    return { url };
  }
  const given = reader.section('connection');
  const parts = readParts(given);
  const url = given.peek('url');
  if (url !== undefined) {
    if (Object.keys(parts).length > 0)
      given.refuse('url', 'is given beside its parts; give one or the other');
    if (typeof url !== 'string' || !isPostgresUrl(url)) {
      given.refuse('url', `is no PostgreSQL URL; allowed: ${POSTGRES_URL}`);
    }
  }
  const extra = given.peek('extra');
  if (extra !== undefined && !isPlainObject(extra)) given.wrong('extra', 'an object, passed on to pg');
  const read = { ...parts, url, extra, ssl: given.peek('ssl') };
  given.finish();
  return present(read);
}

function readParts(given: OptionReader): Record<string, unknown> {
  const anyText = (key: string): string | undefined =>
    given.text(key, (value) => value !== '', 'a text that is not empty');
  const password = given.peek('password');
  if (password !== undefined && typeof password !== 'string' && typeof password !== 'function') {
    given.refuse('password', 'is neither a text nor a function that returns one');
  }
  return present({
    host: anyText('host'),
    port: given.whole('port', undefined, 1, 65_535),
    username: anyText('username'),
    password,
    database: anyText('database'),
  });
}

function present(settings: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

function readEmbedded(reader: OptionReader): DatabaseChoice {
  const chosen: DatabaseChoice = { kind: 'embedded', dataDir: DEFAULTS.embedded.dataDir, port: undefined };
  const value = reader.peek('database');
  if (value === 'embedded') return chosen;
  if (!isPlainObject(value)) {
    reader.wrong('database', "'embedded', or { embedded: { dataDir, port } }");
    return chosen;
  }
  const database = reader.section('database');
  const embedded = database.section('embedded');
  const dataDir = embedded.text(
    'dataDir',
    (text) => text !== '' && !text.includes('\0'),
    'the path of a folder',
  );
  const port = embedded.whole('port', undefined, 1, 65_535);
  embedded.finish();
  database.finish();
  return { kind: 'embedded', dataDir: dataDir ?? chosen.dataDir, port };
}
