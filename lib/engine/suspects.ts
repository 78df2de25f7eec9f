import { type ClaimedJob } from '../store/job-store.js';

/** Crash charges from which on a job is run apart. */
export const SUSPECT_CRASHES = 2;

/**
 * Jobs that were running in two crashes or more: one of them may be a poison pill. A node runs at most one at a time, so that
 * its next crash is charged to the culprit and to bystanders that have budget left, never to the same innocents again.
 */
export class Suspects {
  #running = 0;
  #asking = false;
  readonly #onFree: () => void;

  /** `onFree`: another one may be claimed now, by any bucket. */
  constructor(onFree: () => void) {
    this.#onFree = onFree;
  }

  static is(job: ClaimedJob): boolean {
    return job.crashes >= SUSPECT_CRASHES;
  }

  /** True for one exchange at a time, and only while none runs: it may claim one. Ends with {@link Suspects.asked}. */
  ask(): boolean {
    if (this.#running > 0 || this.#asking) return false;
    this.#asking = true;
    return true;
  }

  /** The exchange that was allowed to ask is over. */
  asked(): void {
    this.#asking = false;
  }

  began(): void {
    this.#running += 1;
  }

  ended(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#onFree();
  }
}
