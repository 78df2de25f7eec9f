import { Clock } from '../../lib/cluster/clock.js';

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until a test moves it. Timers run in order of their time, each at its own time. */
export class FakeClock extends Clock {
  #nowMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(private readonly startMs = Date.UTC(2030, 0, 1)) {
    super();
  }

  override monotonicMs(): number {
    return this.#nowMs;
  }

  override now(): Date {
    return new Date(this.startMs + this.#nowMs);
  }

  override timer(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Timers that have neither run nor been canceled. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves on by `ms`, running what becomes due. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (let next = this.#next(untilMs); next; next = this.#next(untilMs)) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
    }
    this.#nowMs = untilMs;
  }

  /** Time goes by and no timer runs: the event loop stands still. */
  block(ms: number): void {
    this.#nowMs += ms;
  }

  #next(untilMs: number): Timer | undefined {
    return [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
  }
}

/** Lets promises that are already settled reach those who wait for them. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
