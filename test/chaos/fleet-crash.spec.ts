import { expect, it } from '@jest/globals';
import { defineJob, type JobPriority } from 'nestjs-ratchet';
import { ChaosFixture, FLEET, until } from './chaos-fixture.js';

/** Most of a fleet, or all of it, ends without a word. */
const chaos = new ChaosFixture('fleet-crash');
const Quick = defineJob<object>('chaos.quick');
const PRIORITIES: readonly JobPriority[] = ['lowest', 'low', 'normal', 'high', 'critical'];

it('all of it right after 5 000 jobs were enqueued, then 9 nodes of 10 while jobs are enqueued: those that are left run them all', async () => {
  const first = chaos.start({ ...FLEET, nodes: 2 }, 'a');
  await first.ready();
  const handles = await chaos.scheduler.enqueueMany(
    Quick,
    Array.from({ length: 5_000 }, (_, n) => ({
      payload: {},
      options: { priority: PRIORITIES[n % 5], lane: n % 4 === 0 ? 'mail' : 'default' },
    })),
  );
  const ids = handles.map(({ id }) => id);
  const seen = await chaos.database.query('select from ratchet.bucket where node_id = any ($1)', [
    ['a-1', 'a-2'],
  ]);
  first.kill();
  await first.exited;
  expect(seen).toHaveLength(14);

  // Nine nodes in two processes, and one that stays.
  const few = { ...FLEET, buckets: 1 };
  const doomed = [chaos.start({ ...few, nodes: 5 }, 'b'), chaos.start({ ...few, nodes: 4 }, 'c')];
  const last = chaos.start({ ...FLEET, concurrency: 50 }, 'last');
  await Promise.all([...doomed, last].map((node) => node.ready()));
  const over = new AbortController();
  const enqueueing = (async () => {
    for (let n = 0; !over.signal.aborted; n++) {
      ids.push((await chaos.scheduler.enqueue(Quick, {}, { priority: PRIORITIES[n % 5] })).id);
    }
  })();
  for (const node of doomed) {
    // Each has had its share before it goes.
    await until(async () => {
      const rows = await chaos.database.query('select from side where pid = $1 limit 5', [node.pid]);
      return rows.length === 5;
    });
    node.kill();
  }
  await Promise.all(doomed.map((node) => node.exited));
  over.abort();
  await enqueueing;
  await chaos.ended(ids);
  expect(await chaos.judge(ids, { slots: 10 })).toEqual([]);
  // What the dead had is gone, and nothing is left but what the living one serves.
  await until(async () => {
    const rows = await chaos.database.query(`select from ratchet.bucket where node_id <> 'last'`);
    return rows.length === 0;
  });
  expect(
    await chaos.database.query(`select status, count(*)::int as n from ratchet.bucket group by status`),
  ).toEqual([{ status: 'active', n: 7 }]);
}, 180_000);
