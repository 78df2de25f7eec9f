import { describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../lib/cluster/clock.js';
import { type ClaimedJob } from '../../lib/store/job-store.js';
import { deferred } from '../support/engine-node.js';
import { engineFixture } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

/** Real time, except that the minute between two reconciles is short. */
class HastyClock extends SystemClock {
  override timer(ms: number, callback: () => void, background?: boolean): () => void {
    return super.timer(ms === 60_000 ? 25 : ms, callback, background);
  }
}

describe('the reconcile of every minute', () => {
  const fixture = engineFixture();
  const settings = { ...pollEvery(59_000) };

  it('finds a claim that nobody knows, runs it, and shouts', async () => {
    const one = await fixture.node({
      settings,
      parts: { clock: new HastyClock() },
      handlers: { work: () => {} },
    });
    await one.runtime.start();
    await one.events.next('idle');
    const settled = one.events.next('settled');
    const [id] = await one.enqueue({ delayMs: 3_600_000 });
    await fixture.database.query(
      `update ratchet.job set status = 1, claim_seq = 7, begun_at = now(), executions = 1,
              bucket = (select id from ratchet.bucket) where id = $1`,
      [id],
    );
    expect(await settled).toMatchObject({ jobId: id, claimSeq: '7', outcome: 'succeeded' });
    expect(fixture.logs.filter(({ level }) => level === 'error')).toHaveLength(1);
  });

  it('is not fooled by an exchange in flight whose claims it sees before their answer came', async () => {
    const runs: string[] = [];
    const one = await fixture.node({
      settings,
      parts: { clock: new HastyClock() },
      handlers: { work: (_payload, { jobId }) => void runs.push(jobId) },
    });
    await one.runtime.start();
    await one.events.next('idle');
    const claimed = deferred();
    const goOn = deferred();
    const off = one.debug.at('exchange.answered', () => {
      claimed.resolve();
      return goOn.promise;
    });
    const seen = deferred();
    await one.enqueue({}, {});
    await claimed.promise;
    off();
    const settled = one.count('settled', 2);
    // The database shows the claims; the node has not heard of them yet.
    const offReconcile = one.debug.at('reconcile.answered', () => {
      seen.resolve();
      return undefined;
    });
    await seen.promise;
    offReconcile();
    const reconciled = one.events.next('reconciled');
    goOn.resolve();
    expect(await reconciled).toMatchObject({ cause: 'interval', strays: 0 });
    await settled;
    expect(new Set(runs).size).toBe(2);
    expect(runs).toHaveLength(2);
    expect(fixture.logs.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('is not fooled by a claim that began and ended while it looked', async () => {
    const runs: string[] = [];
    const one = await fixture.node({
      settings,
      parts: { clock: new HastyClock() },
      handlers: { work: (_payload, { jobId }) => void runs.push(jobId) },
    });
    await one.runtime.start();
    await one.events.next('idle');
    const held = deferred();
    const goOn = deferred();
    // Looks first (by hand, while the claim stands), is answered last.
    const real = one.real.reconcile.bind(one.real);
    one.real.reconcile = async (request) => {
      held.resolve();
      await goOn.promise;
      return {
        ...(await real(request)),
        strays: [{ bucketId: request.buckets[0]!.id, job: stray! }],
      };
    };
    let stray: ClaimedJob | undefined;
    const exchange = one.real.exchange.bind(one.real);
    one.real.exchange = async (request) => {
      const answer = await exchange(request);
      stray ??= answer.claimed[0];
      return answer;
    };
    await held.promise;
    const settled = one.events.next('settled');
    await one.enqueue({});
    await settled;
    const reconciled = one.events.next('reconciled');
    goOn.resolve();
    expect(await reconciled).toMatchObject({ strays: 0 });
    expect(runs).toHaveLength(1);
  });
});
