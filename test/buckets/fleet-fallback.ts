import { expect } from '@jest/globals';
import { type PriorityRank } from '../../lib/jobs/priority.js';
import { LANES, ModelBucket, type ModelNode } from './fleet-model.js';
import { type FleetWorld } from './fleet-world.js';

const HANDLERS = [{ name: 'test.job', version: 1 }];

/**
 * What starves is what is due, and neither paused nor served by a standard bucket that is active and whose node is a member. A lane has
 * one active fallback bucket, whoever asks, and however often.
 */
export async function openFallback(world: FleetWorld, node: ModelNode, lane: string): Promise<void> {
  const { store } = world.fleet;
  const known = node.buckets.filter(({ ref }) => ref.kind === 'fallback').map(({ ref }) => ref.id);
  const { streams } = await store.starving({ node: node.ref, handlers: HANDLERS, afterMs: 0, known });
  const told = streams.map((stream) => `${stream.lane} ${String(stream.priority)}`);
  const all = starving(world, () => true);
  // A job that its crashes made wait may be due or not.
  const sure = starving(world, ({ crashes }) => crashes < 2);
  expect(all).toEqual(expect.arrayContaining(told));
  expect(told).toEqual(expect.arrayContaining(sure));

  const there = fallbackOf(world, lane);
  const ref = await store.openFallback({ node: node.ref, lane, known });
  expect(ref !== undefined).toBe(there === undefined && node.member && !node.cordoned);
  if (!ref) return;
  const bucket = new ModelBucket(ref, node, false);
  node.buckets.push(bucket);
  world.buckets.push(bucket);
  const again = known.concat(ref.id);
  expect(await store.openFallback({ node: node.ref, lane, known: again })).toBeUndefined();
}

function starving(world: FleetWorld, which: (job: { readonly crashes: number }) => boolean): string[] {
  const due = [...world.jobs.values()].filter(
    (job) => job.place === 'pending' && job.dueMs <= world.nowMs && which(job),
  );
  const served = (lane: string, priority: PriorityRank): boolean =>
    world.buckets.some(
      ({ ref, status, node }) =>
        status === 'active' &&
        node.member &&
        ref.kind !== 'fallback' &&
        ref.lane === lane &&
        (ref.priority === undefined || ref.priority === priority),
    );
  const lanes = LANES.filter((lane) => !world.paused.has(lane) && !fallbackOf(world, lane));
  return lanes.flatMap((lane) =>
    ([0, 1, 2, 3, 4] as const)
      .filter((priority) => !served(lane, priority))
      .filter((priority) => due.some((job) => job.lane === lane && job.priority === priority))
      .map((priority) => `${lane} ${String(priority)}`),
  );
}

function fallbackOf(world: FleetWorld, lane: string): ModelBucket | undefined {
  return world.buckets.find(
    ({ ref, status }) => ref.kind === 'fallback' && ref.lane === lane && status === 'active',
  );
}
