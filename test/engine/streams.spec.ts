import { describe, expect, it } from '@jest/globals';
import { type ProbeAnswer, type StreamPlace } from '../../lib/store/job-store.js';
import { newJob } from '../support/store.js';
import { engineFixture } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

describe('what stands at the head of a stream', () => {
  const fixture = engineFixture();

  it('due jobs of other nodes are passed over, told once with their names, and looked at again after a wakeup from behind', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    for (let batch = 0; batch < 10; batch += 1) {
      await one.store.insert(
        Array.from({ length: 100 }, () => newJob({ name: batch % 2 ? 'mail' : 'video' })),
      );
    }
    const settled = one.events.next('settled');
    const passed = one.events.next('passed_over');
    await one.enqueue({});
    await one.runtime.start();
    expect((await passed).names).toEqual(['mail', 'video']);
    await settled;
    await one.events.next('idle');
    // A row of ours before the passed-over ones.
    const again = one.events.next('settled');
    await one.store.insert([newJob({ name: 'work', runAt: new Date(Date.now() - 3_600_000) })]);
    one.messages.newWork('default', 2, { behind: true });
    await again;
    const warnings = fixture.logs.filter(({ line }) => line.includes('passed over'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.line).toMatch(/lane "default".*mail, video.*run a node that has their handlers/);
  });

  it('due jobs of other nodes that share one due time are read past', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    const runAt = new Date(Date.now() - 60_000);
    await one.store.insert(Array.from({ length: 900 }, () => newJob({ name: 'other', runAt })));
    const settled = one.events.next('settled');
    await one.enqueue({ runAt });
    await one.runtime.start();
    await settled;
  });

  it('behind a floor: a row that comes there is found at once by its wakeup, and without one by the next probe', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    const probe = one.real.probe.bind(one.real);
    // As if a pinned snapshot kept a million dead entries before the floor.
    one.real.probe = async (request): Promise<ProbeAnswer> => ({ ...(await probe(request)), tookMs: 5 });
    const floorsSent: (StreamPlace | undefined)[] = [];
    const exchange = one.real.exchange.bind(one.real);
    one.real.exchange = (request) => {
      floorsSent.push(request.floors[2]);
      return exchange(request);
    };
    await one.runtime.start();
    const raised = one.events.next('floor', ({ change }) => change === 'raised');
    const probed = one.events.next('probe');
    await one.enqueue({});
    await probed;
    await one.enqueue({});
    await raised;
    const claimed = one.events.next('settled');
    await one.enqueue({});
    await claimed;
    expect(floorsSent.at(-1)).toBeDefined();
    for (const hint of [{ behind: true }, undefined]) {
      const settled = one.events.next('settled');
      const [hidden] = await one.store.insert([
        newJob({ name: 'work', runAt: new Date(Date.now() - 3_600_000) }),
      ]);
      if (hint) one.messages.newWork('default', 2, hint);
      expect(await settled).toMatchObject({ jobId: (hidden as { id: string }).id });
    }
    const dropped = one.events.next('floor', ({ change }) => change === 'dropped');
    one.real.probe = async (request): Promise<ProbeAnswer> => ({ ...(await probe(request)), tookMs: 0.1 });
    expect(await dropped).toMatchObject({ place: undefined });
  });

  it('a suspect, which is taken from anywhere in its stream, moves no floor past what nobody claimed', async () => {
    const one = await fixture.node({ settings: { ...pollEvery(59_000) }, handlers: { work: () => {} } });
    // As if a pinned snapshot kept a million dead entries before the floor.
    one.real.probe = (): Promise<ProbeAnswer> => Promise.resolve({ oldest: {}, tookMs: 5 });
    await one.runtime.start();
    const raised = one.events.next('floor', ({ change }) => change === 'raised');
    const probed = one.events.next('probe');
    await one.enqueue({});
    await probed;
    await one.enqueue({});
    await raised;
    await one.store.insert([newJob({ name: 'work' })]);
    await one.store.insert([newJob({ name: 'work' })]);
    await fixture.database.query(
      `update ratchet.job set crashes = 2 where id = (select id from ratchet.job order by id desc limit 1)`,
    );
    // Only the suspect is wanted: it stands behind the other.
    const exchange = one.real.exchange.bind(one.real);
    one.real.exchange = (request) => exchange(request.want > 0 ? { ...request, want: 1 } : request);
    const settled = one.count('settled', 2);
    one.messages.newWork('default', 2);
    await settled;
  });

  it('an idle bucket without a floor sends no probe', async () => {
    const one = await fixture.node({ settings: { ...pollEvery(10) }, handlers: { work: () => {} } });
    await one.runtime.start();
    await one.count('turn', 20);
    expect(one.faults.calls('probe')).toBe(0);
  });
});
