import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { contractRunner } from '../../lib/testing/contract/contract-runner.js';
import { ContractBench } from '../../lib/testing/contract/job-store-subject.js';
import { describeRescue } from '../../lib/testing/contract/rescue-contract.js';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Runs some of the rescue part's tests on a store that `spoil` has broken. Returns the names of those that fail. */
async function failing(
  names: readonly string[],
  spoil: (store: PostgresJobStore) => void,
): Promise<string[]> {
  const opened = async (): Promise<PostgresJobStore> => {
    const store = createStore(database.url);
    await store.open();
    spoil(store);
    return store;
  };
  const tests = new Map<string, () => Promise<void>>();
  let after: () => Promise<void> = () => Promise.resolve();
  const collector = {
    ...contractRunner(),
    it: (name: string, body: () => Promise<void>) => void tests.set(name, body),
    afterAll: (body: () => Promise<void>) => void (after = body),
  };
  const store = await opened();
  const application = new PoolSqlClient(clientConfigOf(database.url), 2);
  const subject = {
    store,
    transaction: application.transaction.bind(application),
    peer: opened,
    deleteBucket: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  describeRescue(new ContractBench(collector, () => subject));
  const failed: string[] = [];
  for (const name of names) await tests.get(name)!().catch(() => failed.push(name));
  await after();
  await application.close();
  await store.close();
  return failed;
}

describe('the rescue part of describeJobStoreContract', () => {
  const alone = 'leaves nodes within the grace alone, whatever they hold';
  const charged = 'takes back what a node past the grace holds, for one crash each, and forgets the node';
  const buried =
    'moves what is over the crash budget to the dead letter, and starts the job of its failure handler';
  const returned = 'never takes an id from the process that has it by now';
  const all = [alone, charged, buried, returned];

  it('finds no fault in a store that has none', async () => {
    expect(await failing(all, () => undefined)).toEqual([]);
  });

  it('finds one that ignores the grace', async () => {
    const failed = await failing(all, (store) => {
      const rescueLost = store.rescueLost.bind(store);
      store.rescueLost = (request, signal) => rescueLost({ ...request, graceMs: 0 }, signal);
    });
    expect(failed).toEqual([alone]);
  });

  it('finds one that charges nobody', async () => {
    const failed = await failing(all, (store) => {
      const rescueLost = store.rescueLost.bind(store);
      store.rescueLost = async (...given) => {
        const report = await rescueLost(...given);
        await database.query('update ratchet.job set crashes = 0');
        return report;
      };
    });
    expect(failed).toEqual([charged]);
  });

  it('finds one that minds no budget', async () => {
    const failed = await failing(all, (store) => {
      const rescueLost = store.rescueLost.bind(store);
      store.rescueLost = (request, signal) => rescueLost({ ...request, maxCrashRedeliveries: 3 }, signal);
    });
    expect(failed).toEqual([buried]);
  });

  it('finds one that gives an id to whoever asks for it', async () => {
    const failed = await failing(all, (store) => (store.returnNode = (node) => store.registerNode(node)));
    expect(failed).toEqual([returned]);
  });
});
