import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { DataSource as CurrentDataSource, type DataSource } from 'typeorm';
import { DataSource as OldDataSource } from 'typeorm-03';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { connectionConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { DataSourceSqlClient } from '../../lib/store/postgres/connections/data-source-sql-client.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const versions = [
  ['1.x', CurrentDataSource],
  ['0.3', OldDataSource as unknown as typeof CurrentDataSource],
] as const;

describe.each(versions)('on a DataSource of TypeORM %s', (_, Source) => {
  let source: DataSource;

  beforeAll(async () => {
    source = await new Source({
      type: 'postgres',
      url: database.url,
      poolSize: 3,
      applicationName: 'the-app',
      extra: { idleTimeoutMillis: 5, statement_timeout: 60_000 },
    }).initialize();
  });
  afterAll(() => source.destroy());

  it('survives a connection that the server ends as it is opened', async () => {
    await new DataSourceSqlClient(source).query({ text: 'select 1' });
    const { master } = source.driver as unknown as { master: pg.Pool };
    const used = await Promise.all(Array.from({ length: master.idleCount }, () => master.connect()));
    const lost = await new Promise<string>((resolve, reject) => {
      master.connect((error, client, release) => {
        if (error || !client) return reject(error ?? new Error('no client'));
        try {
          // Between the pool, which has handed it out, and TypeORM, which has not got it.
          client.emit('error', new Error('terminated'));
          resolve('heard');
        } catch {
          resolve('nobody listens');
        } finally {
          release(true);
        }
      });
    });
    for (const client of used) client.release(true);
    expect(lost).toBe('heard');
  });

  it('does everything that the application asks, whatever its type parsers are', async () => {
    const { builtins } = pg.types;
    const changed = [
      builtins.INT8,
      builtins.INT4,
      builtins.BOOL,
      builtins.JSONB,
      builtins.JSON,
      builtins.TIMESTAMPTZ,
    ];
    const before = changed.map(
      (oid) => [oid, pg.types.getTypeParser(oid) as (text: string) => unknown] as const,
    );
    for (const oid of changed) pg.types.setTypeParser(oid, () => 'parsed by the application');
    const store = createStore(database.url, {
      client: new DataSourceSqlClient(source),
      engine: connectionConfigOf(source),
    });
    try {
      await store.open();
      const bucket = await store.openBucket(await registerTestNode(store), 'source');
      const businessKey = `key-${Source === CurrentDataSource ? 'new' : 'old'}`;
      const job = newJob({ lane: 'source', businessKey, tags: ['t'] });
      expect(await store.insert([job])).toEqual([{ outcome: 'created', id: job.id }]);
      expect(await store.insert([newJob({ businessKey })])).toEqual([
        { outcome: 'held', holder: job.id, running: false },
      ]);
      const group = [newJob({ lane: 'source' }), newJob({ businessKey })];
      expect((await store.insert(group))[1]?.outcome).toBe('held');
      expect(await store.get(group[0]?.id ?? '')).toBeUndefined();
      const { claimed } = await store.exchange(turn(bucket));
      expect(claimed).toMatchObject([{ id: job.id, executions: 1, tags: ['t'] }]);
      await store.exchange(
        turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'failed', error: 'e' }], want: 0 }),
      );
      expect(await store.get(job.id)).toMatchObject({ status: 'failed', executions: 1, priority: 2 });
      expect(await store.redrive(job.id)).toMatchObject({ outcome: 'redriven', priority: 2 });
      expect(await store.cancel(job.id)).toMatchObject({ outcome: 'canceled' });
      expect(await store.executions(job.id)).toMatchObject([{ outcome: 'failed', number: 1 }]);
    } finally {
      for (const [oid, parser] of before) pg.types.setTypeParser(oid, parser);
      await store.close();
    }
    expect(source.isInitialized).toBe(true);
  });

  it('commits with the transaction of an EntityManager, and not without', async () => {
    const store = createStore(database.url, { client: new DataSourceSqlClient(source) });
    await store.open();
    const [kept, lost] = [newJob(), newJob()];
    for (const job of [kept, lost]) {
      await source
        .transaction(async (manager) => {
          const runner = manager.queryRunner;
          const query = async (text: string, parameters: readonly unknown[]) =>
            (await runner!.query(text, [...parameters], true)).records as Record<string, unknown>[];
          await store.insert([job], { query });
          if (job === lost) throw new Error('on purpose');
        })
        .catch(() => undefined);
    }
    expect((await store.get(kept.id))?.status).toBe('pending');
    expect(await store.get(lost.id)).toBeUndefined();
    await store.close();
  });

  it('does not wait for ever for a connection that only its callers could free', async () => {
    const client = new DataSourceSqlClient(source, 100);
    const holders = await Promise.all(
      [1, 2, 3].map(async () => {
        const runner = source.createQueryRunner();
        await runner.startTransaction();
        return runner;
      }),
    );
    const store = createStore(database.url, { client });
    await expect(store.insert([newJob()])).rejects.toMatchObject({
      code: 'STORE_FAULT',
      kind: 'unavailable',
      message: expect.stringMatching(/DataSource's pool .* within 100 ms; .* "transaction"/),
    });
    for (const runner of holders) await runner.release();
    // The one that came too late is back in the pool.
    for (let round = 0; round < 4; round += 1) await client.query({ text: 'select 1' });
    await store.close();
  });

  it('says the same when the limit of the pool strikes', async () => {
    const small = await new Source({
      type: 'postgres',
      url: database.url,
      poolSize: 1,
      connectTimeoutMS: 1_500,
    }).initialize();
    const runner = small.createQueryRunner();
    await runner.startTransaction();
    await expect(new DataSourceSqlClient(small).query({ text: 'select 1' })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('"transaction"'),
    });
    await runner.release();
    await small.destroy();
  });

  it('refuses what is asked after the close, whether or not the DataSource is still there', async () => {
    const store = createStore(database.url, { client: new DataSourceSqlClient(source) });
    await store.close();
    await expect(store.insert([newJob()])).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(store.get(newJob().id)).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });

  it('returns its connections, also after errors', async () => {
    const client = new DataSourceSqlClient(source);
    for (let round = 0; round < 10; round += 1) {
      await expect(client.query({ text: 'select 1/0' })).rejects.toMatchObject({ code: '22012' });
      await expect(client.transaction((tx) => tx.query('select 1/0', []))).rejects.toMatchObject({
        code: '22012',
      });
    }
    expect(await client.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }]);
  });
});

