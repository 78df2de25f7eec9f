import { expect, it } from '@jest/globals';
import { ChaosFixture, said, SOON, until } from './chaos-fixture.js';

/** Jobs of a lane that no node serves, although nodes have their handlers. */
const chaos = new ChaosFixture('fleet-fallback');

it('get one fallback bucket; when its node dies another node makes the next one; when a node serves the lane, it ends', async () => {
  const options = { ...SOON, fallbackAfter: '1s' };
  const nodes = ['a', 'b'].map((id) => chaos.start(options, id));
  await Promise.all(nodes.map((node) => node.ready()));
  const lost = { lane: 'nobody' };
  const enqueue = async (name: string, count: number): Promise<string[]> => {
    const made = Array.from({ length: count }, () => chaos.scheduler.enqueueNamed(name, {}, lost));
    return (await Promise.all(made)).map(({ id }) => id);
  };
  const ids = await enqueue('chaos.quick', 30);
  const [held] = await enqueue('chaos.hold', 1);
  ids.push(held!);
  const opened = said('fallback', { change: 'opened', lane: 'nobody' });
  const maker = await Promise.race(nodes.map((node) => node.until(opened).then(() => node)));
  await maker.until(({ event, job }) => event === 'begin' && job === held);
  expect(await fallbacks()).toEqual([{ node_id: maker.nodeId, status: 'active' }]);
  expect(maker.log.join('\n')).toContain('nobody');

  maker.kill();
  const other = nodes.find((node) => node !== maker)!;
  await other.until(opened);
  await other.until(({ event, job }) => event === 'begin' && job === held);
  expect(await fallbacks()).toEqual([{ node_id: other.nodeId, status: 'active' }]);

  const server = chaos.start({ ...options, lanes: { nobody: {} } }, 'c');
  await server.ready();
  ids.push(...(await enqueue('chaos.quick', 30)));
  await chaos.go(held!);
  await chaos.ended(ids);
  await until(async () => (await fallbacks()).length === 0);
  expect(nodes.flatMap((node) => node.events.filter(opened))).toHaveLength(2);
  expect(await chaos.judge(ids, { slots: 10 })).toEqual([]);
}, 120_000);

function fallbacks(): Promise<Record<string, unknown>[]> {
  return chaos.database.query(`select node_id, status from ratchet.bucket where kind = 'fallback'`);
}
