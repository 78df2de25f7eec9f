import { Bucket } from '../buckets/bucket.js';
import { describeError } from '../errors/describe-error.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type LaneSnapshot } from '../observability/ratchet-snapshot.js';
import { type BucketRef, type JobStore, type NodeRef } from '../store/job-store.js';
import { laneSnapshot } from './engine-snapshot.js';
import { type EngineFaults } from './engine-faults.js';
import { type ExchangeLoop } from './exchange-loop.js';
import { type LineLogger } from './line-logger.js';
import { type Deposition, type NodeRegistration } from './node-registration.js';
import { CalledOff, type Patience } from './patience.js';

export interface LaneKeeperParts {
  readonly lane: string;
  /** How many executions may run at once. */
  readonly concurrency: number;
  readonly store: JobStore;
  readonly events: EngineEvents;
  readonly faults: EngineFaults;
  readonly logger: LineLogger;
  readonly patience: Patience;
  readonly registration: NodeRegistration;
  /** Makes the loop of a bucket, without starting it. */
  readonly loopOf: (bucket: Bucket, onDeposed: () => void) => ExchangeLoop;
}

/**
 * Keeps one bucket of this node at work in one lane, for as long as the node lives:
 *
 * - `opening`: asks for a bucket until there is one; when the node's id is somebody else's by now, under a new id.
 * - `ready`: has a bucket that does not claim yet. A boot waits here for the other lanes.
 * - `serving`: a loop claims into it. When the database says that the bucket was taken away: back to `opening`.
 * - `leaving`: the end. A bucket that still comes is given back.
 *
 * Each loop is deposed at most once and the next begins only after, so there is never more than one opening at a time.
 */
export class LaneKeeper {
  readonly #parts: LaneKeeperParts;
  /** The one that serves, and those before it whose bodies have not ended. */
  readonly #loops = new Set<ExchangeLoop>();
  #opening: Promise<void> = Promise.resolve();
  #ready: Bucket | undefined;
  /** Of buckets that were taken away and hold nothing. */
  #removing: Promise<unknown> = Promise.resolve();
  #leaving = false;
  #stopped = false;

  constructor(parts: LaneKeeperParts) {
    this.#parts = parts;
  }

  get loops(): readonly ExchangeLoop[] {
    return [...this.#loops];
  }

  report(): LaneSnapshot {
    return laneSnapshot(this.#parts.lane, this.#parts.concurrency, this.loops);
  }

  /** From `opening` to `ready`. Rejects as {@link Patience} does. */
  open(): Promise<void> {
    const opening = this.#open().then((bucket) => void (this.#ready = bucket));
    this.#opening = opening.catch(() => undefined);
    return opening;
  }

  /** From `ready` to `serving`. */
  serve(): void {
    const bucket = this.#ready;
    if (!bucket || this.#leaving) return;
    this.#ready = undefined;
    const loop: ExchangeLoop = this.#parts.loopOf(bucket, () => this.#deposed(loop));
    this.#loops.add(loop);
    loop.start();
  }

  /** No further claim and no further bucket. */
  stopClaims(): void {
    this.#leaving = true;
    for (const loop of this.#loops) loop.stopClaiming();
  }

  /** Nothing is asked of the database from now on. */
  stop(): void {
    this.#stopped = true;
    for (const loop of this.#loops) loop.stop();
  }

  /** Removes the bucket. False: what it holds could not be recorded and waits for whoever rescues it. */
  async leave(): Promise<boolean> {
    await this.#opening;
    for (const loop of this.#loops) loop.stop();
    let clean = !this.#ready || (await this.#remove(this.#ready));
    for (const loop of this.#loops) {
      // What a deposed one held is somebody else's.
      if (loop.deposed) await this.#remove(loop.bucket);
      else clean = loop.settled && (await this.#remove(loop.bucket)) && clean;
    }
    await this.#removing;
    return clean;
  }

  /** Somebody took the bucket away. Its jobs are theirs; this node goes on with a new one. */
  #deposed(loop: ExchangeLoop): void {
    const { faults, logger } = this.#parts;
    const { id, node, lane } = loop.bucket.ref;
    faults.forget(id);
    void loop.whenIdle().then(() => {
      loop.stop();
      faults.forget(id);
      this.#loops.delete(loop);
      // Whoever took it removes it; when nobody did, and it holds nothing, there is nothing to rescue.
      this.#removing = Promise.all([this.#removing, this.#remove(loop.bucket)]);
    });
    if (this.#leaving) return;
    logger.warn(
      `bucket ${id} of lane "${lane}" was taken away from node ${node.id}; its executions were told, a new bucket follows`,
    );
    void this.open().then(
      () => this.serve(),
      (error: unknown) => {
        if (!(error instanceof CalledOff)) faults.failed('opening of a bucket', error);
      },
    );
  }

  async #open(): Promise<Bucket> {
    const { store, events, patience, registration, lane } = this.#parts;
    let node = registration.node as NodeRef;
    for (let renames = 0; ; renames += 1) {
      const { ref, by } = await patience.until('opening of a bucket', () => this.#ask(node), lane);
      if (ref) return new Bucket(ref, store, events);
      // That the new id is taken as well should not be; if it is, then not as fast as the network allows.
      if (renames > 0) await patience.pause(renames);
      node = await registration.instead(node, by);
    }
  }

  async #ask(node: NodeRef): Promise<{ readonly ref?: BucketRef; readonly by?: Deposition }> {
    try {
      return { ref: await this.#parts.store.openBucket(node, this.#parts.lane) };
    } catch (error) {
      if (describeError(error).code !== 'NODE_DEPOSED') throw error;
      return { by: (error as { by?: Deposition }).by };
    }
  }

  async #remove(bucket: Bucket): Promise<boolean> {
    if (this.#stopped) return false;
    return bucket.remove().catch((error: unknown) => {
      // One whose connections were closed over it is no news: the bucket stays, and is said to.
      if (!this.#stopped) this.#parts.faults.failed('drain', error);
      return false;
    });
  }
}
