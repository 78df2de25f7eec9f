import { type PriorityRank } from '../jobs/priority.js';
import { type ForeignStream } from '../store/job-store.js';
import { type Places } from './floors.js';

/** How long due jobs of other nodes are passed over before somebody looks again. */
export const PASS_OVER_MS = 30_000;
/** The least time between two looks while nothing stood in the way. */
const LOOK_EVERY_MS = 5_000;
/** Ours stand scattered among theirs: the next look comes as soon as claims come back short, but costs a twentieth of the time at most. */
const LOOK_AGAIN_MS = 100;
const LOOK_AGAIN_FACTOR = 20;

/**
 * A lane full of jobs that this node has no handler for would cost each claim a long walk, and would hide our own jobs
 * behind it. When claims come back short somebody looks what stands at the heads of the streams; for a while claims start
 * behind it. Pure.
 */
export class PassOver {
  #places: Places = {};
  #hidden = 0;
  #untilMs = Number.NEGATIVE_INFINITY;
  #nextLookMs = Number.NEGATIVE_INFINITY;

  /** Where claims start instead, while it holds. */
  places(nowMs: number): Places {
    if (nowMs >= this.#untilMs) this.#forget();
    return this.#places;
  }

  /** Rows that a claim must read, beyond what it wants, to come to ours. */
  get hidden(): number {
    return this.#hidden;
  }

  /** A claim came back short: worth a look at the heads of the streams? */
  wantsLook(nowMs: number): boolean {
    return nowMs >= this.#nextLookMs;
  }

  beginLook(nowMs: number): void {
    this.#nextLookMs = nowMs + LOOK_EVERY_MS;
  }

  /** What the look found, and how long it took. True: some stream is passed over from now on. */
  looked(streams: readonly ForeignStream[], nowMs: number, tookMs: number): boolean {
    this.#forget();
    for (const stream of streams) {
      this.#places[stream.priority] = stream.resumeAt;
      this.#hidden = Math.max(this.#hidden, stream.hidden);
    }
    if (streams.length === 0) return false;
    this.#untilMs = nowMs + PASS_OVER_MS;
    this.#nextLookMs = streams.some((stream) => stream.own)
      ? nowMs + Math.max(LOOK_AGAIN_MS, LOOK_AGAIN_FACTOR * tookMs)
      : this.#untilMs;
    return true;
  }

  /** Claims took the place further. */
  claimed(last: Places): void {
    for (const [key, place] of Object.entries(last)) {
      const priority = Number(key) as PriorityRank;
      if (this.#places[priority] !== undefined) this.#places[priority] = place;
    }
  }

  /** Something of ours may stand among the passed-over ones. */
  clear(): void {
    this.#forget();
    this.#untilMs = Number.NEGATIVE_INFINITY;
    this.#nextLookMs = Number.NEGATIVE_INFINITY;
  }

  #forget(): void {
    this.#places = {};
    this.#hidden = 0;
  }
}
