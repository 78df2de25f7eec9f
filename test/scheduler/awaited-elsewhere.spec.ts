import { afterEach, describe, expect, it } from '@jest/globals';
import { type ClusterSignal } from '../../lib/cluster/cluster-coordinator.js';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type JobStore } from '../../lib/store/job-store.js';
import { MemoryCoordinator, MemoryHub } from '../cluster/coordinators/memory-coordinator.js';
import { engineFixture } from '../engine/engine-fixture.js';
import { deferred } from '../support/engine-node.js';
import { FakeClock, settled } from '../support/fake-clock.js';
import { pollEvery } from '../support/poll.js';
import { resultWaiter } from '../support/results.js';

/** A process that awaits results, whose time passes only when the test says so: its rounds never come by themselves. */
function awaiting(store: JobStore, coordinator: MemoryCoordinator) {
  const clock = new FakeClock();
  const messages = new ClusterMessages(coordinator, 'web');
  const events = new EngineEvents();
  let answered: Promise<unknown> = Promise.resolve();
  const asked = {
    ended: (...args: Parameters<JobStore['ended']>) => {
      const answer = store.ended(...args);
      answered = answer.catch(() => undefined);
      return answer;
    },
  };
  const results = resultWaiter({ store: asked, messages, events, clock });
  return {
    results,
    messages,
    events,
    async pass(ms: number): Promise<void> {
      clock.advance(ms);
      await answered;
      await settled();
    },
  };
}

describe('a job that is awaited in another process', () => {
  const fixture = engineFixture();
  const coordinators: MemoryCoordinator[] = [];

  afterEach(async () => {
    for (const coordinator of coordinators.splice(0)) await coordinator.close();
  });

  function coordinatorOf(hub: MemoryHub): MemoryCoordinator {
    const coordinator = new MemoryCoordinator(hub);
    coordinators.push(coordinator);
    return coordinator;
  }

  async function setUp(run: () => unknown) {
    const hub = new MemoryHub();
    const coordinator = coordinatorOf(hub);
    const node = await fixture.node({
      settings: { ...pollEvery(3_600_000) },
      handlers: { work: { policy: { maxRetries: 0 }, run } },
      parts: { coordinator, messages: new ClusterMessages(coordinator, 'worker') },
    });
    const web = awaiting(node.store, coordinatorOf(hub));
    await node.runtime.start();
    const witness = coordinatorOf(hub);
    const next = (kind: ClusterSignal['kind']): Promise<ClusterSignal> =>
      new Promise((resolve) => {
        const off = witness.registerSignalListener((signal) => {
          if (signal.kind !== kind) return;
          off();
          resolve(signal);
        });
      });
    return { node, web, next };
  }

  it.each([
    ['succeeds', () => 'done', 'done'],
    [
      'fails',
      () => {
        throw new Error('no');
      },
      'JOB_FAILED',
    ],
  ])('is known there some ms after it %s, not at the next round', async (_, finish, expected) => {
    const end = deferred();
    const { node, web, next } = await setUp(async () => {
      await end.promise;
      return finish();
    });
    const begun = node.events.next('claimed');
    const [id] = await node.enqueue({});
    node.messages.newWork('default', 2);
    await begun;
    const result = web.results.result({ id: id as string }, undefined).catch((error: unknown) => error);
    const awaited = next('awaited');
    // The rounds are a second apart by now.
    for (let n = 0; n < 40; n += 1) await web.pass(100);
    expect(await awaited).toMatchObject({ kind: 'awaited', jobId: id, source: 'web' });
    await web.pass(60);
    const ended = next('ended');
    const heard = new Promise<void>((resolve) =>
      web.messages.onSignal(({ kind }) => {
        if (kind === 'ended') resolve();
      }),
    );
    end.resolve();
    expect(await ended).toMatchObject({ kind: 'ended', jobId: id, source: 'worker' });
    await heard;
    await web.pass(50);
    const answer = await Promise.race([result, settled().then(() => 'nothing is known')]);
    expect((answer as { code?: string }).code ?? answer).toBe(expected);
    await web.results.close();
  });

  it('is not told to the cluster when it ends unless somebody has awaited it', async () => {
    const { node, next } = await setUp(() => 'done');
    let told = false;
    void next('ended').then(() => (told = true));
    const done = node.events.next('settled');
    await node.enqueue({});
    node.messages.newWork('default', 2);
    await done;
    await settled();
    expect(told).toBe(false);
    expect(node.events.heard('settled')).toBe(false);
  });

  it('is known at once where it is canceled while it waits', async () => {
    const { node, web } = await setUp(() => 'done');
    const [id] = await node.enqueue({ delayMs: 3_600_000 });
    const result = web.results.result({ id: id as string }, undefined).catch((error: unknown) => error);
    for (let n = 0; n < 40; n += 1) await web.pass(100);
    await web.pass(60);
    await node.store.cancel(id as string);
    web.events.emit('withdrawn', { jobId: id as string, running: false });
    await web.pass(50);
    expect(await Promise.race([result, settled()])).toMatchObject({ code: 'JOB_CANCELED' });
    await web.results.close();
  });
});
