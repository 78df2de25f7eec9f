import { expect } from '@jest/globals';
import { type Command } from './fleet-commands.js';
import { LANES, type ModelBucket, type ModelNode } from './fleet-model.js';
import { type FleetWorld } from './fleet-world.js';

export type ByHand = Extract<
  Command,
  {
    readonly do:
      | 'pause lane'
      | 'resume lane'
      | 'drain lane'
      | 'drain bucket'
      | 'drain node'
      | 'undrain node'
      | 'move lane';
  }
>;

/** What a person does to a fleet, from any process. */
export async function operate(world: FleetWorld, command: ByHand): Promise<void> {
  const { operator } = world.fleet;
  switch (command.do) {
    case 'pause lane':
      expect(await operator.pauseLane(command.lane)).toBe(!world.paused.has(command.lane));
      world.paused.add(command.lane);
      return;
    case 'resume lane':
      return resume(world, command.lane);
    case 'drain lane': {
      const { moved } = await operator.drainLane(command.lane);
      return drained(world, moved, ({ ref }) => ref.lane === command.lane);
    }
    case 'drain bucket': {
      const bucket = at(world.buckets, command.bucket);
      if (!bucket) return;
      const answer = await operator.drainBucket(bucket.ref.id);
      expect(answer === undefined).toBe(bucket.status === 'gone');
      return drained(world, answer?.moved ?? [], (each) => each === bucket);
    }
    case 'drain node':
    case 'undrain node': {
      const node = at(world.nodes, command.node);
      return node && cordon(world, node, command.do === 'drain node');
    }
    case 'move lane':
      return moveLane(world, command.from);
  }
}

export async function resume(world: FleetWorld, lane: string): Promise<void> {
  expect(await world.fleet.operator.resumeLane(lane)).toBe(world.paused.delete(lane));
}

async function cordon(world: FleetWorld, { ref: { id } }: ModelNode, drain: boolean): Promise<void> {
  const { operator } = world.fleet;
  const node = world.nodes.find((each) => each.member && each.ref.id === id);
  const answer = await (drain ? operator.drainNode(id) : operator.undrainNode(id));
  expect(answer?.node).toEqual(node?.ref);
  if (!node || !answer) return;
  expect(answer.changed).toBe(node.cordoned !== drain);
  node.cordoned = drain;
  if (drain) drained(world, answer.moved, (bucket) => bucket.node === node);
}

function drained(
  world: FleetWorld,
  moved: readonly { readonly id: string }[],
  which: (bucket: ModelBucket) => boolean,
): void {
  const active = world.buckets.filter((bucket) => bucket.status === 'active' && which(bucket));
  expect(moved.map(({ id }) => id).sort()).toEqual(active.map(({ ref }) => ref.id).sort());
  for (const bucket of active) bucket.status = 'completing';
}

async function moveLane(world: FleetWorld, from: string): Promise<void> {
  const to = LANES.find((lane) => lane !== from) as string;
  const waiting = [...world.jobs.values()].filter(({ place, lane }) => place === 'pending' && lane === from);
  expect(await world.fleet.operator.move({ from, to })).toEqual({ moved: waiting.length, more: false });
  for (const job of waiting) job.lane = to;
}

/** One of a list, if there is one. */
export function at<T>(list: readonly T[], pick: number | undefined): T | undefined {
  return pick === undefined || list.length === 0 ? undefined : list[pick % list.length];
}
