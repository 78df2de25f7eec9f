import { Logger } from '@nestjs/common';
import { describeError } from '../../../errors/describe-error.js';
import {
  DatabaseVersionError,
  SchemaNewerError,
  SchemaOlderError,
  SchemaPrivilegeError,
} from '../../../errors/store-errors.js';
import { type StoreTransaction } from '../../job-store.js';
import { type SqlClient } from '../../sql-client.js';
import { toStoreError } from '../connections/classify-fault.js';
import { quoteSchema } from '../schema-name.js';
import { MIGRATIONS, SCHEMA_VERSION } from './index.js';
import { migrationTableSql, stepSql } from './migration-sql.js';

export type MigrationMode = 'auto' | 'check' | 'off';

const OLDEST_SERVER = 150_000;

/**
 * Brings the schema to this version, or says precisely why not. All of it happens in one transaction under a
 * transaction-level advisory lock: nodes that start together wait for the first one, behind a pooler too, and a step that
 * fails leaves nothing behind.
 */
export class Migrator {
  static readonly #logger = new Logger('RatchetStore');

  constructor(
    private readonly client: SqlClient,
    private readonly schema: string,
    private readonly mode: MigrationMode,
  ) {
    quoteSchema(schema);
  }

  /**
   * @throws DatabaseVersionError, SchemaOlderError, SchemaNewerError, SchemaPrivilegeError, or StoreError when the database
   * is away.
   */
  async migrate(): Promise<void> {
    if (this.mode === 'off') return;
    // The usual start finds everything in place and takes no lock.
    const found = await this.#naming('use', () =>
      this.#versionOf((text, parameters) => this.client.query({ text }, parameters)),
    );
    if (found >= SCHEMA_VERSION) return;
    if (this.mode === 'check') throw new SchemaOlderError(this.schema, found, SCHEMA_VERSION);
    await this.#naming('migrate', () =>
      this.client.transaction((transaction) => this.#apply(transaction), { patient: true }),
    );
  }

  async #apply(transaction: StoreTransaction): Promise<void> {
    // Before the first snapshot: under REPEATABLE READ a node that waited for the lock would not see what was made meanwhile.
    await transaction.query('set transaction isolation level read committed', []);
    await transaction.query('set local lock_timeout = 0', []);
    await transaction.query('set local statement_timeout = 0', []);
    await transaction.query('select pg_advisory_xact_lock(hashtextextended($1, 0))::text', [
      `ratchet-migration:${this.schema}`,
    ]);
    const found = await this.#versionOf((text, parameters) => transaction.query(text, parameters));
    if (found >= SCHEMA_VERSION) return;
    if (!(await this.#hasSchema(transaction))) {
      await transaction.query(`create schema ${quoteSchema(this.schema)}`, []);
    }
    await transaction.query(migrationTableSql(this.schema), []);
    for (const step of MIGRATIONS.filter((migration) => migration.version > found)) {
      await transaction.query(stepSql(this.schema, step), []);
      Migrator.#logger.log(
        `Schema "${this.schema}": applied migration ${String(step.version)} (${step.name})`,
      );
    }
  }

  /** `create schema if not exists` asks for the privilege even when there is nothing to create. */
  async #hasSchema(transaction: StoreTransaction): Promise<boolean> {
    const rows = await transaction.query('select nspname::text from pg_namespace where nspname = $1', [
      this.schema,
    ]);
    return rows.length > 0;
  }

  /** The version of the schema, 0 when there is none. */
  async #versionOf(
    query: (text: string, parameters: readonly unknown[]) => Promise<Record<string, unknown>[]>,
  ): Promise<number> {
    // Read from the catalog as a table: `to_regclass` would answer from a cache that a transaction keeps while it waits.
    const [server] = await query(
      `select current_setting('server_version_num')::text as number, current_setting('server_version') as name,
              exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                       where n.nspname = $1 and c.relname = 'migration')::text as present`,
      [this.schema],
    );
    if (Number(server?.['number']) < OLDEST_SERVER) throw new DatabaseVersionError(String(server?.['name']));
    if (server?.['present'] !== 'true') return 0;
    const [row] = await query(
      `select coalesce(max(version), 0)::text as version, coalesce(max(oldest_node), 0)::text as oldest_node
         from ${quoteSchema(this.schema)}.migration`,
      [],
    );
    const version = Number(row?.['version']);
    if (version > SCHEMA_VERSION && Number(row?.['oldest_node']) > SCHEMA_VERSION) {
      throw new SchemaNewerError(this.schema, version, SCHEMA_VERSION);
    }
    return version;
  }

  async #naming<T>(what: 'migrate' | 'use', work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { code, message } = describeError(error);
      if (code !== undefined && /^(SCHEMA|DATABASE)_/.test(code)) throw error;
      const fault = toStoreError(error);
      throw fault.sourceCode === '42501'
        ? new SchemaPrivilegeError(this.schema, what, message, { cause: error })
        : fault;
    }
  }
}
