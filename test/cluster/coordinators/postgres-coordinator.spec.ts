import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type Wakeup } from '../../../lib/cluster/cluster-coordinator.js';
import { channelOf } from '../../../lib/store/postgres/statements/listen.js';
import { captureLogs } from '../../support/engine-node.js';
import { createTcpProxy } from '../../support/tcp-proxy.js';
import { createStore } from '../../support/store.js';
import { heard, LISTENERS, PostgresFixture, type TestCoordinator } from './postgres-fixture.js';

let fixture: PostgresFixture;
let logs: ReturnType<typeof captureLogs>;

beforeAll(async () => {
  Logger.overrideLogger(false);
  fixture = await PostgresFixture.create();
});
beforeEach(() => {
  logs = captureLogs();
});
afterEach(async () => {
  fixture.network.restore();
  await fixture.closeCoordinators();
});
afterAll(() => fixture.close());

const CHANNEL = 'ratchet:ratchet';

const lines = (text: RegExp): string[] => logs.map(({ line }) => line).filter((line) => text.test(line));

function nextWakeup({ coordinator }: TestCoordinator, lane: string): Promise<Wakeup> {
  return heard(
    (listener: (wakeup: Wakeup) => void) => coordinator.registerWakeupListener(listener),
    (wakeup) => wakeup.lane === lane,
  );
}

function nextCatchUp({ coordinator }: TestCoordinator): Promise<undefined> {
  return heard((listener: (nothing: undefined) => void) =>
    coordinator.registerCatchUpListener(() => listener(undefined)),
  );
}

async function notifications(work: () => Promise<void>): Promise<string[]> {
  const client = await fixture.database.connect();
  const payloads: string[] = [];
  client.on('notification', ({ payload }) => payloads.push(payload ?? ''));
  await client.query(`listen "${CHANNEL}"`);
  await work();
  // What was committed before this statement is delivered before its answer.
  await client.query('select 1');
  return payloads;
}

