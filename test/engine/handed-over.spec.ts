import { describe, expect, it } from '@jest/globals';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { type WakeupHint } from '../../lib/cluster/cluster-coordinator.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { engineFixture } from './engine-fixture.js';

/** What other nodes would hear. */
function heardElsewhere() {
  const heard: { lane: string; hint: WakeupHint }[] = [];
  const coordinator = Object.assign(new NoCoordinator(), {
    notifyNewWork: (_priority: number, _source: string, lane: string, hint: WakeupHint = {}) =>
      void heard.push({ lane, hint }),
  });
  return { heard, messages: new ClusterMessages(coordinator, 'leaving') };
}

describe('a node that leaves', () => {
  const fixture = engineFixture();

  it('tells the others of the jobs that it gives back', async () => {
    const { heard, messages } = heardElsewhere();
    const one = await fixture.node({
      handlers: {
        work: (_payload, { signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
      },
      settings: { drainTimeoutMs: 1 },
      parts: { messages },
    });
    await one.runtime.start();
    const claimed = one.count('claimed', 1);
    await one.enqueue({});
    await claimed;
    heard.length = 0;
    await one.runtime.close();
    expect(heard).toContainEqual({ lane: 'default', hint: { behind: true } });
  });

  it('tells them of the retry that only it knows the time of', async () => {
    const { heard, messages } = heardElsewhere();
    const one = await fixture.node({
      handlers: {
        work: {
          policy: { backoff: { type: 'fixed', delay: '1h', jitter: 0 } },
          run: () => {
            throw new Error('not now');
          },
        },
      },
      parts: { messages },
    });
    await one.runtime.start();
    const settled = one.count('settled', 1);
    await one.enqueue({});
    await settled;
    heard.length = 0;
    await one.runtime.close();
    const [hint] = heard.filter(({ hint: { dueInMs } }) => dueInMs !== undefined);
    expect(hint?.hint.dueInMs).toBeGreaterThan(3_500_000);
  });
});
