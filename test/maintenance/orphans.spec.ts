import { describe, expect, it } from '@jest/globals';
import { engineFixture } from '../engine/engine-fixture.js';

describe('claims of a bucket that was deleted', () => {
  const fixture = engineFixture();

  it('run again under the same id, for one crash each, and are shouted', async () => {
    const { database } = fixture;
    const stopped = await fixture.node({ nodeId: 'n1', handlers: { other: () => {} } });
    await stopped.runtime.start();
    const ids = await stopped.enqueue({}, {}, {}, {}, {});
    await stopped.runtime.close();
    // A node that died with all five at work, and whose bucket somebody deleted.
    await database.query(
      `update ratchet.job set status = 1, bucket = gen_random_uuid(), claim_seq = 1, executions = 1, begun_at = now()`,
    );
    const runs: string[] = [];
    const one = await fixture.node({
      nodeId: 'n1',
      handlers: { work: (_payload, { jobId, execution }) => void runs.push(`${jobId} ${execution}`) },
      settings: { pollIntervalMs: 20 },
    });
    const rescued = one.count('rescued', 1, ({ recovered }) => recovered > 0);
    const settled = one.count('settled', 5);
    await one.runtime.start();
    await rescued;
    await settled;
    expect(runs.sort()).toEqual(ids.map((id) => `${id} 2`).sort());
    expect(fixture.logs).toContainEqual({
      level: 'error',
      line: expect.stringMatching(
        /^5 jobs were running in 5 buckets that do not exist: 5 run again, 0 were over/,
      ),
    });
    expect(await database.query('select 1 from ratchet.job')).toEqual([]);
  });
});
