import { type ChaosFixture, until } from './chaos-fixture.js';
import { type Random } from './random.js';

const LANES = ['default', 'mail'];

/** A person who looks after the cluster by hand, not always wisely. What cannot be done now is not done. */
export class Operator {
  readonly #chaos: ChaosFixture;
  readonly #random: Random;

  constructor(chaos: ChaosFixture, random: Random) {
    this.#chaos = chaos;
    this.#random = random;
  }

  /** For a while nothing of it is claimed; half of the times nothing of it runs either. */
  async pauseLane(): Promise<void> {
    const lane = this.#random.one(LANES);
    const { buckets } = this.#chaos;
    const how = this.#random.next() < 0.5 ? buckets.pauseLane(lane) : buckets.drainLane(lane);
    await how.catch(() => undefined);
    await this.#pause();
    await buckets.resumeLane(lane).catch(() => undefined);
  }

  async drainBucket(): Promise<void> {
    const { buckets } = this.#chaos;
    const place = this.#random.next();
    const list = await buckets.list().catch(() => []);
    const bucket = list[Math.floor(place * list.length)];
    if (bucket) await buckets.drainBucket(bucket.id).catch(() => undefined);
  }

  /** Sometimes nobody thinks of letting it serve again, until the end. */
  async drainNode(nodeId: string): Promise<void> {
    const { buckets } = this.#chaos;
    const forgets = this.#random.next() < 0.2;
    await buckets.drainNode(nodeId).catch(() => undefined);
    await this.#pause();
    if (!forgets) await buckets.undrainNode(nodeId).catch(() => undefined);
  }

  /** From now on every lane is served, by every node. */
  async putRight(): Promise<void> {
    const { buckets, database } = this.#chaos;
    await until(async () => {
      for (const lane of LANES) await buckets.resumeLane(lane);
      const cordoned = await database.query<{ id: string }>(
        'select id from ratchet.node where cordoned_at is not null',
      );
      for (const { id } of cordoned) await buckets.undrainNode(id);
      return true;
    });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.#random.between(100, 2_000)));
  }
}
