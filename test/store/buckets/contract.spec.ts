import { PostgresBucketStore } from '../../../lib/store/postgres/postgres-bucket-store.js';
import { describeBucketStoreContract } from '../../../lib/testing/bucket-store-contract.js';
import { createTestDatabase } from '../../support/database.js';
import { createStore } from '../../support/store.js';

describeBucketStoreContract('PostgresBucketStore', async () => {
  const database = await createTestDatabase();
  const jobs = createStore(database.url);
  await jobs.open();
  return {
    jobs,
    buckets: new PostgresBucketStore(jobs),
    close: async () => {
      await jobs.close();
      await database.drop();
    },
  };
});
