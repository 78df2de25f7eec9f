import { describe, expect, it } from '@jest/globals';
import { begun, ChaosFixture, size, SOON } from './chaos-fixture.js';

/** Processes that are told to stop while others run: nobody is charged for it. */
const chaos = new ChaosFixture('rolling');

describe('SIGTERM', () => {
  it('with jobs of three times the timeout: they are handed back uncharged, and run elsewhere at once', async () => {
    const ids = await chaos.enqueue('chaos.hold', {}, 5);
    const leaving = chaos.start({ ...SOON, drainTimeout: '1s' }, 'a');
    await leaving.until(begun(), 5);
    const other = chaos.start(SOON, 'b');
    await other.ready();
    leaving.kill('SIGTERM');
    await other.until(begun(), 5);
    for (const id of ids) await chaos.go(id);
    await chaos.ended(ids);
    await leaving.exited;
    expect(
      await chaos.database.query('select distinct executions, crashes, failures from ratchet.jobs'),
    ).toEqual([{ executions: 2, crashes: 0, failures: 0 }]);
    expect(await chaos.judge(ids)).toEqual([]);
  }, 60_000);

  it('of every node in turn, under load: a rolling restart charges nobody', async () => {
    const ids: string[] = [];
    const rolling = new AbortController();
    const load = (async () => {
      while (!rolling.signal.aborted) {
        const some = await chaos.enqueue('chaos.work', { ms: 30 }, 40);
        ids.push(...some);
        await chaos.ended(some);
      }
    })();
    load.catch(() => {});
    const names = ['a', 'b', 'c'].slice(0, size(2, 3));
    let nodes = names.map((name) => chaos.start(SOON, name));
    await Promise.all(nodes.map((node) => node.until(begun())));
    for (const name of names) {
      const [old] = nodes.filter((node) => node.nodeId === name);
      old!.kill('SIGTERM');
      await old!.exited;
      const next = chaos.start(SOON, name);
      await next.until(begun());
      nodes = [...nodes.filter((node) => node !== old), next];
    }
    rolling.abort();
    await load;
    await chaos.ended(ids);
    expect(await chaos.database.query('select distinct crashes, failures from ratchet.jobs')).toEqual([
      { crashes: 0, failures: 0 },
    ]);
    expect(await chaos.judge(ids)).toEqual([]);
  }, 120_000);
});
