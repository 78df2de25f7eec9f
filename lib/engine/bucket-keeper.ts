import { uuidv7 } from 'uuidv7';
import { Bucket } from '../buckets/bucket.js';
import { type PlannedBucket } from '../buckets/lanes-of-node.js';
import { describeError } from '../errors/describe-error.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type BucketRef, type JobStore, type NodeRef } from '../store/job-store.js';
import { type Cordon } from './cordon.js';
import { type EngineFaults } from './engine-faults.js';
import { type ExchangeLoop } from './exchange-loop.js';
import { type LineLogger } from './line-logger.js';
import { type Deposition, type NodeRegistration } from './node-registration.js';
import { CalledOff, type Patience } from './patience.js';

/** What a loop tells its keeper. */
export interface LoopEnd {
  readonly onDeposed: () => void;
  readonly onCompleting: () => void;
}

export interface BucketKeeperParts {
  readonly planned: PlannedBucket;
  /** Tells it apart from the other keepers of the node. */
  readonly name: string;
  readonly store: JobStore;
  readonly events: EngineEvents;
  readonly faults: EngineFaults;
  readonly logger: LineLogger;
  readonly patience: Patience;
  readonly registration: NodeRegistration;
  readonly cordon: Cordon;
  /** This one, and none after it: a fallback bucket. */
  readonly given?: Bucket;
  /** Makes the loop of a bucket, without starting it. */
  readonly loopOf: (bucket: Bucket, end: LoopEnd) => ExchangeLoop;
}

interface Asked {
  readonly ref?: BucketRef;
  /** The node's id is somebody else's by now. */
  readonly by?: Deposition;
  /** The node was drained by hand. */
  readonly cordoned?: boolean;
}

/**
 * Keeps one bucket of the plan at work, for as long as the node lives:
 *
 * - `opening`: asks for a bucket until there is one; when the node's id is somebody else's by now, under a new id. While the node is
 *   drained by hand it waits until that is over.
 * - `ready`: has a bucket that does not claim yet. A boot waits here for the other keepers.
 * - `serving`: a loop claims into it. When the database says that the bucket was taken away, or that somebody drained it: back to
 *   `opening`; the old loop ends what it has.
 * - `leaving`: the end. A bucket that still comes is given back.
 *
 * Each loop is followed at most once, and the next one begins only after, so there is never more than one opening at a time.
 */
export class BucketKeeper {
  readonly #parts: BucketKeeperParts;
  /** The one that serves, and those before it whose bodies have not ended. */
  readonly #loops = new Set<ExchangeLoop>();
  /** A bucket that is opened, or being opened, takes their place. */
  readonly #followed = new WeakSet<ExchangeLoop>();
  #opening: Promise<void> = Promise.resolve();
  #ready: Bucket | undefined;
  /** Of buckets that were taken away or drained and hold nothing. */
  #removing: Promise<unknown> = Promise.resolve();
  /** How many of them are still there. */
  #removals = 0;
  /** Moves of buckets that are retired. */
  #completed: Promise<unknown> = Promise.resolve();
  #serving = false;
  #served = false;
  #leaving = false;
  #stopped = false;

  constructor(parts: BucketKeeperParts) {
    this.#parts = parts;
  }

  get planned(): PlannedBucket {
    return this.#parts.planned;
  }

  get loops(): readonly ExchangeLoop[] {
    return [...this.#loops];
  }

  /** Whether it has a bucket that it does not end yet. */
  get claims(): boolean {
    return !this.#leaving && this.loops.some((loop) => !this.#followed.has(loop));
  }

  /** Of a keeper of one bucket: it has been removed, or is nobody's task any more. */
  get ended(): boolean {
    return this.#served && this.#loops.size === 0 && this.#removals === 0;
  }

  /**
   * From `opening` to `ready`. Rejects as {@link Patience} does. Resolves also when the node may have no bucket now: the keeper goes on
   * by itself when it may.
   */
  open(): Promise<void> {
    let tellBarred = (): void => {};
    const barred = new Promise<void>((resolve) => (tellBarred = resolve));
    const opening = this.#open(tellBarred).then((bucket) => {
      this.#ready = bucket;
      if (this.#serving) this.serve();
    });
    this.#opening = opening.catch(() => undefined);
    return Promise.race([opening, barred]);
  }

