import { SchemaNameError } from '../../errors/store-errors.js';

const LONGEST_BYTES = 63;

/** A schema's name as statements need it: checked once, always quoted. */
export function quoteSchema(name: string): string {
  if (name === '') throw new SchemaNameError(name, 'is empty');
  if (Buffer.byteLength(name) > LONGEST_BYTES) throw new SchemaNameError(name, 'is longer than 63 bytes');
  if (name.includes('\0')) throw new SchemaNameError(name, 'contains a NUL character');
  if (name.startsWith('pg_'))
    throw new SchemaNameError(name, 'begins with "pg_", which PostgreSQL keeps for itself');
  return `"${name.replaceAll('"', '""')}"`;
}

/** A string as a literal of SQL text that is printed for people. */
export function quoteLiteral(value: string): string {
  const quoted = `'${value.replaceAll("'", "''")}'`;
  return value.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}