describe('connectionConfigOf', () => {
  it('takes the connection settings and nothing else', async () => {
    const password = () => Promise.resolve('secret');
    const source = new CurrentDataSource({
      type: 'postgres',
      host: 'db.example',
      port: 6543,
      username: 'u',
      password,
      database: 'd',
      ssl: { rejectUnauthorized: false },
      connectTimeoutMS: 1234,
      poolSize: 50,
      synchronize: true,
      dropSchema: true,
      schema: 'other',
      applicationName: 'app',
      extra: { max: 9, statement_timeout: 5, keepAlive: false, options: '-c work_mem=5MB' },
    });
    expect(await connectionConfigOf(source)()).toEqual({
      host: 'db.example',
      port: 6543,
      user: 'u',
      password,
      database: 'd',
      ssl: { rejectUnauthorized: false },
      connectionTimeoutMillis: 1234,
      keepAlive: false,
      options: '-c work_mem=5MB',
    });
  });

  it('takes the master of a replicated DataSource', async () => {
    const source = new CurrentDataSource({
      type: 'postgres',
      replication: { master: { host: 'master', username: 'u' }, slaves: [{ host: 'slave' }] },
    });
    expect(await connectionConfigOf(source)()).toEqual({ host: 'master', user: 'u' });
  });

  it('takes timeouts and names out of a URL, which would win over ours', async () => {
    const source = new CurrentDataSource({
      type: 'postgres',
      url: 'postgres://u:p%40@h:1/d?application_name=app&statement_timeout=5&options=-c%20work_mem%3D5MB&sslmode=require',
    });
    expect(await connectionConfigOf(source)()).toEqual({
      connectionString: 'postgres://u:p%40@h:1/d?sslmode=require',
      options: '-c work_mem=5MB',
    });
  });

  it('refuses another database', () => {
    const other = { options: { type: 'mysql' } } as unknown as DataSource;
    expect(() => connectionConfigOf(other)).toThrow(
      expect.objectContaining({ code: 'DATA_SOURCE_UNSUPPORTED' }),
    );
  });
});
