import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type settleWithin as Original } from '../../lib/store/postgres/settle-within.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { compileLibrary } from '../chaos/worker-process.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, transactionOf, turn } from '../support/store.js';

/**
 * A transaction that comes with a claim of yesterday, while the job runs under a newer one. The negative control is the same with a
 * library whose statement does not compare `claim_seq`: if it is refused too, the scenario proves nothing.
 */
let database: TestDatabase;
let store: PostgresJobStore;
beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

async function takenByOldClaim(settle: PostgresJobStore['settleWithin']): Promise<boolean> {
  const bucket = await store.openBucket(await registerTestNode(store), 'default');
  await store.insert([newJob()]);
  const [{ id, claimSeq } = { id: '', claimSeq: '' }] = (await store.exchange(turn(bucket))).claimed;
  await store.exchange(turn(bucket, { want: 0, settle: [{ id, claimSeq, outcome: 'released' }] }));
  const [heir] = (await store.exchange(turn(bucket))).claimed;
  expect(heir).toMatchObject({ id });
  const client = await database.connect();
  await client.query('begin');
  const taken = await settle(transactionOf(client), { id, claimSeq, outcome: 'succeeded' });
  await client.query('rollback');
  await store.exchange(
    turn(bucket, { want: 0, settle: [{ id, claimSeq: heir!.claimSeq, outcome: 'succeeded' }] }),
  );
  return taken;
}

it('an old claim settles nothing', async () => {
  expect(await takenByOldClaim((...given) => store.settleWithin(...given))).toBe(false);
});

it('without the fence it ends the job of its heir', async () => {
  const index = compileLibrary('settle-within-fence', [
    {
      file: 'settle-within.ts',
      from: /where j\.claim_seq = \$3::bigint and /g,
      to: 'where j.claim_seq >= $3::bigint and ',
    },
  ]);
  const { settleWithin } = (await import(new URL('./store/postgres/settle-within.js', index).href)) as {
    settleWithin: typeof Original;
  };
  expect(await takenByOldClaim((...given) => settleWithin(store.session, ...given))).toBe(true);
});
