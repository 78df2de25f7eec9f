import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ClaimedJob, type ExchangeRequest } from '../../lib/store/job-store.js';
import { PostgresBucketStore } from '../../lib/store/postgres/postgres-bucket-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';

const keyOf = ({ id, claimSeq }: ClaimedJob): { id: string; claimSeq: string } => ({ id, claimSeq });
const ahead = (given: Partial<NonNullable<ExchangeRequest['ahead']>> = {}): Partial<ExchangeRequest> => ({
  ahead: { beginNow: 0, begin: [], mark: 0, forget: [], ...given },
});

describe('the exchange in a paused lane', () => {
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

  it('claims nothing and begins nothing, records what ends, and goes on when the lane does', async () => {
    const lane = 'mail';
    const lanes = new PostgresBucketStore(store);
    const bucket = await store.openBucket(await registerTestNode(store), lane);
    const suspect = newJob({ lane });
    await store.insert([newJob({ lane }), newJob({ lane })]);
    const { claimed } = await store.exchange(turn(bucket, ahead()));
    const [running, waiting] = claimed as [ClaimedJob, ClaimedJob];
    await store.exchange(turn(bucket, { want: 0, ...ahead({ begin: [keyOf(running)], mark: 1 }) }));
    await store.insert([newJob({ lane }), suspect]);
    await database.query('update ratchet.job set crashes = 2 where id = $1', [suspect.id]);

    await lanes.pauseLane(lane);
    const held = await store.exchange(turn(bucket, ahead({ begin: [keyOf(waiting)], mark: 2 })));
    expect(held).toMatchObject({ owned: true, paused: true, gone: [waiting.id], claimed: [] });
    // A plain turn that claims hears of it as well.
    expect(await store.exchange(turn(bucket))).toMatchObject({ paused: true, claimed: [] });
    const settle = [{ ...keyOf(running), outcome: 'succeeded' as const, ranMs: 1 }];
    expect(await store.exchange(turn(bucket, { settle, want: 0, ...ahead() }))).toMatchObject({
      recorded: [running.id],
      paused: true,
    });

    await lanes.resumeLane(lane);
    const freed = await store.exchange(turn(bucket, ahead({ beginNow: 10 })));
    expect(freed).toMatchObject({ paused: false });
    expect(freed.claimed.map(({ id, begun }) => [id, begun])).toContainEqual([suspect.id, true]);
    expect(freed.claimed).toHaveLength(2);
  });

  it('is nothing to other lanes', async () => {
    const bucket = await store.openBucket(await registerTestNode(store), 'other');
    await new PostgresBucketStore(store).pauseLane('elsewhere');
    await store.insert([newJob({ lane: 'other' })]);
    expect(await store.exchange(turn(bucket))).toMatchObject({ paused: false, claimed: [{ begun: true }] });
  });
});
