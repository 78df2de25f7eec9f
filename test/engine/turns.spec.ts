import { describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../lib/cluster/clock.js';
import { MOST_CLAIMS } from '../../lib/engine/turn-plan.js';
import { type ExchangeAnswer } from '../../lib/store/job-store.js';
import { newJob } from '../support/store.js';
import { deferred } from '../support/engine-node.js';
import { engineFixture } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

/** Breaks once, when a test says so. */
class BrittleClock extends SystemClock {
  broken = false;

  override monotonicMs(): number {
    if (this.broken) {
      this.broken = false;
      throw new Error('the clock broke');
    }
    return super.monotonicMs();
  }
}

/** Its timers ring a moment too early, as Node's do, and the time has come right after the first two looks at the clock. */
class EarlyClock extends SystemClock {
  #early: number[] = [];

  override monotonicMs(): number {
    return this.#early.pop() ?? super.monotonicMs();
  }

  override timer(ms: number, callback: () => void, background?: boolean): () => void {
    const atMs = super.monotonicMs() + ms;
    const ring = (): void => {
      this.#early = [atMs - 0.1, atMs - 0.1];
      callback();
      this.#early = [];
    };
    return super.timer(ms + 2, ring, background);
  }
}

describe('the turns of a bucket', () => {
  const fixture = engineFixture();
  const settings = { ...pollEvery(59_000) };

  it('a job told as delayed during a turn runs when it is due, although that turn’s answer knows nothing of it', async () => {
    const one = await fixture.node({ settings, handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    const answered = deferred();
    const goOn = deferred();
    const off = one.debug.at('exchange.answered', () => {
      answered.resolve();
      return goOn.promise;
    });
    one.messages.newWork('default', 2);
    await answered.promise;
    off();
    const settled = one.events.next('settled');
    await one.enqueue({ delayMs: 100 });
    goOn.resolve();
    await settled;
  });

  it.each(['unavailable', 'unknown'] as const)(
    'is tried again after its delay when it failed (%s), although the timer rang a moment too early',
    async (kind) => {
      const one = await fixture.node({
        settings,
        parts: { clock: new EarlyClock() },
        handlers: { work: () => {} },
      });
      await one.runtime.start();
      await one.events.next('idle');
      const settled = one.events.next('settled');
      const failed = one.faults.fail('exchange', { kind, when: 'before' }, { kind, when: 'before' });
      await one.enqueue({});
      await failed;
      await settled;
    },
  );

  it('a fault of our own in a turn does not end the bucket', async () => {
    const clock = new BrittleClock();
    const one = await fixture.node({ settings, parts: { clock }, handlers: { work: () => {} } });
    one.real.foreign = () => Promise.resolve([]);
    await one.runtime.start();
    await one.events.next('idle');
    const fault = one.events.next('fault');
    const settled = one.events.next('settled');
    await one.store.insert([newJob({ name: 'work' })]);
    clock.broken = true;
    one.messages.newWork('default', 2);
    expect(await fault).toMatchObject({ where: 'turn', message: 'the clock broke' });
    await settled;
  });

  it('an answer that was not worked in to its end strands none of its claims', async () => {
    const one = await fixture.node({ settings, handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    const exchange = one.real.exchange.bind(one.real);
    one.real.exchange = async (request): Promise<ExchangeAnswer> => {
      const answer = await exchange(request);
      one.real.exchange = exchange;
      return { ...answer, lost: undefined as never, claimed: undefined as never };
    };
    const reconciled = one.events.next('reconciled');
    const settled = one.events.next('settled');
    await one.enqueue({});
    expect(await reconciled).toMatchObject({ cause: 'unknown_commit', strays: 1 });
    await settled;
  });

  it('large payloads come in several answers, one right after the other, and wait for no poll', async () => {
    const ran = new Set<unknown>();
    const one = await fixture.node({
      settings: { ...settings, concurrency: 1_000 },
      handlers: { work: (payload) => void ran.add((payload as { n: number }).n) },
    });
    const jobs = 40;
    const filling = Array.from({ length: 30_000 }, (_, n) => Math.sin(n));
    for (let n = 0; n < jobs; n += 1) {
      await one.store.insert([newJob({ name: 'work', payload: JSON.stringify({ n, filling }) })]);
    }
    const claims: number[] = [];
    one.events.on('turn', ({ claimed }) => {
      if (claimed > 0) claims.push(claimed);
    });
    const settled = one.count('settled', jobs);
    await one.runtime.start();
    await settled;
    expect(ran.size).toBe(jobs);
    expect(claims.length).toBeGreaterThan(1);
    expect(one.faults.calls('foreign')).toBeLessThan(2);
  });

  it('thousands of free slots are filled by claims of a bounded size', async () => {
    const one = await fixture.node({
      settings: { ...settings, concurrency: 2_000 },
      handlers: { work: () => {} },
    });
    await one.store.insert(Array.from({ length: 1_200 }, () => newJob({ name: 'work' })));
    const claims: number[] = [];
    one.events.on('turn', ({ claimed }) => void claims.push(claimed));
    const settled = one.count('settled', 1_200);
    await one.runtime.start();
    await settled;
    expect(Math.max(...claims)).toBe(MOST_CLAIMS);
  });

  it('reports of progress come in exchanges of a bounded size', async () => {
    const one = await fixture.node({
      settings: { ...settings, concurrency: 100 },
      handlers: {
        work: async (_payload, context) => {
          context.progress('x'.repeat(15_000));
          await goOn.promise;
        },
      },
    });
    const goOn = deferred();
    const sent: number[] = [];
    const exchange = one.real.exchange.bind(one.real);
    const all = deferred();
    one.real.exchange = async (request) => {
      sent.push(request.progress.length);
      const answer = await exchange(request);
      if (sent.reduce((sum, count) => sum + count, 0) === 100) all.resolve();
      return answer;
    };
    await one.store.insert(Array.from({ length: 100 }, () => newJob({ name: 'work' })));
    await one.runtime.start();
    await all.promise;
    goOn.resolve();
    expect(Math.max(...sent) * 15_000).toBeLessThan(1_000_000);
  });
});
