import { type PriorityRank } from '../jobs/priority.js';
import { type ForeignStream, type StreamPlace } from '../store/job-store.js';
import { type Places } from './floors.js';

/** How long due jobs of other nodes are passed over before somebody looks again. */
export const PASS_OVER_MS = 30_000;
/** The least time between two looks while nothing stood in the way. */
const LOOK_EVERY_MS = 5_000;

/**
 * A lane full of jobs that this node has no handler for would cost each claim a long walk, and would hide our own jobs
 * behind it. When claims come back short somebody looks what stands at the heads of the streams; for a while claims start
 * behind it. Pure.
 */
export class PassOver {
  #places: Places = {};
  #untilMs = Number.NEGATIVE_INFINITY;
  #nextLookMs = Number.NEGATIVE_INFINITY;

  /** Where claims start instead, while it holds. */
  places(nowMs: number): Places {
    if (nowMs >= this.#untilMs) this.#places = {};
    return this.#places;
  }

  /** A claim came back short: worth a look at the heads of the streams? */
  wantsLook(nowMs: number): boolean {
    return nowMs >= this.#nextLookMs;
  }

  beginLook(nowMs: number): void {
    this.#nextLookMs = nowMs + LOOK_EVERY_MS;
  }

  /** What the look found. True: some stream is passed over from now on. */
  looked(foreign: readonly ForeignStream[], nowMs: number): boolean {
    this.#places = {};
    for (const stream of foreign)
      if (stream.names.length > 0) this.#places[stream.priority] = stream.resumeAt;
    const found = foreign.some((stream) => stream.names.length > 0);
    if (found) {
      this.#untilMs = nowMs + PASS_OVER_MS;
      this.#nextLookMs = this.#untilMs;
    }
    return found;
  }

  /** Claims took the place further. */
  claimed(last: Places): void {
    for (const [key, place] of Object.entries(last)) {
      const priority = Number(key) as PriorityRank;
      if (this.#places[priority] !== undefined) this.#places[priority] = place satisfies StreamPlace;
    }
  }

  /** Something of ours may stand among the passed-over ones. */
  clear(): void {
    this.#places = {};
    this.#untilMs = Number.NEGATIVE_INFINITY;
    this.#nextLookMs = Number.NEGATIVE_INFINITY;
  }
}