describe('PostgresCoordinator', () => {
  it('listens from the first listener on, on one connection of its own, and says so once', async () => {
    const node = fixture.make();
    expect(node.clients).toHaveLength(0);
    expect(node.coordinator.health()).toMatchObject({ state: 'none' });
    const up = node.next('connected');
    const caughtUp = nextCatchUp(node);
    node.coordinator.registerWakeupListener(() => undefined);
    node.coordinator.registerSignalListener(() => undefined);
    expect((await up).since).toBeInstanceOf(Date);
    await caughtUp;
    expect(await fixture.database.query(LISTENERS)).toHaveLength(1);
    const [{ name } = { name: '' }] = await fixture.database.query<{ name: string }>(
      `select application_name as name from pg_stat_activity where pid in (${LISTENERS})`,
    );
    expect(name).toMatch(/^ratchet\/node-\d+$/);
    expect(logs).toEqual([]);
  });

  it('never listens in a process without a worker, which tells others all the same', async () => {
    const web = fixture.make({ worker: false });
    const worker = await fixture.listening();
    web.coordinator.registerSignalListener(() => undefined);
    const hears = nextWakeup(worker, 'mail');
    web.coordinator.notifyNewWork(3, 'web', 'mail', { dueInMs: 60_000 });
    expect(await hears).toMatchObject({ lane: 'mail', priority: 3, source: 'web' });
    expect(web.clients).toHaveLength(0);
    expect(await fixture.database.query(LISTENERS)).toHaveLength(1);
  });

  it('tells outside every transaction: one that is open elsewhere holds nothing up', async () => {
    const [a, b] = [fixture.make(), await fixture.listening()];
    const other = await fixture.database.connect();
    await other.query(`begin; select pg_notify('elsewhere', 'x'); update ratchet.node set version = 'y'`);
    const hears = nextWakeup(b, 'mail');
    a.coordinator.notifyNewWork(2, 'a', 'mail');
    await hears;
    await other.query('rollback');
  });

  it('tells nobody where there is no other node', async () => {
    const alone = fixture.make({ nodeId: 'somebody-else' });
    const sent = await notifications(async () => {
      alone.coordinator.notifyNewWork(2, 'alone', 'mail');
      await alone.coordinator.close();
    });
    expect(sent).toEqual([]);
    const two = fixture.make();
    const sentByTwo = await notifications(async () => {
      two.coordinator.notifyNewWork(2, 'two', 'mail');
      await two.coordinator.close();
    });
    expect(sentByTwo).toHaveLength(1);
  });

  it('keeps schemas apart', async () => {
    const other = fixture.store('other');
    await other.open();
    const there = await fixture.listening({ store: other });
    const here = await fixture.listening();
    const lanes: string[] = [];
    there.coordinator.registerWakeupListener(({ lane }) => lanes.push(lane));
    const hears = nextWakeup(here, 'mail');
    fixture.make().coordinator.notifyNewWork(2, 'a', 'mail');
    await hears;
    expect(lanes).toEqual([]);
  });

  it('has a channel for each schema, also where the name is too long', () => {
    expect(channelOf('ratchet')).toBe(CHANNEL);
    const long = ['x'.repeat(63), `${'x'.repeat(62)}y`, 'ü'.repeat(31), `${'ü'.repeat(30)}xy`].map(channelOf);
    for (const name of long) {
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
      expect(name).not.toContain('\uFFFD');
    }
    expect(new Set(long).size).toBe(4);
  });

  it('works in a schema with a long name that needs quotes', async () => {
    const schema = `${'"Über" '.repeat(7)}x`;
    const stores = [fixture.store(schema), fixture.store(schema)] as const;
    await stores[0].open();
    await stores[0].registerNode({ id: 'n', host: 'h', pid: 1, version: '1', lanes: [], handlers: [] });
    const [a, b] = [fixture.make({ store: stores[0] }), await fixture.listening({ store: stores[1] })];
    const hears = nextWakeup(b, 'mail');
    a.coordinator.notifyNewWork(2, 'a', 'mail');
    await hears;
  });

  it('ignores what somebody else notifies, with one line, whatever its number', async () => {
    // In earnest: an answer behind a storm takes longer than these tests would wait.
    const node = await fixture.listening({ timing: {} });
    const heardLanes: string[] = [];
    node.coordinator.registerWakeupListener(({ lane }) => heardLanes.push(lane));
    await fixture.database.query(`select pg_notify($1, 'noise ' || n) from generate_series(1, 20000) n`, [
      CHANNEL,
    ]);
    await fixture.database.query(`select pg_notify($1, '')`, [CHANNEL]);
    const hears = nextWakeup(node, 'after');
    fixture.make().coordinator.notifyNewWork(2, 'a', 'after');
    await hears;
    expect(heardLanes).toEqual(['after']);
    expect(lines(/ignored/)).toHaveLength(1);
  });

  it('tells a thousand signals of long names in payloads that PostgreSQL takes', async () => {
    const [a, b] = [fixture.make(), await fixture.listening()];
    const ids = new Set<string>();
    b.coordinator.registerSignalListener((signal) => {
      if (signal.kind !== 'hungry') ids.add(signal.jobId);
    });
    const source = '\u{1F427}'.repeat(32);
    for (let n = 0; n < 1_000; n += 1) {
      a.coordinator.publish({ kind: 'cancel', source, jobId: `job-${n}`, claimSeq: '1' });
    }
    const hears = nextWakeup(b, 'after');
    a.coordinator.notifyNewWork(2, source, 'after');
    await hears;
    expect(ids.size).toBe(1_000);
  });
});

