import { describe, expect, it } from '@jest/globals';
import { begun, ChaosFixture, size, SOON } from './chaos-fixture.js';
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
});

describe('process.abort() in a handler, two nodes under a supervisor', () => {
  it('it ends in the dead letter after its redeliveries; those beside it succeed, charged at most twice', async () => {
    const poison = (await chaos.scheduler.enqueueNamed('chaos.abort', {})).id;
    const innocents = await chaos.enqueue('chaos.work', { ms: 300 }, 10);
    const all = [poison, ...innocents];
    const over = chaos.ended(all);
    let deaths = 0;
    const maxCrashRedeliveries = size(2, 3);
    const supervise = async (name: string): Promise<void> => {
      for (;;) {
        const worker = chaos.start({ ...SOON, concurrency: 6, maxCrashRedeliveries }, name);
        if (!(await Promise.race([worker.exited.then(() => true), over.then(() => false)]))) return;
        deaths++;
      }
    };
    await Promise.all([supervise('a'), supervise('b')]);
    expect(deaths).toBe(maxCrashRedeliveries + 1);
    expect(await chaos.scheduler.get(poison)).toMatchObject({
      status: 'failed',
      crashes: maxCrashRedeliveries + 1,
      failures: 0,
    });
    for (const id of innocents) {
      const info = await chaos.scheduler.get(id);
      expect(info).toMatchObject({ status: 'succeeded' });
      expect(info!.crashes).toBeLessThanOrEqual(2);
    }
    expect(await chaos.judge(all, { budget: maxCrashRedeliveries })).toEqual([]);
  }, 120_000);
});
