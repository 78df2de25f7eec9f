import { type ClaimedJob } from '../store/job-store.js';

/** How long a hungry node is not heard after a gift that nobody took, at first; twice as long after each further one. */
const FIRST_DEAF_MS = 2_000;
const LONGEST_DEAF_MS = 60_000;
/** After a gift the bucket does not fill its buffer again at once. */
const MODEST_MS = 1_000;

/**
 * Whether it helps others when a bucket gives back what it has claimed ahead. A hungry node may have no handler for these jobs, or
 * serve another priority: then they come back to the giver, which does not listen for a while, longer each time.
 */
export class Sharing {
  #given = new Set<string>();
  #deafMs = 0;
  #deafUntilMs = 0;
  #modestUntilMs = 0;

  /** It claims nothing ahead now. */
  isModest(nowMs: number): boolean {
    return nowMs < this.#modestUntilMs;
  }

  worthwhile(nowMs: number): boolean {
    return nowMs >= this.#deafUntilMs;
  }

  gave(jobs: readonly ClaimedJob[], nowMs: number): void {
    this.#modestUntilMs = nowMs + MODEST_MS;
    this.#given = new Set(jobs.map(({ id }) => id));
  }

  /** What the bucket claims after that says whether somebody else took them. */
  claimed(jobs: readonly ClaimedJob[], nowMs: number): void {
    if (this.#given.size === 0) return;
    const inVain = jobs.some(({ id }) => this.#given.has(id));
    this.#given = new Set();
    this.#deafMs = inVain ? Math.min(LONGEST_DEAF_MS, Math.max(FIRST_DEAF_MS, this.#deafMs * 2)) : 0;
    this.#deafUntilMs = nowMs + this.#deafMs;
  }
}
