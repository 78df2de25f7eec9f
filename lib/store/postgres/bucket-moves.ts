import { type BucketRef, type BucketStatus } from '../membership.js';
import { type PostgresSession } from './postgres-session.js';
import { deleteBuckets, setBucketStatuses } from './statements/buckets.js';

interface Move {
  readonly bucket: BucketRef;
  readonly from: BucketStatus;
  readonly to: BucketStatus;
  readonly resolve: (moved: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Moves buckets through their life. Those of one node leave together, so what is asked for in the same tick is one statement for each
 * step, however many buckets take it; each is a compare-and-set of its own. Where such a statement fails each bucket is tried alone: one
 * row that somebody holds must not keep the others.
 */
export class BucketMoves {
  /** By step. */
  #asked = new Map<string, Move[]>();

  constructor(private readonly session: Pick<PostgresSession, 'service' | 'offsetMs'>) {}

  /**
   * False: it is elsewhere, or somebody else's. `ready_to_delete` deletes it; false as well when it holds jobs. Each may be repeated: a
   * bucket that is at `to`, or that is gone already, has moved.
   */
  move(bucket: BucketRef, from: BucketStatus, to: BucketStatus): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#asked.size === 0) setImmediate(() => this.#send());
      const step = `${from} ${to}`;
      const move = { bucket, from, to, resolve, reject };
      this.#asked.set(step, [...(this.#asked.get(step) ?? []), move]);
    });
  }

  #send(): void {
    const asked = this.#asked;
    this.#asked = new Map();
    for (const moves of asked.values()) void this.#together(moves);
  }

  async #together(moves: readonly Move[]): Promise<void> {
    try {
      const moved = await this.#moved(moves);
      for (const { bucket, resolve } of moves) resolve(moved.has(bucket.id));
    } catch (error) {
      const [first] = moves;
      if (moves.length === 1) first?.reject(error);
      else for (const move of moves) await this.#together([move]);
    }
  }

  async #moved(moves: readonly Move[]): Promise<ReadonlySet<unknown>> {
    const [{ from, to }] = moves as [Move];
    const buckets = [moves.map(({ bucket }) => bucket.id), moves.map(({ bucket }) => bucket.epoch)];
    const { session } = this;
    const moved = await session.service(setBucketStatuses, [session.offsetMs, ...buckets, from, to]);
    const rows = to === 'ready_to_delete' ? await session.service(deleteBuckets, buckets) : moved;
    return new Set(rows.map((row) => row['id']));
  }
}
