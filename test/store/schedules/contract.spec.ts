import { PostgresScheduleStore } from '../../../lib/store/postgres/postgres-schedule-store.js';
import { describeScheduleStoreContract } from '../../../lib/testing/schedule-store-contract.js';
import { createTestDatabase } from '../../support/database.js';
import { createStore } from '../../support/store.js';

describeScheduleStoreContract('PostgresScheduleStore', async () => {
  const database = await createTestDatabase();
  const jobs = createStore(database.url);
  await jobs.open();
  return {
    jobs,
    schedules: new PostgresScheduleStore(jobs),
    close: async () => {
      await jobs.close();
      await database.drop();
    },
  };
});
