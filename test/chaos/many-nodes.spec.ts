import { describe, expect, it } from '@jest/globals';
import { defineJob } from 'nestjs-ratchet';
import { begun, ChaosFixture, size, SOON, until } from './chaos-fixture.js';
import { type WorkerProcess } from './worker-process.js';

/** Processes that end without a word: each job ends in one recorded outcome, soon. */
const chaos = new ChaosFixture('many-nodes');

describe('SIGKILL', () => {
  it('of one node after another under load: those that are left take over, under the same ids and under new ones', async () => {
    const ids: string[] = [];
    const options = { ...SOON, concurrency: 5, maxCrashRedeliveries: 1000 };
    const nodes = [chaos.start(options, 'a'), chaos.start(options, 'b')];
    /** Until the node has had its share, however slow it was to start. */
    const feed = async (node: WorkerProcess): Promise<void> => {
      const fed = new AbortController();
      const share = node.until(begun(), 8).finally(() => fed.abort());
      for (let n = 0; !fed.signal.aborted; n++) {
        ids.push((await chaos.scheduler.enqueueNamed('chaos.work', { ms: n % 30, failures: n % 3 })).id);
      }
      await share;
    };
    for (let kills = 0; kills < size(2, 4); kills++) {
      const victim = nodes.shift()!;
      await feed(victim);
      victim.kill();
      // Every other one comes back under its own id, as a pod of a stateful set does.
      nodes.push(chaos.start(options, kills % 2 === 0 ? victim.nodeId : `new-${kills}`));
      ids.push(...(await chaos.enqueue('chaos.work', { ms: 5 }, 20)));
    }
    await chaos.ended(ids);
    expect(await chaos.judge(ids, { budget: 1000 })).toEqual([]);
    expect(
      await chaos.database.query('select status, count(*)::int as n from ratchet.jobs group by status'),
    ).toEqual([{ status: 'succeeded', n: ids.length }]);
  }, 120_000);

  it('of all nodes right after thousands of jobs were enqueued: one that starts then runs them all', async () => {
    const nodes = [chaos.start(SOON, 'a'), chaos.start(SOON, 'b')];
    await Promise.all(nodes.map((node) => node.ready()));
    const handles = await chaos.scheduler.enqueueMany(
      defineJob<object>('chaos.child'),
      Array.from({ length: size(1_500, 5_000) }, () => ({ payload: {} })),
    );
    for (const node of nodes) node.kill();
    await Promise.all(nodes.map((node) => node.exited));
    chaos.start({ ...SOON, concurrency: 100 }, 'c');
    const ids = handles.map(({ id }) => id);
    await chaos.ended(ids);
    expect(await chaos.judge(ids)).toEqual([]);
  }, 120_000);

  it('of the node that takes back the jobs of another, in the middle: the next one finishes it, charging once', async () => {
    const ids = await chaos.enqueue('chaos.hold', {}, 20);
    const dead = chaos.start({ ...SOON, concurrency: 20 }, 'a');
    await dead.until(begun(), 20);
    // Whoever closes a crashed execution stands still there.
    const gate = await chaos.database.connect();
    await gate.query('select pg_advisory_lock(4711)');
    await chaos.database.query(`
      create function side_gate() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(4711); return new; end $$;
      create trigger side_gate before insert on ratchet.execution for each row execute function side_gate()`);
    const drainer = chaos.start({ ...SOON, concurrency: 1 }, 'b');
    await drainer.ready();
    dead.kill();
    await until(async () => {
      const [row] = await chaos.database.query<{ n: number }>(
        `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`,
      );
      return row!.n > 0;
    });
    expect(
      await chaos.database.query('select status, drainer_id from ratchet.bucket where node_id = $1', ['a']),
    ).toEqual([{ status: 'draining', drainer_id: 'b' }]);
    drainer.kill();
    await drainer.exited;
    const last = chaos.start({ ...SOON, concurrency: 20 }, 'c');
    await last.ready();
    await chaos.database.terminateBackends();
    await gate.query('select pg_advisory_unlock(4711)');
    await last.until(begun(), 20);
    await Promise.all(ids.map((id) => chaos.go(id)));
    await chaos.ended(ids);
    expect(await chaos.judge(ids)).toEqual([]);
    expect(await chaos.database.query('select distinct crashes from ratchet.jobs')).toEqual([{ crashes: 1 }]);
  }, 90_000);
});

describe('process.abort() in a handler, two nodes under a supervisor', () => {
  it('it ends in the dead letter after the third redelivery; those beside it succeed, charged at most twice', async () => {
    const poison = (await chaos.scheduler.enqueueNamed('chaos.abort', {})).id;
    const innocents = await chaos.enqueue('chaos.work', { ms: 300 }, 10);
    const all = [poison, ...innocents];
    const over = chaos.ended(all);
    let deaths = 0;
    const supervise = async (name: string): Promise<void> => {
      for (;;) {
        const worker = chaos.start({ ...SOON, concurrency: 6 }, name);
        if (!(await Promise.race([worker.exited.then(() => true), over.then(() => false)]))) return;
        deaths++;
      }
    };
    await Promise.all([supervise('a'), supervise('b')]);
    expect(deaths).toBe(4);
    expect(await chaos.scheduler.get(poison)).toMatchObject({ status: 'failed', crashes: 4, failures: 0 });
    for (const id of innocents) {
      const info = await chaos.scheduler.get(id);
      expect(info).toMatchObject({ status: 'succeeded' });
      expect(info!.crashes).toBeLessThanOrEqual(2);
    }
    expect(await chaos.judge(all)).toEqual([]);
  }, 120_000);
});
