import { type Clock } from '../cluster/clock.js';
import { inOwnContext } from '../observability/own-context.js';

/** Timers of Node may ring up to a millisecond early, and a look that comes too early is a statement for nothing. */
const LATE_MS = 1;

/**
 * Rings once at the earliest of the times that it was told, however far ahead. It is only ever lowered: what is told are times
 * until something is due, and whoever finds nothing when it rings is told the next one by the database.
 */
export class ScheduleTimer {
  #atMs: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ring: () => void,
  ) {}

  /** Milliseconds until it rings; undefined while it does not. */
  get leftMs(): number | undefined {
    return this.#atMs === undefined ? undefined : Math.max(0, this.#atMs - this.clock.monotonicMs());
  }

  /** Rings in so many milliseconds, unless it does so earlier. */
  lower(ms: number): void {
    const atMs = this.clock.monotonicMs() + Math.max(0, ms);
    if (this.#atMs !== undefined && this.#atMs <= atMs) return;
    this.#cancel?.();
    this.#atMs = atMs;
    this.#cancel = this.clock.timer(ms > 0 ? Math.ceil(ms) + LATE_MS : 0, () => {
      this.#atMs = undefined;
      this.#cancel = undefined;
      inOwnContext(this.ring);
    });
  }

  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#atMs = undefined;
  }
}
