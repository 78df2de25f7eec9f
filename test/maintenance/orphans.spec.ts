import { describe, expect, it } from '@jest/globals';
import { engineFixture } from '../engine/engine-fixture.js';
import { pollEvery } from '../support/poll.js';

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
      settings: { ...pollEvery(20) },
    });
    const rescued = one.count('rescued', 1, ({ recovered }) => recovered > 0);
    const settled = one.count('settled', 5);
    await one.runtime.start();
    await rescued;
    await settled;
    expect(runs.sort()).toEqual(ids.map((id) => `${id} 2`).sort());
    expect(fixture.logs).toContainEqual({
      level: 'error',
      line: expect.stringMatching(/^5 jobs found running in 5 buckets without a row: 5 to run again, 0 over/),
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
      settings: { ...pollEvery(20) },
    });
    // A round that is under way when the node gets another name would be called off, and its report with it.
    const swept = one.events.next('maintenance', ({ task }) => task === 'ratchet:sweeps');
    await one.runtime.start();
    await swept;
    const claimed = one.count('claimed', 2);
    await one.enqueue({}, {});
    await claimed;
    const settled = one.count('settled', 2, ({ outcome }) => outcome === 'succeeded');
    // Told, and logged, after the statement that gives the jobs back.
    const rescued = one.events.next('rescued');
    // In one statement: between two, the node could miss its row and rescue its own bucket by it.
    await database.query('with gone as (delete from ratchet.node) delete from ratchet.bucket');
    one.messages.newWork('default', 2);
    await Promise.all([settled, rescued]);
    const errors = fixture.logs.filter(({ level }) => level === 'error').map(({ line }) => line);
    expect(errors).toEqual([
      expect.stringMatching(/^2 jobs found running in 1 bucket without a row: 2 to run again/),
    ]);
    expect(fixture.logs.map(({ line }) => line)).toContainEqual(
      expect.stringContaining('the row of node n2 was gone (declared dead, or deleted): it registered again'),
    );
  });
});
