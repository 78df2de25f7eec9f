import { quoteSchema, quoteLiteral } from '../schema-name.js';
import { MIGRATIONS } from './index.js';
import { type Migration } from './migration.js';

/** The table that remembers which steps a schema has. */
export function migrationTableSql(schema: string): string {
  return (
    `create table if not exists ${quoteSchema(schema)}.migration (version integer primary key, name text not null, ` +
    `oldest_node integer not null, applied_at timestamptz not null default now())`
  );
}

/** One step as SQL, with the row that records it. */
export function stepSql(schema: string, migration: Migration): string {
  const quoted = quoteSchema(schema);
  // A function: the name may contain what `replaceAll` takes for a pattern.
  const body = migration.sql.replaceAll('$schema$', () => quoted).trim();
  return (
    `${body}\ninsert into ${quoted}.migration (version, name, oldest_node) ` +
    `values (${String(migration.version)}, ${quoteLiteral(migration.name)}, ${String(migration.oldestNode)});`
  );
}

/**
 * The migrations as a script for an operator, from a schema at `fromVersion` (0: none) to this version.
 *
 * @example
 * ```ts
 * await writeFile('ratchet.sql', migrationSql('ratchet'));
 * ```
 */
export function migrationSql(schema = 'ratchet', fromVersion = 0): string {
  const missing = MIGRATIONS.filter((migration) => migration.version > fromVersion);
  const head = fromVersion === 0 ? [`create schema if not exists ${quoteSchema(schema)};`] : [];
  return [
    'begin;',
    ...head,
    `${migrationTableSql(schema)};`,
    ...missing.map((migration) => stepSql(schema, migration)),
    'commit;',
    '',
  ].join('\n');
}