  /** From `ready` to `serving`, now or when there is a bucket. */
  serve(): void {
    this.#serving = true;
    const bucket = this.#ready;
    if (!bucket || this.#leaving) return;
    this.#ready = undefined;
    const loop: ExchangeLoop = this.#parts.loopOf(bucket, {
      onDeposed: () => this.#deposed(loop),
      onCompleting: () => this.#completing(loop),
    });
    this.#loops.add(loop);
    this.#served = true;
    loop.start();
  }

  /** Ends what it serves, without a successor: no further claim, and when what runs has ended the bucket is removed. */
  retire(): void {
    const loop = this.loops.find((one) => !this.#followed.has(one));
    if (!loop) return;
    this.#followed.add(loop);
    loop.stopClaiming();
    this.#completed = this.#complete(loop.bucket).then(() => void this.#end(loop));
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
    await this.#completed;
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
    const { id, node, lane } = loop.bucket.ref;
    this.#parts.faults.forget(id);
    this.#follow(
      loop,
      `bucket ${id} of lane "${lane}" was taken away from node ${node.id}; its executions were told`,
    );
  }

  /** Somebody drained the bucket: it finishes what it has. */
  #completing(loop: ExchangeLoop): void {
    const { id, lane } = loop.bucket.ref;
    loop.bucket.completesByHand();
    this.#follow(loop, `bucket ${id} of lane "${lane}" was drained by hand; it finishes what runs`);
  }

  /** Puts a new bucket in the place of one that claims no more. */
  #follow(loop: ExchangeLoop, line: string): void {
    if (this.#followed.has(loop)) return;
    this.#followed.add(loop);
    void this.#end(loop);
    if (this.#leaving) return;
    this.#parts.logger.warn(this.#parts.given ? line : `${line}, a new bucket follows`);
    if (this.#parts.given) return;
    void this.open().catch((error: unknown) => {
      if (!(error instanceof CalledOff)) this.#parts.faults.failed('opening of a bucket', error);
    });
  }

  /** While its row says `active`, nobody else makes a bucket for what it serves. */
  async #complete(bucket: Bucket): Promise<void> {
    const { patience, faults } = this.#parts;
    const complete = async (): Promise<unknown> => bucket.status !== 'active' || bucket.moveTo('completing');
    try {
      await patience.until('end of a bucket', complete, bucket.ref.id);
    } catch (error) {
      if (!(error instanceof CalledOff)) faults.failed('end of a bucket', error);
    }
  }

  /** Waits for what runs. What the database refuses to record is given back: nobody would ever remove the bucket. */
  async #end(loop: ExchangeLoop): Promise<void> {
    await loop.whenIdle();
    if (loop.refused > 0 && !loop.deposed) {
      loop.release();
      await loop.whenRecorded();
    }
    this.#retire(loop);
  }

  /** It holds nothing any more. Whoever took its bucket removes it; when nobody did, there is nothing to rescue. */
  #retire(loop: ExchangeLoop): void {
    loop.stop();
    this.#parts.faults.forget(loop.bucket.ref.id);
    this.#loops.delete(loop);
    const removed = loop.deposed ? this.#remove(loop.bucket) : this.#removeInTime(loop.bucket);
    this.#removals += 1;
    this.#removing = Promise.all([this.#removing, removed.finally(() => (this.#removals -= 1))]);
  }

  async #open(tellBarred: () => void): Promise<Bucket> {
    const { store, events, patience, registration, cordon, name, given } = this.#parts;
    if (given) return given;
    for (let renames = 0; ;) {
      const node = registration.node as NodeRef;
      // One id for all its attempts: what an attempt has opened whose answer was lost is found by the next.
      const id = uuidv7();
      const { ref, by, cordoned } = await patience.until(
        'opening of a bucket',
        () => this.#ask(node, id),
        name,
      );
      if (ref) {
        cordon.opened();
        return new Bucket(ref, store, events);
      }
      if (cordoned) {
        tellBarred();
        await cordon.lifted(node.id);
        patience.check();
        continue;
      }
      // That the new id is taken as well should not be; if it is, then not as fast as the network allows.
      if (renames > 0) await patience.pause(renames);
      renames += 1;
      await registration.instead(node, by);
    }
  }

  async #ask(node: NodeRef, id: string): Promise<Asked> {
    const { store, planned } = this.#parts;
    try {
      return { ref: await store.openBucket(node, planned.lane, planned.priority, id) };
    } catch (error) {
      const { code } = describeError(error);
      if (code === 'NODE_CORDONED') return { cordoned: true };
      if (code !== 'NODE_DEPOSED') throw error;
      return { by: (error as { by?: Deposition }).by };
    }
  }

  /** While the node lives, a fault that passes does not leave a bucket behind. */
  async #removeInTime(bucket: Bucket): Promise<void> {
    const { patience, faults } = this.#parts;
    try {
      await patience.until('removal of a bucket', () => bucket.remove(), bucket.ref.id);
    } catch (error) {
      if (error instanceof CalledOff) await this.#remove(bucket);
      else faults.failed('removal of a bucket', error);
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
