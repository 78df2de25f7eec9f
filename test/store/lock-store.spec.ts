import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { StoreError, type StoreFaultKind } from '../../lib/store/store-fault.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';

const TTL_MS = 60_000;
const a = { id: 'a', epoch: '1' };
const b = { id: 'b', epoch: '2' };

/** What every lock store does is in its contract: this is what faults make of it. */
describe('PostgresLockStore', () => {
  let database: TestDatabase;
  let store: PostgresJobStore;
  let locks: PostgresLockStore;
  let attempts: number;

  beforeAll(async () => {
    database = await createTestDatabase();
    store = createStore(database.url);
    await store.open();
    locks = new PostgresLockStore(store);
  });
  afterEach(async () => {
    delete (store.session as { service?: unknown }).service;
    await database.query('truncate ratchet.lease');
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  /** The next statements fail: without having been sent, or after they were carried out. */
  function fail(when: 'before' | 'after', ...kinds: StoreFaultKind[]): void {
    attempts = 0;
    const real = store.session.service.bind(store.session);
    store.session.service = async (...given) => {
      attempts += 1;
      const kind = kinds.shift();
      const fault = kind && new StoreError(kind, 'STORE_FAULT: made by a test', 'TEST1');
      if (fault && when === 'before') throw fault;
      const rows = await real(...given);
      if (fault) throw fault;
      return rows;
    };
  }

  it.each([
    ['before', 'rolled_back'],
    ['before', 'unavailable'],
    ['after', 'unknown'],
  ] as const)('tries again when a statement fails %s it was carried out: %s', async (when, kind) => {
    fail(when, kind, kind);
    expect(await locks.tryLock('x', TTL_MS, a)).toBe(true);
    expect(attempts).toBe(3);
    expect(await locks.tryLock('x', TTL_MS, b)).toBe(false);
    fail(when, kind);
    expect(await locks.renew('x', TTL_MS, a)).toBe(true);
    fail(when, kind);
    await locks.release('x', a);
    expect(await locks.tryLock('x', TTL_MS, b)).toBe(true);
  });

  it('gives up after three attempts, with the last error', async () => {
    fail('before', 'rolled_back', 'rolled_back', 'unavailable', 'unavailable');
    await expect(locks.tryLock('x', TTL_MS, a)).rejects.toMatchObject({ kind: 'unavailable' });
    expect(attempts).toBe(3);
  });

  it('does not try again what no patience mends', async () => {
    fail('before', 'fatal');
    await expect(locks.renew('x', TTL_MS, a)).rejects.toMatchObject({ kind: 'fatal' });
    expect(attempts).toBe(1);
  });

  it('gives the lease to one of 20 processes with connections of their own', async () => {
    const stores = Array.from({ length: 20 }, () => createStore(database.url));
    try {
      await Promise.all(stores.map((one) => one.open()));
      const won = await Promise.all(
        stores.map((one, index) =>
          new PostgresLockStore(one).tryLock('race', TTL_MS, { id: 'same', epoch: String(index + 1) }),
        ),
      );
      expect(won.filter(Boolean)).toHaveLength(1);
    } finally {
      await Promise.all(stores.map((one) => one.close()));
    }
  });
});
