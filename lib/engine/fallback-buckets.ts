import { type Bucket } from '../buckets/bucket.js';
import { type FallbackHost } from '../buckets/fallback-watch.js';
import { BucketKeeper, type BucketKeeperParts } from './bucket-keeper.js';
import { type ExchangeLoop } from './exchange-loop.js';

export type FallbackBucketsParts = Omit<BucketKeeperParts, 'planned' | 'name' | 'given'>;

/** The fallback buckets of a node: they come and go while it serves, and each is kept until it is removed. */
export class FallbackBuckets implements FallbackHost {
  readonly #parts: FallbackBucketsParts;
  readonly #keepers = new Map<Bucket, BucketKeeper>();
  #leaving = false;

  constructor(parts: FallbackBucketsParts) {
    this.#parts = parts;
  }

  get loops(): readonly ExchangeLoop[] {
    return [...this.#keepers.values()].flatMap((keeper) => keeper.loops);
  }

  get buckets(): readonly Bucket[] {
    return [...this.#keepers].filter(([, keeper]) => keeper.claims).map(([bucket]) => bucket);
  }

  get known(): readonly string[] {
    for (const [old, keeper] of this.#keepers) if (keeper.ended) this.#keepers.delete(old);
    return [...this.#keepers.keys()].map(({ ref }) => ref.id);
  }

  busy(bucket: Bucket): boolean {
    const loops = this.#keepers.get(bucket)?.loops ?? [];
    return loops.some(({ claims, buffered, refused }) => claims.size + buffered + refused > 0);
  }

  open(bucket: Bucket): void {
    const { lane, id } = bucket.ref;
    const keeper = new BucketKeeper({
      ...this.#parts,
      planned: { lane },
      name: `fallback ${id}`,
      given: bucket,
    });
    this.#keepers.set(bucket, keeper);
    // It has its bucket already.
    void keeper.open();
    keeper.serve();
    if (this.#leaving) keeper.stopClaims();
  }

  retire(bucket: Bucket): void {
    this.#keepers.get(bucket)?.retire();
  }

  stopClaims(): void {
    this.#leaving = true;
    for (const keeper of this.#keepers.values()) keeper.stopClaims();
  }

  async leave(): Promise<boolean> {
    const left = await Promise.all([...this.#keepers.values()].map((keeper) => keeper.leave()));
    return !left.includes(false);
  }

  stop(): void {
    for (const keeper of this.#keepers.values()) keeper.stop();
  }
}
