import { describe, expect, it } from '@jest/globals';
import { RatchetMonitor, type RatchetSnapshot } from 'nestjs-ratchet';
import { RatchetHealthIndicator } from 'nestjs-ratchet/health';
import { loadTerminus } from '../../lib/health/terminus.js';

const WELL: RatchetSnapshot = {
  state: 'running',
  worker: true,
  node: { id: 'pod-1', epoch: '7' },
  running: 3,
  slots: 10,
  lanes: [{ lane: 'default', bucket: 'active', slots: 10, running: 3, waiting: 0 }],
  buckets: [],
  heartbeat: { held: true, acknowledgedAgeMs: 200, graceMs: 30_000, nodes: 2 },
  eventLoop: { overdueMs: 0, worstMs: 5, stallLimitMs: 300_000 },
  coordinator: { state: 'connected' },
  faults: { standing: [] },
};

async function check(change: Partial<RatchetSnapshot>) {
  const monitor = new RatchetMonitor({
    snapshot: () => ({ ...WELL, ...change }),
    nodes: () => Promise.resolve([]),
  });
  const indicator = new RatchetHealthIndicator(monitor, await loadTerminus());
  return { live: indicator.isLive('it').it, ready: indicator.isReady('it').it };
}

describe('health rules', () => {
  it('a well node is live and ready, without complaints', async () => {
    const { live, ready } = await check({});
    expect([live.status, ready.status]).toEqual(['up', 'up']);
    expect(ready).toMatchObject({ running: 3, concurrency: 10, heartbeatAgeMs: 200, nodes: 2 });
    expect(ready).not.toHaveProperty('degraded');
    expect(ready).not.toHaveProperty('reason');
  });

  it.each([
    ['idle', 'up', 'down'],
    ['starting', 'up', 'down'],
    ['running', 'up', 'up'],
    ['draining', 'up', 'down'],
    ['drained', 'up', 'down'],
    ['closed', 'down', 'down'],
    ['asleep' as 'idle', 'down', 'down'],
  ] as const)('%s: live %s, ready %s', async (state, live, ready) => {
    const found = await check({ state });
    expect([found.live.status, found.ready.status]).toEqual([live, ready]);
    if (live === 'down') expect(found.live.reason).toContain(state);
  });

  it('a node that will never begin is neither', async () => {
    const found = await check({ state: 'starting', startFault: 'no thread' });
    for (const { status, reason } of [found.live, found.ready])
      expect([status, reason]).toEqual(['down', 'the node will never begin: no thread']);
  });

  it.each<[string, Partial<RatchetSnapshot>]>([
    ['messages of other nodes do not arrive (cut)', { coordinator: { state: 'down', detail: 'cut' } }],
    ['fails and is tried again: exchange', { faults: { standing: ['exchange'] } }],
    ['history partitions exist for 2 more days only', { partitions: { daysAhead: 2, ageMs: 0 } }],
    [
      'the last acknowledged heartbeat is 16000 ms old',
      { heartbeat: { ...WELL.heartbeat!, acknowledgedAgeMs: 16_000 } },
    ],
    ['the event loop stood still for 31000 ms', { eventLoop: { ...WELL.eventLoop!, worstMs: 31_000 } }],
    ['lane "mail" has no bucket', { lanes: [{ lane: 'mail', slots: 1, running: 0, waiting: 0 }] }],
  ])('degraded: %s', async (words, change) => {
    const { live, ready } = await check(change);
    expect([live.status, ready.status]).toEqual(['up', 'up']);
    expect(ready.degraded).toEqual([expect.stringContaining(words)]);
  });

  it('names the package that is not installed, or does not load', async () => {
    const missing = Object.assign(new Error('no such package'), { code: 'ERR_MODULE_NOT_FOUND' });
    await expect(loadTerminus(() => Promise.reject(missing))).rejects.toMatchObject({
      code: 'HEALTH_PACKAGE_MISSING',
      message:
        'HEALTH_PACKAGE_MISSING: RatchetHealthModule: the package @nestjs/terminus is not installed; npm install @nestjs/terminus',
      cause: missing,
    });
    await expect(loadTerminus(() => Promise.resolve({} as never))).rejects.toMatchObject({
      code: 'HEALTH_PACKAGE_MISSING',
      message: expect.stringContaining('could not be loaded'),
    });
  });
});
