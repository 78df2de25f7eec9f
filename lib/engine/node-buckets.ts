import { type Bucket } from '../buckets/bucket.js';
import { type ServedLane } from '../buckets/lanes-of-node.js';
import { type BucketSnapshot, type LaneSnapshot } from '../observability/ratchet-snapshot.js';
import { BucketKeeper, type BucketKeeperParts, type LoopEnd } from './bucket-keeper.js';
import { bucketSnapshot, laneSnapshot } from './engine-snapshot.js';
import { type LoopEnvironment } from './exchange-loop-parts.js';
import { ExchangeLoop } from './exchange-loop.js';
import { NodeSlots } from './node-slots.js';

export interface NodeBucketsParts extends Omit<BucketKeeperParts, 'planned' | 'name' | 'loopOf'> {
  readonly lanes: readonly ServedLane[];
  /** Slots of the node. */
  readonly concurrency: number;
  readonly environment: LoopEnvironment;
  /** The node may not claim: its heartbeats are not acknowledged. */
  readonly held: () => boolean;
}

/** The buckets of a node: a keeper for each one of the plan, and the slots that they share. */
export class NodeBuckets {
  readonly #parts: NodeBucketsParts;
  readonly #slots: NodeSlots;
  readonly #keepers: readonly BucketKeeper[];

  constructor(parts: NodeBucketsParts) {
    this.#parts = parts;
    this.#slots = new NodeSlots(parts.concurrency, parts.lanes);
    this.#keepers = parts.lanes.flatMap((lane) =>
      lane.planned.map((planned, place) => {
        const name = place === 0 ? lane.lane : `${lane.lane} ${place}`;
        const loopOf = (bucket: Bucket, end: LoopEnd): ExchangeLoop => this.#loopOf(lane, bucket, end);
        return new BucketKeeper({ ...parts, planned, name, loopOf });
      }),
    );
  }

  get loops(): readonly ExchangeLoop[] {
    return this.#keepers.flatMap((keeper) => keeper.loops);
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
    this.#parts.cordon.end();
  }

  /** All at the same time. False: something could not be recorded. */
  async leave(): Promise<boolean> {
    const left = await Promise.all(this.#keepers.map((keeper) => keeper.leave()));
    return !left.includes(false);
  }

  stop(): void {
    for (const keeper of this.#keepers) keeper.stop();
  }

  #loopOf({ lane, bufferSize }: ServedLane, bucket: Bucket, end: LoopEnd): ExchangeLoop {
    const loop: ExchangeLoop = new ExchangeLoop({
      ...this.#parts.environment,
      ...end,
      bucket,
      bufferSize,
      slots: this.#slots.of(lane, { onRoom: () => loop.room() }),
      releaseError: `node ${bucket.ref.node.id} shut down; job released`,
    });
    if (this.#parts.held()) loop.hold(true);
    return loop;
  }
}
