import { RatchetError } from './ratchet-error.js';

/** The DataSource is of another database. */
export class DataSourceUnsupportedError extends RatchetError {
  readonly code = 'DATA_SOURCE_UNSUPPORTED';

  constructor(type: string) {
    super(
      `DATA_SOURCE_UNSUPPORTED: dataSource: "${type}" is not supported; give a TypeORM DataSource of type "postgres"`,
    );
  }
}

/** PostgreSQL is older than 15. */
export class DatabaseVersionError extends RatchetError {
  readonly code = 'DATABASE_VERSION';

  constructor(version: string) {
    super(`DATABASE_VERSION: the server is PostgreSQL ${version}; Ratchet needs PostgreSQL 15 or later`);
  }
}

/** The database could not be reached at start, for as long as `startup.timeout` allows. */
export class DatabaseUnavailableError extends RatchetError {
  readonly code = 'DATABASE_UNAVAILABLE';
  override readonly retryable = true;

  constructor(waitedMs: number, reason: string, options: { cause: unknown }) {
    super(
      `DATABASE_UNAVAILABLE: the database cannot be used at start (waited ${String(Math.round(waitedMs))} ms): ${reason}; ` +
        `start it, or raise startup.timeout`,
      options,
    );
  }
}

/** The schema's name cannot be one of PostgreSQL. */
export class SchemaNameError extends RatchetError {
  readonly code = 'SCHEMA_NAME';

  constructor(name: string, reason: string) {
    super(
      `SCHEMA_NAME: schema: "${name}" ${reason}; any other name of 1 to 63 bytes works, it is always quoted`,
    );
  }
}

/** The schema lacks migrations, and this process may not run them. */
export class SchemaOlderError extends RatchetError {
  readonly code = 'SCHEMA_OLDER';

  constructor(schema: string, found: number, needed: number) {
    super(
      `SCHEMA_OLDER: schema: "${schema}" is at migration ${String(found)}, this version needs ${String(needed)}; ` +
        `set migrations to "auto", or run the SQL that migrationSql("${schema}", ${String(found)}) prints`,
    );
  }
}

/** The schema has been migrated by a version that this one cannot work beside. */
export class SchemaNewerError extends RatchetError {
  readonly code = 'SCHEMA_NEWER';

  constructor(schema: string, found: number, known: number) {
    super(
      `SCHEMA_NEWER: schema: "${schema}" is at migration ${String(found)}, this version knows ${String(known)} ` +
        `and cannot work with it; upgrade nestjs-ratchet in this process`,
    );
  }
}

/** The role may not create what a migration creates, or not even look at the schema. */
export class SchemaPrivilegeError extends RatchetError {
  readonly code = 'SCHEMA_PRIVILEGE';

  constructor(schema: string, needed: 'migrate' | 'use', reason: string, options: { cause: unknown }) {
    super(
      needed === 'migrate'
        ? `SCHEMA_PRIVILEGE: schema: "${schema}" cannot be migrated by this role: ${reason}; ` +
            `grant CREATE on the database, or let its owner run the SQL that migrationSql("${schema}") prints and set migrations to "check"`
        : `SCHEMA_PRIVILEGE: schema: "${schema}" is there, but this role may not use it: ${reason}; grant it USAGE on the schema ` +
            `and its sequences, SELECT, INSERT, UPDATE and DELETE on its tables, and EXECUTE on its functions`,
      options,
    );
  }
}

/** The store's clock was to be moved in production. */
export class TravelRefusedError extends RatchetError {
  readonly code = 'TRAVEL_REFUSED';

  constructor() {
    super(
      'TRAVEL_REFUSED: JobStore.travel: moving the clock is for tests; it is refused while NODE_ENV is "production"',
    );
  }
}

/** The node's row is not its own any more: another process has registered under the id, or the row is gone. */
export class NodeDeposedError extends RatchetError {
  readonly code = 'NODE_DEPOSED';

  constructor(
    id: string,
    /** Where the other process runs; undefined when there is no row: it has left again, or somebody deleted the row. */
    readonly by: { readonly host: string; readonly pid: number } | undefined,
  ) {
    const other = by
      ? `is registered by another process now (host ${by.host}, pid ${String(by.pid)})`
      : `has no row any more: another process registered under it and has left since, or somebody deleted the row`;
    super(`NODE_DEPOSED: node: "${id}" ${other}; give each process a nodeId of its own`);
  }
}

/** The store was used before `open` or after `close`. */
export class StoreClosedError extends RatchetError {
  readonly code = 'STORE_CLOSED';

  constructor() {
    super(
      'STORE_CLOSED: JobStore: it is closed; nothing can be asked of it after the application has shut down',
    );
  }
}
