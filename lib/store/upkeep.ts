/** What the upkeep of the store asks and reports: parts of the port `JobStore`. */

/** A lane whose due jobs nobody runs. */
export interface UnservedLane {
  readonly lane: string;
  /** How many are due; of large numbers a part is counted, at least 1000. */
  readonly due: number;
  /** How long the one has been due that has waited longest. */
  readonly oldestMs: number;
  /** Some of their names (at most 10). */
  readonly names: readonly string[];
}

export interface RetentionRequest {
  readonly historyMs: number;
  /**
   * Beyond so many bytes of history, with its indexes and without the payloads that rest in a table of their own, the oldest
   * days go, whatever their age; never today's. Default: no bound.
   */
  readonly historyBytes?: number;
  readonly executionMs: number;
  readonly deadLetterMs: number;
}

export interface RetentionReport {
  readonly partitionsDropped: readonly string[];
  /** Of these, the ones that were not past their age: history was too large. */
  readonly droppedForSize: readonly string[];
  readonly deadLettersDeleted: number;
  readonly payloadsDeleted: number;
  readonly idempotencyKeysDeleted: number;
  /** What the role may not do itself, as SQL for an operator. */
  readonly refused: readonly string[];
}
