import { afterEach, describe, expect, it } from '@jest/globals';
import { begun, ChaosFixture, said, SOON, until } from './chaos-fixture.js';
import { LimitedRole } from './limited-role.js';
import { Network } from './network.js';
import { OwnServer } from './own-server.js';
import { type WorkerProcess } from './worker-process.js';

/** The database goes away, refuses, or falls silent: processes stay, nothing is lost, and work goes on as soon as it is back. */
const server = new OwnServer();
const chaos = new ChaosFixture('database-faults', [], server);
const networks: Network[] = [];

afterEach(() => Promise.all(networks.splice(0).map((network) => network.close())));

const OPTIONS = { ...SOON, concurrency: 5, maxCrashRedeliveries: 1_000 };

async function underLoad(): Promise<{ ids: string[]; nodes: WorkerProcess[] }> {
  const ids = await chaos.enqueue('chaos.work', { ms: 20, failures: 1 }, 300);
  const nodes = ['a', 'b'].map((name) => chaos.start(OPTIONS, name));
  await Promise.all(nodes.map((node) => node.until(begun(), 10)));
  return { ids, nodes };
}

async function wellInTheEnd(ids: string[], nodes: readonly WorkerProcess[]): Promise<void> {
  await chaos.ended(ids);
  expect(nodes.map(({ alive }) => alive)).toEqual(nodes.map(() => true));
  expect(nodes.flatMap(({ events }) => events.filter(said('unhandledRejection')))).toEqual([]);
  expect(await chaos.judge(ids, { budget: 1_000 })).toEqual([]);
  // It takes new work, too.
  const more = await until(() => chaos.enqueue('chaos.work', {}, 20));
  await chaos.ended(more);
  expect(await chaos.database.query(`select from ratchet.jobs where status <> 'succeeded'`)).toEqual([]);
}

describe('a restart of the database under load', () => {
  it.each(['fast', 'immediate'] as const)(
    '%s',
    async (how) => {
      const { ids, nodes } = await underLoad();
      await server.stop(how);
      await Promise.all(nodes.map((node) => node.until(said('lease', { held: false }))));
      await server.start();
      await wellInTheEnd(ids, nodes);
    },
    120_000,
  );
});

describe('a database that is read-only for a while, as after a failover to a standby', () => {
  it('claims and outcomes wait for it', async () => {
    const { ids, nodes } = await underLoad();
    const { database } = chaos;
    await database.query(`alter database ${database.name} set default_transaction_read_only = on`);
    await database.terminateBackends();
    await Promise.all(nodes.map((node) => node.until(said('lease', { held: false }))));
    await database.query(
      `begin read write; alter database ${database.name} reset default_transaction_read_only; commit`,
    );
    await database.terminateBackends();
    await wellInTheEnd(ids, nodes);
  }, 120_000);
});

describe('sessions that an administrator ends', () => {
  it('again and again under load', async () => {
    const { ids, nodes } = await underLoad();
    for (let round = 0; round < 8; round++) {
      await chaos.database.terminateBackends();
      ids.push(...(await until(() => chaos.enqueue('chaos.work', { ms: 10 }, 10))));
    }
    await wellInTheEnd(ids, nodes);
  }, 120_000);
});

describe('no connection is left for the nodes', () => {
  it('they wait for one', async () => {
    const role = await LimitedRole.on(chaos.database);
    const ids = await chaos.enqueue('chaos.work', { ms: 20, failures: 1 }, 100);
    const node = chaos.start(OPTIONS, 'a', { url: role.url });
    await node.until(begun(), 10);
    await role.exhaust();
    await node.until(said('lease', { held: false }));
    await role.relieve();
    await wellInTheEnd(ids, [node]);
    await node.end();
    await role.drop();
  }, 120_000);
});

describe('a black hole', () => {
  it('of all that a node sends: it claims nothing, others take its jobs, and it comes back', async () => {
    const network = await Network.to(chaos.database.url);
    networks.push(network);
    const ids = await chaos.enqueue('chaos.hold', {}, 5);
    const lost = chaos.start(SOON, 'a', { url: network.url });
    await lost.until(begun(), 5);
    network.swallow('all');
    const heir = chaos.start({ ...SOON, concurrency: 5 }, 'b');
    await heir.until(begun(), 5);
    await lost.until(said('lease', { held: false }));
    for (const id of ids) await chaos.go(id, lost.pid);
    network.heal();
    const [again] = await Promise.all([
      lost.until(said('registered')),
      lost.until(said('lease', { held: true })),
    ]);
    expect(again.node).toBe('a');
    const more = await chaos.enqueue('chaos.hold', {}, 3);
    await lost.until((event) => event.event === 'begin' && more.includes(event.job ?? ''), 3);
    for (const id of [...ids, ...more]) await chaos.go(id);
    await chaos.ended([...ids, ...more]);
    expect(await chaos.judge([...ids, ...more])).toEqual([]);
    expect(
      await chaos.database.query(
        'select crashes, count(*)::int as n from ratchet.jobs group by 1 order by 1',
      ),
    ).toEqual([
      { crashes: 0, n: 3 },
      { crashes: 1, n: 5 },
    ]);
  }, 90_000);

  it('of the LISTEN connection alone: jobs are found by polling', async () => {
    const network = await Network.to(chaos.database.url);
    networks.push(network);
    const node = chaos.start(SOON, 'a', { url: network.url });
    await node.until(said('coordinator', { state: 'up' }));
    network.swallow('listener');
    const ids = await chaos.enqueue('chaos.work', {}, 20);
    await chaos.ended(ids);
    expect(await chaos.judge(ids)).toEqual([]);
    expect(node.events.filter(said('lease'))).toEqual([]);
  }, 60_000);
});