describe('PostgresCoordinator, when its connection is lost', () => {
  /** Waits until what is missed would be told of, and messages arrive again. */
  async function recovers(
    node: TestCoordinator,
    harm: () => unknown,
    mend: () => unknown = () => undefined,
  ): Promise<void> {
    const down = node.next('down');
    await harm();
    expect((await down).detail).toMatch(/./);
    const [up, caughtUp] = [node.next('connected'), nextCatchUp(node)];
    await mend();
    await Promise.all([up, caughtUp]);
    const hears = nextWakeup(node, 'after');
    const speaker = fixture.make();
    speaker.coordinator.notifyNewWork(2, 'a', 'after');
    await hears;
    expect(lines(/^not listening on channel ratchet:ratchet \(/)).toHaveLength(1);
    expect(lines(/^listening on channel ratchet:ratchet again, after \d+\.\d s/)).toHaveLength(1);
    expect(await fixture.database.query(LISTENERS)).toHaveLength(1);
  }

  it('notices a backend that was terminated', async () => {
    const node = await fixture.listening();
    await recovers(node, () =>
      fixture.database.query(`select pg_terminate_backend(pid) from (${LISTENERS}) as listeners`),
    );
  });

  it('notices an UNLISTEN * by hand', async () => {
    const node = await fixture.listening();
    await recovers(node, () => node.clients[0]!.query('unlisten *'));
  });

  it('notices a network that swallows everything, without a FIN', async () => {
    const proxy = await createTcpProxy(fixture.database.url);
    const store = createStore(proxy.url);
    const node = await fixture.listening({ store });
    await recovers(
      node,
      () => proxy.freeze(),
      () => proxy.thaw(),
    );
    await node.coordinator.close();
    await store.close();
    await proxy.close();
  });

  it('notices one that begins to swallow while it connects', async () => {
    const proxy = await createTcpProxy(fixture.database.url);
    proxy.freeze();
    const store = createStore(proxy.url);
    const node = fixture.make({ store });
    const down = node.next('down');
    node.coordinator.registerWakeupListener(() => undefined);
    expect(node.coordinator.health().state).toBe('connecting');
    await down;
    const up = node.next('connected');
    proxy.thaw();
    await up;
    await node.coordinator.close();
    await store.close();
    await proxy.close();
  });

  it('comes back after a server that was away, and logs no more than one line a second meanwhile', async () => {
    const node = await fixture.listening();
    await recovers(
      node,
      async () => {
        fixture.network.refuse();
        for (let n = 0; n < 2_000; n += 1) node.coordinator.notifyNewWork(2, 'a', `lane-${n}`);
      },
      async () => {
        await node.attempts(5);
        expect(logs.length).toBeLessThanOrEqual(2);
        fixture.network.restore();
      },
    );
  });

  it('survives an error that has no words, and settings that cannot be had', async () => {
    const store = createStore(fixture.database.url, {
      engine: () => Promise.reject(Object.assign(new Error(''), { code: 'EVAULT' })),
    });
    const node = fixture.make({ store });
    const down = node.next('down');
    node.coordinator.registerWakeupListener(() => undefined);
    expect((await down).detail).toContain('EVAULT');
    await node.coordinator.close();
    await store.close();
  });
});

describe('PostgresCoordinator, at the close', () => {
  it.each([
    ['the database answers', () => undefined],
    ['the database refuses', () => fixture.network.refuse()],
    ['the database is silent', () => fixture.network.swallow()],
  ])('leaves nothing behind when %s', async (_state, harm) => {
    const node = await fixture.listening();
    harm();
    for (let n = 0; n < 100; n += 1) node.coordinator.notifyNewWork(2, 'a', `lane-${n}`);
    const before = performance.now();
    await node.coordinator.close();
    await node.coordinator.close();
    expect(performance.now() - before).toBeLessThan(3_000);
    fixture.network.restore();
    await node.store.close();
    expect(node.clients.map((client) => client.listenerCount('notification'))).toEqual([1]);
    expect(node.clients.every((client) => isDestroyed(client))).toBe(true);
    expect(node.coordinator.health()).toMatchObject({ state: 'none' });
    const attempts = node.clients.length;
    node.coordinator.registerWakeupListener(() => undefined);
    expect(node.clients).toHaveLength(attempts);
  });

  it('leaves no session on the server', async () => {
    const sessions = (): Promise<unknown[]> =>
      fixture.database.query(`select 1 from pg_stat_activity where application_name = 'ratchet/leaver'`);
    const node = await fixture.listening({ nodeId: 'leaver' });
    expect(await sessions()).toHaveLength(1);
    await node.coordinator.close();
    // The server hears of the end a moment later than the client.
    while ((await sessions()).length > 0) await nextTick();
  });

  it('tells what is pending one last time', async () => {
    const [a, b] = [fixture.make(), await fixture.listening()];
    const hears = nextWakeup(b, 'second');
    a.coordinator.notifyNewWork(2, 'a', 'first');
    await nextTick();
    a.coordinator.notifyNewWork(2, 'a', 'second');
    await a.coordinator.close();
    await hears;
  });
});

function isDestroyed(client: object): boolean {
  return (client as { connection: { stream: { destroyed: boolean } } }).connection.stream.destroyed;
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
