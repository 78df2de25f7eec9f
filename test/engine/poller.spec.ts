import { describe, expect, it } from '@jest/globals';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { type CoordinatorHealth } from '../../lib/cluster/cluster-coordinator.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { newJob } from '../support/store.js';
import { deferred } from '../support/engine-node.js';
import { pollEvery } from '../support/poll.js';
import { engineFixture } from './engine-fixture.js';

class Transport extends NoCoordinator {
  state: CoordinatorHealth['state'] = 'connected';

  override health(): CoordinatorHealth {
    return { state: this.state };
  }
}

describe('the poller of a node', () => {
  const fixture = engineFixture();
  const poll = { burstMs: 10, minMs: 20, maxMs: 30, deepIdleMs: 3_600_000, deepIdleAfterMs: 200 };

  it('goes from burst over idle into deep idle, and leaves it when messages no longer arrive', async () => {
    const transport = new Transport();
    const one = await fixture.node({
      handlers: { work: () => {} },
      settings: { poll },
      parts: { coordinator: transport, messages: new ClusterMessages(transport, 'one') },
    });
    const states: string[] = [];
    one.events.on('pace', ({ state }) => states.at(-1) === state || states.push(state));
    // Its next poll is far enough away not to come before what follows.
    const deep = one.events.next('pace', ({ waitMs = 0 }) => waitMs > 300);
    await one.runtime.start();
    await expect(deep).resolves.toMatchObject({ lane: 'default', state: 'deep_idle' });
    expect(states).toEqual(['burst', 'idle', 'deep_idle']);

    // Inserted without a word: only a poll finds it, and the next one would be far away.
    const settled = one.count('settled', 1);
    await one.real.insert([newJob({ name: 'work' })]);
    transport.state = 'down';
    one.events.emit('coordinator', { state: 'down', detail: 'by a test' });
    await settled;
    expect(states[3]).toBe('idle');
  });

  it('is not in deep idle without a coordinator: a job that nobody told of is found', async () => {
    const one = await fixture.node({ handlers: { work: () => {} }, settings: { poll } });
    const states = new Set<string>();
    one.events.on('pace', ({ state }) => states.add(state));
    // Long after deep idle would have begun.
    const turns = one.count('turn', 20);
    await one.runtime.start();
    await turns;
    const settled = one.count('settled', 1);
    await one.real.insert([newJob({ name: 'work' })]);
    await settled;
    expect([...states]).toEqual(['burst', 'idle']);
  });

  it('does not poll while it is saturated, and is in a burst when a slot is free', async () => {
    const held = deferred();
    const one = await fixture.node({
      handlers: { work: () => held.promise },
      settings: { concurrency: 1, ...pollEvery(20) },
    });
    await one.runtime.start();
    const saturated = one.events.next('pace', ({ state }) => state === 'saturated');
    await one.enqueue({}, {});
    await expect(saturated).resolves.toMatchObject({ waitMs: undefined });
    const burst = one.events.next('pace');
    const settled = one.count('settled', 2);
    let polls = 0;
    one.events.on('turn', ({ sent }) => void (polls += sent === 0 ? 1 : 0));
    // Another node, of other jobs, measures the time: it polls at the same pace.
    const other = await fixture.node({ handlers: { other: () => {} }, settings: pollEvery(20) });
    const polled = other.count('turn', 10);
    await other.runtime.start();
    await polled;
    expect(polls).toBe(0);
    held.resolve();
    await settled;
    await expect(burst).resolves.toMatchObject({ state: 'burst' });
  });
});
