import { describeError } from '../errors/describe-error.js';
import { priorityOf } from '../jobs/priority.js';
import {
  type BucketSnapshot,
  type LaneSnapshot,
  type RatchetSnapshot,
} from '../observability/ratchet-snapshot.js';
import { type BucketRef, type BucketStatus } from '../store/membership.js';
import { type EngineParts } from './engine-parts.js';

const DAY_MS = 86_400_000;

/** The parts of a snapshot that a node knows. */
export type EngineReport = Pick<
  RatchetSnapshot,
  'heartbeat' | 'eventLoop' | 'slots' | 'lanes' | 'buckets' | 'faults' | 'partitions'
> & { readonly node: RatchetSnapshot['node'] | undefined };

const NOTHING: EngineReport = { node: undefined, lanes: [], buckets: [], faults: { standing: [] } };

/** Puts a snapshot together. Nothing that was given to us (an identity, a coordinator) may break it. */
export function engineSnapshot(
  { settings, identity, coordinator }: EngineParts,
  {
    state,
    startFault,
    running,
  }: Pick<RatchetSnapshot, 'state' | 'running'> & { startFault: string | undefined },
  report: EngineReport = NOTHING,
): RatchetSnapshot {
  return {
    state,
    ...(startFault === undefined ? {} : { startFault }),
    worker: settings.worker,
    running,
    ...report,
    node: report.node ?? {
      id: attempt(
        () => identity.nodeId(),
        () => 'unknown',
      ),
    },
    coordinator: attempt(
      () => coordinator.health(),
      (message) => ({ state: 'down', detail: `health() threw: ${message}` }) as const,
    ),
  };
}

/** What is left of so many days. */
export function daysLeft(days: number, ageMs: number): number {
  return days - Math.floor(ageMs / DAY_MS);
}

/** What a snapshot asks of a bucket's loop. */
interface SeenLoop {
  readonly bucket: { readonly ref: BucketRef; readonly status: BucketStatus };
  readonly claims: { readonly size: number };
  readonly turns: { readonly outbox: { readonly size: number }; readonly buffer: { readonly size: number } };
  readonly deposed: boolean;
  readonly pace: BucketSnapshot['poll'];
}

/** Of one bucket that the node has, or of one that was taken away and whose executions have not ended. */
export function bucketSnapshot({
  bucket,
  claims,
  turns: { outbox, buffer },
  deposed,
  pace,
}: SeenLoop): BucketSnapshot {
  const { id, lane, priority, kind = 'standard' } = bucket.ref;
  return {
    id,
    lane,
    ...(priority === undefined ? {} : { priority: priorityOf(priority) }),
    kind,
    status: deposed ? 'lost' : bucket.status,
    running: claims.size,
    buffered: buffer.size,
    waiting: outbox.size,
    poll: pace,
  };
}

/** Of one lane: what its buckets, those that claim and those before them, have in hand. */
export function laneSnapshot(lane: string, slots: number, loops: readonly SeenLoop[]): LaneSnapshot {
  const own = loops.filter((loop) => !loop.deposed);
  const shown = own.find(({ bucket }) => bucket.status === 'active') ?? own[0];
  return {
    lane,
    ...(shown ? { bucket: shown.bucket.status, poll: shown.pace } : {}),
    slots,
    running: loops.reduce((sum, { claims }) => sum + claims.size, 0),
    waiting: loops.reduce((sum, { turns }) => sum + turns.outbox.size, 0),
  };
}

function attempt<T, U>(look: () => T, otherwise: (message: string) => U): T | U {
  try {
    return look();
  } catch (error) {
    return otherwise(describeError(error).message);
  }
}
