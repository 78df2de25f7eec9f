import { type MakeStatement } from '../postgres-session.js';

/**
 * `$1` the schema's name. A text that two connections share when both reach the same live table of the same server, and
 * `null` when there is no such table. Read from the catalog, which needs no privilege: `to_regclass` would fail on a schema
 * that the role may not use, and so end a caller's transaction.
 */
export const databaseIdentity: MakeStatement = () => ({
  text: `select (select d.oid::text || '/' || c.oid::text || '/' || extract(epoch from pg_postmaster_start_time())::text
           from pg_class c
           join pg_namespace n on n.oid = c.relnamespace
           join pg_database d on d.datname = current_database()
          where n.nspname = $1 and c.relname = 'job') as identity`,
});
