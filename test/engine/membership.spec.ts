import { describe, expect, it } from '@jest/globals';
import { type Beater, type BeatListener } from '../../lib/cluster/heartbeat/beater.js';
import { engineFixture } from './engine-fixture.js';

/** Nothing is acknowledged until the test says so. */
class SilentBeater implements Beater {
  acknowledgedAtMs: number | undefined;
  stopped = false;
  #listener: BeatListener | undefined;

  start(listener: BeatListener): void {
    this.#listener = listener;
  }

  update(): void {}

  beatNow(): void {}

  stop(): Promise<void> {
    this.stopped = true;
    return Promise.resolve();
  }

  acknowledge(): void {
    this.acknowledgedAtMs = performance.now();
    this.#listener?.answered({ alive: true, nodes: 1, lost: false, notices: [], scheduleInMs: undefined });
  }
}

describe('a node as a member', () => {
  const fixture = engineFixture();

  it('claims nothing in buckets that are opened while its lease is lost', async () => {
    const beater = new SilentBeater();
    const one = await fixture.node({
      handlers: { work: () => {} },
      settings: { heartbeat: { baseMs: 1_000, graceMs: 1_000, stallMs: 60_000 } },
      parts: { beater: () => Promise.resolve(beater) },
    });
    const lost = one.events.next('lease');
    one.debug.at('start.registered', async () => {
      await lost;
    });
    await one.runtime.start();
    expect((await lost).held).toBe(false);
    let claimed = 0;
    one.events.on('claimed', () => (claimed += 1));
    const [id] = await one.enqueue({});
    for (let looks = 0; looks < 30; looks += 1) expect((await one.store.get(id!))!.status).toBe('pending');
    expect(claimed).toBe(0);
    const settled = one.count('settled', 1);
    beater.acknowledge();
    await settled;
    expect(await one.store.get(id!)).toMatchObject({ status: 'succeeded' });
  });

  it.each(['rescueOwn', 'openBucket'] as const)(
    'a boot that fails for good in %s leaves no row and no heartbeat',
    async (method) => {
      const beater = new SilentBeater();
      const one = await fixture.node({
        handlers: { work: () => {}, mail: { policy: { lane: 'mail' }, run: () => {} } },
        parts: { beater: () => Promise.resolve(beater) },
      });
      void one.faults.fail(method, { kind: 'fatal', when: 'before' });
      await expect(one.runtime.start()).rejects.toThrow('made by a test');
      expect(beater.stopped).toBe(true);
      expect(await fixture.database.query('select 1 from ratchet.node')).toEqual([]);
      expect(await fixture.database.query('select 1 from ratchet.bucket')).toEqual([]);
    },
  );
});
