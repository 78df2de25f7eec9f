import { createTestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { describeJobStoreContract } from '../../lib/testing/job-store-contract.js';
import { describeLockStoreContract } from '../../lib/testing/lock-store-contract.js';

describeJobStoreContract('PostgresJobStore', async () => {
  const database = await createTestDatabase();
  const store = createStore(database.url);
  await store.open();
  const application = new PoolSqlClient(clientConfigOf(database.url), 2);
  return {
    store,
    transaction: (work) => application.transaction(work),
    deleteBucket: async (id) => {
      await database.query('delete from ratchet.bucket where id = $1', [id]);
    },
    peer: async () => {
      const peer = createStore(database.url);
      await peer.open();
      return peer;
    },
    close: async () => {
      await application.close();
      await store.close();
      await database.drop();
    },
  };
});

describeLockStoreContract('PostgresLockStore', async () => {
  const database = await createTestDatabase();
  const store = createStore(database.url);
  await store.open();
  let passed = 0;
  return {
    locks: new PostgresLockStore(store),
    pass: (ms) => store.travel((passed += ms)),
    close: async () => {
      await store.close();
      await database.drop();
    },
  };
});
