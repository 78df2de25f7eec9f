import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createTcpProxy } from '../support/tcp-proxy.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const NOBODY = 'postgres://u:p@127.0.0.1:1/d';

const sessions = async (): Promise<number> =>
  (
    await database.query(
      `select 1 from pg_stat_activity where datname = $1 and application_name <> 'ratchet-test' and pid <> pg_backend_pid()`,
      [database.name],
    )
  ).length;

describe('a store that starts', () => {
  it('fails at once without a database, when told so', async () => {
    const store = createStore(NOBODY, { startup: { onDatabaseDown: 'fail', timeoutMs: 60_000 } });
    await expect(store.open()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE', retryable: true });
    await store.close();
  });

  it('waits for the database as long as it may', async () => {
    const store = createStore(NOBODY, { startup: { onDatabaseDown: 'wait', timeoutMs: 300 } });
    await expect(store.open()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    await store.close();
  });

  it('comes up with a database that comes up later', async () => {
    const proxy = await createTcpProxy(database.url);
    proxy.refuse(true);
    const store = createStore(proxy.url, { startup: { onDatabaseDown: 'wait', timeoutMs: 20_000 } });
    const opened = store.open();
    await proxy.refused();
    proxy.refuse(false);
    await opened;
    await store.close();
    await proxy.close();
  });

  it('can be closed while it waits', async () => {
    const store = createStore(NOBODY, { startup: { onDatabaseDown: 'wait', timeoutMs: 60_000 } });
    const opened = store.open();
    const refused = expect(opened).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await store.close();
    await refused;
  });

  it('does not take a mistake for a database that is away', async () => {
    const url = new URL(database.url);
    url.pathname = '/no_such_database';
    const store = createStore(url.href, { startup: { onDatabaseDown: 'wait', timeoutMs: 60_000 } });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_FAULT', kind: 'fatal' });
    await store.close();
  });
});

describe('a store that closes', () => {
  it('opens and closes many times and leaves no session behind', async () => {
    const before = await sessions();
    for (let round = 0; round < 30; round += 1) {
      const store = createStore(database.url);
      await store.open();
      const bucket = await store.openBucket(await registerTestNode(store), 'rounds');
      await store.exchange(turn(bucket));
      await Promise.all([store.close(), store.close()]);
    }
    for (let tries = 0; (await sessions()) > before && tries < 500; tries += 1);
    expect(await sessions()).toBe(before);
  });

  it('is bounded while the network swallows everything', async () => {
    const proxy = await createTcpProxy(database.url);
    const store = createStore(proxy.url);
    await store.open();
    const bucket = await store.openBucket(await registerTestNode(store), 'frozen');
    await store.exchange(turn(bucket));
    proxy.freeze();
    const turns = store.exchange(turn(bucket)).catch((error: unknown) => (error as { kind?: string }).kind);
    await new Promise(setImmediate);
    const startedAt = performance.now();
    await store.close();
    expect(performance.now() - startedAt).toBeLessThan(8_000);
    await proxy.close();
    expect(['unknown', 'unavailable']).toContain(await turns);
  });

  it('refuses what is asked afterwards', async () => {
    const store = createStore(database.url);
    await store.open();
    await store.close();
    await expect(store.insert([newJob()])).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(registerTestNode(store)).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });
});
