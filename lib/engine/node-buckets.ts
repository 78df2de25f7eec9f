import { type Bucket } from '../buckets/bucket.js';
import { type ServedLane } from '../buckets/lanes-of-node.js';
import { type BucketSnapshot, type LaneSnapshot } from '../observability/ratchet-snapshot.js';
import { BucketKeeper, type BucketKeeperParts, type LoopEnd } from './bucket-keeper.js';
import { bucketSnapshot, laneSnapshot } from './engine-snapshot.js';
import { type LoopEnvironment } from './exchange-loop-parts.js';
import { ExchangeLoop } from './exchange-loop.js';
import { FallbackBuckets } from './fallback-buckets.js';
import { NodeSlots } from './node-slots.js';

export interface NodeBucketsParts extends Omit<BucketKeeperParts, 'planned' | 'name' | 'given' | 'loopOf'> {
  readonly lanes: readonly ServedLane[];
  /** Slots of the node. */
  readonly concurrency: number;
  readonly environment: LoopEnvironment;
  /** The node may not claim: its heartbeats are not acknowledged. */
  readonly held: () => boolean;
}

/** The buckets of a node: a keeper for each one of the plan, those that fall to it, and the slots that they share. */
export class NodeBuckets {
  readonly #parts: NodeBucketsParts;
  readonly #slots: NodeSlots;
  readonly #keepers: readonly BucketKeeper[];
  /** Made for lanes that nobody serves; not part of the plan. */
  readonly fallback: FallbackBuckets;

  constructor(parts: NodeBucketsParts) {
    this.#parts = parts;
    this.#slots = new NodeSlots(parts.concurrency, parts.lanes);
    this.#keepers = parts.lanes.flatMap((lane) =>
      lane.planned.map((planned, place) => {
        const name = place === 0 ? lane.lane : `${lane.lane} ${place}`;
        const loopOf = (bucket: Bucket, end: LoopEnd): ExchangeLoop =>
          this.#loopOf(bucket, end, lane.bufferSize);
        return new BucketKeeper({ ...parts, planned, name, loopOf });
      }),
    );
    // Offered slots first, and never ahead of them: nobody else runs what waits there.
    this.fallback = new FallbackBuckets({
      ...parts,
      loopOf: (bucket, end) => this.#loopOf(bucket, end, 0, true),
    });
  }

  get loops(): readonly ExchangeLoop[] {
    return [...this.#keepers.flatMap((keeper) => keeper.loops), ...this.fallback.loops];
  }

  report(): { readonly lanes: readonly LaneSnapshot[]; readonly buckets: readonly BucketSnapshot[] } {
    return {
      lanes: this.#parts.lanes.map(({ lane, concurrency }) =>
        laneSnapshot(
          lane,
          concurrency,
          this.#keepers.filter(({ planned }) => planned.lane === lane).flatMap(({ loops }) => loops),
        ),
      ),
      buckets: this.loops.map(bucketSnapshot),
    };
  }

  /** Each has its bucket, or waits for it by itself. Rejects as {@link BucketKeeper.open} does. */
  async open(): Promise<void> {
    for (const keeper of this.#keepers) await keeper.open();
  }

  serve(): void {
    for (const keeper of this.#keepers) keeper.serve();
  }

  stopClaims(): void {
    for (const keeper of this.#keepers) keeper.stopClaims();
    this.fallback.stopClaims();
    this.#parts.cordon.end();
  }

  /** All at the same time. False: something could not be recorded. */
  async leave(): Promise<boolean> {
    const left = await Promise.all([...this.#keepers.map((keeper) => keeper.leave()), this.fallback.leave()]);
    return !left.includes(false);
  }

  stop(): void {
    for (const keeper of this.#keepers) keeper.stop();
    this.fallback.stop();
  }

  #loopOf(bucket: Bucket, end: LoopEnd, bufferSize: number, first = false): ExchangeLoop {
    const loop: ExchangeLoop = new ExchangeLoop({
      ...this.#parts.environment,
      ...end,
      bucket,
      bufferSize,
      slots: this.#slots.of(bucket.ref.lane, { first, onRoom: () => loop.room() }),
      releaseError: `node ${bucket.ref.node.id} shut down; job released`,
    });
    if (this.#parts.held()) loop.hold(true);
    return loop;
  }
}
