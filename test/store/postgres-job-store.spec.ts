import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';

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

describe('PostgresJobStore', () => {
  it('takes a job from insert to history', async () => {
    const node = await registerTestNode(store);
    const bucket = await store.openBucket(node, 'default');
    const job = newJob({ payload: '{"a":1}', tags: ['x', 'y,"z'], metadata: '{"m":true}' });
    expect(await store.insert([job])).toEqual([{ outcome: 'created', id: job.id }]);
    const { claimed } = await store.exchange(turn(bucket));
    expect(claimed).toMatchObject([
      { id: job.id, payload: { a: 1 }, tags: ['x', 'y,"z'], metadata: { m: true }, claimSeq: '1' },
    ]);
    const answer = await store.exchange(
      turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'succeeded', result: '42' }] }),
    );
    expect(answer.recorded).toEqual([job.id]);
    expect(await store.get(job.id)).toMatchObject({
      status: 'succeeded',
      result: 42,
      node: node.id,
      payload: { a: 1 },
    });
  });
});
