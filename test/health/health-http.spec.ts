import { describe, expect, it } from '@jest/globals';
import { JobScheduler, RatchetMonitor, RatchetRuntime, SystemClock } from 'nestjs-ratchet';
import { createTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { HealthFixture } from './health-app.js';

const fixture = new HealthFixture();

async function proxied(): Promise<TcpProxy> {
  const proxy = await createTcpProxy(fixture.database.url);
  fixture.closes(() => proxy.close());
  return proxy;
}

/** Short enough for a test, and the shortest that the module takes. */
const heartbeat = { interval: '300ms', grace: '1s' } as const;

/** Time goes by and no timer rings, as while something keeps the event loop busy. */
class StallingClock extends SystemClock {
  #aheadMs = 0;
  #held: (() => void)[] | undefined;

  stall(ms: number): void {
    this.#aheadMs += ms;
    this.#held = [];
  }

  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const callback of held) callback();
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#aheadMs;
  }

  override timer(ms: number, callback: () => void, background?: boolean): () => void {
    return super.timer(ms, () => (this.#held ? void this.#held.push(callback) : callback()), background);
  }
}

describe('health over HTTP', () => {
  it('is live and ready while it works, and says how it is', async () => {
    const app = await fixture.boot({ connection: fixture.database.url, nodeId: 'pod-1' });
    await app.events.next('beat');
    const ready = await app.until(
      () => app.ready(),
      ({ details }) => details['coordinator'] === 'connected',
    );
    expect(ready).toMatchObject({
      code: 200,
      details: { status: 'up', nodeId: 'pod-1', state: 'running', worker: true, running: 0, nodes: 1 },
    });
    expect(ready.details).not.toHaveProperty('degraded');
    expect(await app.live()).toMatchObject({ code: 200, details: { status: 'up' } });
    expect(JSON.stringify(ready)).not.toContain(new URL(fixture.database.url).port);
  });

  it('is live but not ready until it has begun, and ready when the database is there', async () => {
    const proxy = await proxied();
    const app = await fixture.boot({ connection: proxy.url, nodeId: 'pod-1' }, () => {
      proxy.refuse(true);
      proxy.cut();
    });
    expect(await app.ready()).toMatchObject({
      code: 503,
      details: {
        status: 'down',
        reason: 'not started yet: registration fails and is tried again',
        state: 'starting',
        nodeId: 'pod-1',
        lastFault: { where: 'registration', kind: 'unavailable' },
      },
    });
    expect(await app.live()).toMatchObject({ code: 200, details: { status: 'up' } });
    proxy.refuse(false);
    await app.until(
      () => app.ready(),
      ({ code }) => code === 200,
    );
  });

  it('without a worker it is ready as soon as it has booted, whatever becomes of the database', async () => {
    const proxy = await proxied();
    const app = await fixture.boot({ connection: proxy.url, worker: false });
    proxy.refuse(true);
    proxy.cut();
    const { code, details } = await app.ready();
    expect(code).toBe(200);
    expect(details).toMatchObject({ status: 'up', state: 'running', worker: false, coordinator: 'none' });
    expect(details).not.toHaveProperty('heartbeatAgeMs');
    await app.app.get(RatchetRuntime).drain();
    expect(await app.ready()).toMatchObject({ code: 503, details: { state: 'drained' } });
  });

  it('turns not ready when it is cut off for longer than the grace, stays live, and comes back', async () => {
    const proxy = await proxied();
    const app = await fixture.boot({ connection: proxy.url, heartbeat });
    await app.events.next('beat');
    proxy.freeze();
    const down = await app.until(
      () => app.ready(),
      ({ code }) => code === 503,
    );
    expect(down.details).toMatchObject({
      status: 'down',
      reason: expect.stringMatching(/no heartbeat was acknowledged within 1000 ms \(the last \d+ ms ago\)/),
    });
    expect(await app.live()).toMatchObject({ code: 200, details: { status: 'up' } });
    proxy.cut();
    proxy.thaw();
    await app.until(
      () => app.ready(),
      ({ code }) => code === 200,
    );
    expect(await app.live()).toMatchObject({ code: 200 });
  });

  it('is live but not ready from the first word of a shutdown on, while jobs hold the drain', async () => {
    const app = await fixture.boot({ connection: fixture.database.url });
    const begun = app.events.next('claimed');
    await app.app.get(JobScheduler).enqueueNamed('held', {});
    await begun;
    expect(await app.ready()).toMatchObject({ code: 200, details: { running: 1 } });
    const drained = app.app.get(RatchetRuntime).drain();
    expect(await app.ready()).toMatchObject({
      code: 503,
      details: { status: 'down', reason: 'not running any more: draining', running: 1 },
    });
    expect(await app.live()).toMatchObject({ code: 200, details: { state: 'draining' } });
    app.go.resolve();
    await drained;
    expect(await app.ready()).toMatchObject({ code: 503, details: { state: 'drained', running: 0 } });
  });

  it('is ready but degraded without LISTEN', async () => {
    const proxy = await proxied();
    const app = await fixture.boot({ connection: proxy.url });
    await app.until(
      () => app.ready(),
      ({ details }) => details['coordinator'] === 'connected',
    );
    proxy.refuse(true);
    await fixture.database.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and query ilike '%listen%'`);
    const degraded = await app.until(
      () => app.ready(),
      ({ details }) => details['coordinator'] === 'down',
    );
    expect(degraded).toMatchObject({
      code: 200,
      details: { status: 'up', degraded: [expect.stringContaining('messages of other nodes do not arrive')] },
    });
    expect(await app.live()).toMatchObject({ code: 200 });
    proxy.refuse(false);
    const well = await app.until(
      () => app.ready(),
      ({ details }) => details['coordinator'] === 'connected',
    );
    expect(well.details).not.toHaveProperty('degraded');
  });

  it('is not live while its timers stand still beyond the stall limit', async () => {
    const clock = new StallingClock();
    const app = await fixture.boot({
      connection: fixture.database.url,
      clock: { useValue: clock },
      heartbeat: { ...heartbeat, stallLimit: '5s' },
    });
    await app.events.next('beat');
    expect(await app.live()).toMatchObject({ code: 200 });
    clock.stall(6_000);
    expect(await app.live()).toMatchObject({
      code: 503,
      details: {
        status: 'down',
        reason: expect.stringMatching(
          /^the engine's timer is \d+ ms overdue \(heartbeat.stallLimit is 5000 ms\)$/,
        ),
      },
    });
    clock.goOn();
    await app.until(
      () => app.live(),
      ({ code }) => code === 200,
    );
  });

  it('says for a minute that a handler kept the event loop busy', async () => {
    const app = await fixture.boot({ connection: fixture.database.url, heartbeat });
    await app.events.next('beat');
    const told = app.events.next('loop_lag');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
    await told;
    const { code, details } = await app.ready();
    expect(code).toBe(200);
    expect(details['degraded']).toEqual([expect.stringMatching(/^the event loop stood still for \d+ ms/)]);
  });

  it('lists the nodes with what they are doing', async () => {
    const app = await fixture.boot({ connection: fixture.database.url, nodeId: 'pod-1' });
    await app.events.next('beat');
    const monitor = app.app.get(RatchetMonitor);
    expect(await monitor.nodes()).toMatchObject([
      { id: 'pod-1', status: 'alive', lanes: ['default'], handlers: ['held'], pid: process.pid },
    ]);
    expect(monitor.snapshot().lanes).toMatchObject([
      { lane: 'default', bucket: 'active', poll: expect.any(Object), slots: 10, running: 0, waiting: 0 },
    ]);
    const other = await fixture.boot({ connection: fixture.database.url, nodeId: 'pod-2' });
    await other.events.next('beat');
    await fixture.database.query(
      `update ratchet.node set heartbeat_at = now() - interval '29 seconds', state = 'draining' where id = 'pod-2'`,
    );
    expect(await monitor.nodes()).toMatchObject([{ id: 'pod-1' }, { id: 'pod-2', status: 'draining' }]);
    await fixture.database.query(
      `update ratchet.node set heartbeat_at = now() - interval '31 seconds' where id = 'pod-2'`,
    );
    expect(await monitor.nodes()).toMatchObject([{ id: 'pod-1' }, { id: 'pod-2', status: 'stale' }]);
  });
});
