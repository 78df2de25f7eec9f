/**
 * Room for running executions, as one bucket sees it. A slot is taken by a claim and free again when the handler's body has
 * ended. An exchange on its way holds a reservation of what it may claim, so that two buckets never claim for the same slots.
 */
export interface BucketSlots {
  /** What this bucket may claim for now: neither taken nor reserved. */
  readonly free: number;
  /** Holds up to `most` of {@link BucketSlots.free}, and returns how many; ends with {@link BucketSlots.unreserve}. */
  reserve(most: number): number;
  unreserve(count: number): void;
  /** An adopted claim may overfill: it has to run somewhere. */
  take(): void;
  giveBack(): void;
}

/** Slots of one bucket alone. */
export class Slots implements BucketSlots {
  #taken = 0;
  #reserved = 0;

  constructor(readonly capacity: number) {}

  get free(): number {
    return Math.max(0, this.capacity - this.#taken - this.#reserved);
  }

  get taken(): number {
    return this.#taken;
  }

  reserve(most: number): number {
    const count = Math.min(most, this.free);
    this.#reserved += count;
    return count;
  }

  unreserve(count: number): void {
    this.#reserved -= count;
  }

  take(): void {
    this.#taken += 1;
  }

  giveBack(): void {
    this.#taken -= 1;
  }
}
