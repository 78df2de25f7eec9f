import { type EngineEvents } from '../observability/engine-events.js';
import { type BucketRef, type BucketStatus, type JobStore } from '../store/job-store.js';
import { mayMove, OWNER_LEAVES } from '../store/bucket-transitions.js';

/**
 * A bucket that this node owns: its key in the database and the status that we last gave it. Every move goes through the
 * one table of transitions, is a compare-and-set in the database, and is told.
 */
export class Bucket {
  #status: BucketStatus = 'active';
  #removal: Promise<boolean> | undefined;

  constructor(
    readonly ref: BucketRef,
    private readonly store: Pick<JobStore, 'setBucketStatus'>,
    private readonly events: EngineEvents,
  ) {}

  get status(): BucketStatus {
    return this.#status;
  }

  /** May be repeated when it fails. False: somebody else moved it meanwhile; it is not ours any more. */
  async moveTo(to: BucketStatus): Promise<boolean> {
    const from = this.#status;
    if (!mayMove(from, to, 'owner')) throw new RangeError(`a bucket never goes from ${from} to ${to}`);
    if (!(await this.store.setBucketStatus(this.ref, from, to))) return false;
    this.#status = to;
    this.events.emit('bucket', { bucket: this.ref.id, lane: this.ref.lane, from, to });
    return true;
  }

  /** The database says that somebody has moved it to `completing`. Whoever did has told it. */
  completesByHand(): void {
    if (this.#status === 'active') this.#status = 'completing';
  }

  /** Walks an idle bucket to its removal. False: not ours any more, or it still holds jobs. */
  remove(): Promise<boolean> {
    this.#removal ??= this.#remove().finally(() => (this.#removal = undefined));
    return this.#removal;
  }

  async #remove(): Promise<boolean> {
    for (const to of OWNER_LEAVES.slice(OWNER_LEAVES.indexOf(this.#status) + 1)) {
      if (!(await this.moveTo(to))) return false;
    }
    return true;
  }
}
