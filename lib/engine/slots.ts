/**
 * Room for running executions, as one bucket sees it. A slot is taken by a claim and free again when the handler's body has
 * ended. An exchange on its way holds a reservation of what it may claim, so that two buckets never claim for the same slots.
 */
export interface BucketSlots {
  /** What this bucket may claim for now: neither taken nor reserved, nor kept for another. */
  readonly free: number;
  /** Holds up to `most` of {@link BucketSlots.free}, and returns how many; ends with {@link BucketSlots.unreserve}. */
  reserve(most: number): number;
  unreserve(count: number): void;
  /** An adopted claim may overfill: it has to run somewhere. */
  take(): void;
  giveBack(): void;
  /**
   * Whether the bucket would use more slots than it has. Said whenever it comes to rest: one that wants and finds none free is told
   * when there is room for it, and until then it counts where others take what is free. One that will not claim any more says no.
   */
  wants(yes: boolean): void;
}
