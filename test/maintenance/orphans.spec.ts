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

  it('do so under the eyes of their node too, which does not accuse another process when its own row is gone', async () => {
    const { database } = fixture;
    let runs = 0;
    const one = await fixture.node({
      nodeId: 'n2',
      handlers: {
        work: (_payload, { signal }) => {
          runs += 1;
          return runs > 2
            ? undefined
            : new Promise((_, reject) =>
                signal.addEventListener('abort', () => reject(signal.reason as Error)),
              );
        },
      },
      settings: { pollIntervalMs: 20 },
    });
    await one.runtime.start();
    const claimed = one.count('claimed', 2);
    await one.enqueue({}, {});
    await claimed;
    const settled = one.count('settled', 2, ({ outcome }) => outcome === 'succeeded');
    await database.query('delete from ratchet.node');
    await database.query('delete from ratchet.bucket');
    one.messages.newWork('default', 2);
    await settled;
    const errors = fixture.logs.filter(({ level }) => level === 'error').map(({ line }) => line);
    expect(errors.sort()).toEqual([
      expect.stringMatching(/^2 jobs were running in 1 buckets that do not exist: 2 run again/),
      expect.stringContaining('the row of node n2 is gone: '),
    ]);
  });
});
