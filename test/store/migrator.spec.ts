import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MIGRATIONS } from '../../lib/store/postgres/migrations/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode } from '../support/store.js';
import { migrationSql } from '../../lib/store/postgres/migrations/migration-sql.js';
import { SCHEMA_VERSION } from '../../lib/store/postgres/migrations/index.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { type Row, type SqlClient } from '../../lib/store/sql-client.js';

let database: TestDatabase;
let stores: PostgresJobStore[];

beforeEach(async () => {
  database = await createTestDatabase();
  stores = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await database.drop();
});

function store(
  ...args: Parameters<typeof createStore> extends [string, ...infer Rest] ? Rest : never
): PostgresJobStore {
  const made = createStore(database.url, ...args);
  stores.push(made);
  return made;
}

const applied = (schema = 'ratchet') =>
  database.query<{ version: number }>(`select version from "${schema}".migration order by version`);

describe('migrations', () => {
  it('let 20 nodes start at once on an empty database', async () => {
    const nodes = Array.from({ length: 20 }, () => store());
    await Promise.all(nodes.map((node) => node.open()));
    expect(await applied()).toEqual(MIGRATIONS.map(({ version }) => ({ version })));
  });

  it('let nodes start at once whose connections default to REPEATABLE READ', async () => {
    await database.query(
      `alter database ${database.name} set default_transaction_isolation = 'repeatable read'`,
    );
    await Promise.all(Array.from({ length: 6 }, () => store().open()));
    expect(await applied()).toEqual(MIGRATIONS.map(({ version }) => ({ version })));
  });

  it.each(['Mixed-Case schema', 'select', `quo"te'd $& $ratchet$ \\ name`, 'ü'])(
    'work in a schema named %s',
    async (schema) => {
      const node = store({ schema });
      await node.open();
      const ref = await node.registerNode({
        id: 'n',
        host: 'h',
        pid: 1,
        version: '1',
        lanes: [],
        handlers: [],
      });
      await node.openBucket(ref, 'default');
      const job = newJob();
      await node.insert([job]);
      expect((await node.get(job.id))?.status).toBe('pending');
      expect(await node.cancel(job.id)).toMatchObject({ outcome: 'canceled' });
      expect(await node.ensurePartitions(3)).toBeGreaterThanOrEqual(3);
      await node.retain({ historyMs: 0, executionMs: 0, deadLetterMs: 0 });
    },
  );

  it.each(['', 'pg_mine', 'x'.repeat(64), 'a\0b'])('refuse the schema name %j', (schema) => {
    expect(() => store({ schema })).toThrow(expect.objectContaining({ code: 'SCHEMA_NAME' }));
  });

  it('print the same schema as SQL, which mode "check" then accepts', async () => {
    await expect(store({ migrations: 'check' }).open()).rejects.toMatchObject({ code: 'SCHEMA_OLDER' });
    await database.query(migrationSql('ratchet'));
    await store({ migrations: 'check' }).open();
    await store({ migrations: 'auto' }).open();
    expect(await applied()).toEqual(MIGRATIONS.map(({ version }) => ({ version })));
  });

  it('look at nothing with mode "off"', async () => {
    await store({ migrations: 'off' }).open();
    expect(await database.query(`select 1 from pg_namespace where nspname = 'ratchet'`)).toEqual([]);
  });

  it('work beside a newer schema that allows it, and name one that does not', async () => {
    await store().open();
    const next = SCHEMA_VERSION + 1;
    await database.query(
      `insert into ratchet.migration values (${String(next)}, 'next', ${String(SCHEMA_VERSION)})`,
    );
    await store().open();
    await database.query(`update ratchet.migration set oldest_node = version`);
    await expect(store().open()).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
  });

  it('leave nothing behind when a step fails', async () => {
    await database.query(`create schema ratchet; create table ratchet.job_payload (mine int)`);
    await expect(store().open()).rejects.toMatchObject({ code: 'STORE_FAULT', kind: 'fatal' });
    const tables = await database.query(
      `select relname from pg_class where relnamespace = 'ratchet'::regnamespace`,
    );
    expect(tables).toEqual([{ relname: 'job_payload' }]);
  });

  it.each(['off', 'check', 'auto'] as const)(
    'with %s: say what is missing, and what to do',
    async (migrations) => {
      const elsewhere = new URL(database.url);
      elsewhere.pathname = '/nowhere';
      const config = clientConfigOf(elsewhere.href);
      const noDatabase = store({ client: new PoolSqlClient(config, 1), engine: config, migrations });
      const start = async (node: PostgresJobStore): Promise<unknown> => {
        await node.open();
        return registerTestNode(node);
      };
      await expect(start(noDatabase)).rejects.toMatchObject({
        message: expect.stringContaining('create the database, or correct its name'),
      });
      if (migrations === 'auto') return;
      await expect(start(store({ schema: 'nowhere', migrations }))).rejects.toMatchObject({
        message: expect.stringMatching(/check the name of the schema|SCHEMA_OLDER.*migrationSql/),
      });
    },
  );

  it.each(['check', 'auto'] as const)(
    'with %s: tell a role that may not use the schema',
    async (migrations) => {
      await store().open();
      await database.query(`create role ${database.name} login password 'x'`);
      const url = new URL(database.url);
      url.username = database.name;
      url.password = 'x';
      const config = clientConfigOf(url.href);
      const open = (): Promise<void> =>
        store({ client: new PoolSqlClient(config, 1), engine: config, migrations }).open();
      const message = expect.stringMatching(/is there, but this role may not use it: .*grant it USAGE/);
      try {
        await expect(open()).rejects.toMatchObject({ code: 'SCHEMA_PRIVILEGE', message });
        await database.query(`grant usage on schema ratchet to ${database.name}`);
        await expect(open()).rejects.toMatchObject({ code: 'SCHEMA_PRIVILEGE', message });
      } finally {
        await Promise.all(stores.splice(0).map((made) => made.close()));
        await database.query(`drop owned by ${database.name}; drop role ${database.name}`);
      }
    },
  );

  it('name the missing privilege', async () => {
    await database.query(`create role ${database.name} login password 'x'`);
    const url = new URL(database.url);
    url.username = database.name;
    url.password = 'x';
    try {
      const config = clientConfigOf(url.href);
      const poor = store({ client: new PoolSqlClient(config, 1), engine: config });
      await expect(poor.open()).rejects.toMatchObject({ code: 'SCHEMA_PRIVILEGE' });
    } finally {
      await Promise.all(stores.splice(0).map((made) => made.close()));
      await database.query(`drop role ${database.name}`);
    }
  });

  it('refuse a server older than 15', async () => {
    const old: SqlClient = {
      query: () => Promise.resolve<Row[]>([{ number: '140011', name: '14.11', present: 'false' }]),
      transaction: () => Promise.reject(new Error('not reached')),
      close: () => Promise.resolve(),
    };
    await expect(store({ client: old }).open()).rejects.toMatchObject({
      code: 'DATABASE_VERSION',
      message: expect.stringContaining('14.11'),
    });
  });
});
