import { describeError } from '../errors/describe-error.js';
import { type LaneSnapshot, type RatchetSnapshot } from '../observability/ratchet-snapshot.js';
import { type EngineParts } from './engine-parts.js';

const DAY_MS = 86_400_000;

/** The parts of a snapshot that a node knows. */
export type EngineReport = Pick<
  RatchetSnapshot,
  'heartbeat' | 'eventLoop' | 'lanes' | 'faults' | 'partitions'
> & { readonly node: RatchetSnapshot['node'] | undefined };

const NOTHING: EngineReport = { node: undefined, lanes: [], faults: { standing: [] } };

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

/** Of one lane: what its buckets, the one that claims and those before it, have in hand. */
export function laneSnapshot(
  lane: string,
  slots: number,
  loops: readonly {
    readonly deposed: boolean;
    readonly bucket: { readonly status: NonNullable<LaneSnapshot['bucket']> };
    readonly claims: { readonly size: number };
    readonly waiting: number;
    readonly pace: NonNullable<LaneSnapshot['poll']>;
  }[],
): LaneSnapshot {
  const own = loops.find((loop) => !loop.deposed);
  return {
    lane,
    ...(own ? { bucket: own.bucket.status, poll: own.pace } : {}),
    slots,
    running: loops.reduce((sum, { claims }) => sum + claims.size, 0),
    waiting: loops.reduce((sum, { waiting }) => sum + waiting, 0),
  };
}

function attempt<T, U>(look: () => T, otherwise: (message: string) => U): T | U {
  try {
    return look();
  } catch (error) {
    return otherwise(describeError(error).message);
  }
}
