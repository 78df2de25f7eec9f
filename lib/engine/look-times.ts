/**
 * When the next job is due, as far as a bucket has been told: then it looks, whatever its pace. Relative delays on the
 * monotonic clock only; no clocks are compared. Pure.
 */
export class LookTimes {
  #dueAtMs = Number.POSITIVE_INFINITY;
  /** The earliest due time told since the last claim left: its snapshot may be older than that job. */
  #toldAtMs = Number.POSITIVE_INFINITY;

  /** A job becomes due in so many milliseconds: told by a wakeup, or a retry that this node has just written. */
  dueIn(nowMs: number, delayMs: number): void {
    this.#dueAtMs = Math.min(this.#dueAtMs, nowMs + delayMs);
    this.#toldAtMs = Math.min(this.#toldAtMs, nowMs + delayMs);
  }

  /** A claim leaves now. What is told from here on outlives its answer. */
  looking(): void {
    this.#toldAtMs = Number.POSITIVE_INFINITY;
  }

  /**
   * A claim was answered that found fewer than it wanted, so the answer knows the next due time; only then the old one is
   * forgotten, but for what was told meanwhile. Own delays of the same exchange, which its snapshot could not see either, are
   * merged by `dueIn` afterwards.
   */
  cameShort(nowMs: number, nextDueInMs: number | undefined): void {
    // One millisecond later rather than a claim that comes a fraction too early and finds nothing.
    const answeredMs =
      nextDueInMs === undefined ? Number.POSITIVE_INFINITY : nowMs + Math.max(0, nextDueInMs) + 1;
    this.#dueAtMs = Math.min(answeredMs, this.#toldAtMs);
  }

  /** Milliseconds until the next job is due; `Infinity` when none is known. */
  nextInMs(nowMs: number): number {
    return Math.max(0, this.#dueAtMs - nowMs);
  }

  /** The due time has come: it is the claim's business now. */
  passed(nowMs: number): void {
    if (this.#dueAtMs <= nowMs) this.#dueAtMs = Number.POSITIVE_INFINITY;
  }
}
