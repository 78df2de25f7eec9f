import { Clock } from '../cluster/clock.js';

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock whose timers only run when the tester moves it, each at its own time, earliest first. */
export class VirtualClock extends Clock {
  #movedMs = 0;
  readonly #timers = new Set<Timer>();

  /** @param base - the time before anybody moved the clock: a fixed one, or one that passes. */
  constructor(private readonly base: () => number) {
    super();
  }

  override monotonicMs(): number {
    return this.base() + this.#movedMs;
  }

  override now(): Date {
    return new Date(this.base() + this.#movedMs);
  }

  override timer(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.#movedMs + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  advance(ms: number): void {
    const untilMs = this.#movedMs + ms;
    for (let next = this.#next(untilMs); next; next = this.#next(untilMs)) {
      this.#timers.delete(next);
      this.#movedMs = Math.max(this.#movedMs, next.atMs);
      next.callback();
    }
    this.#movedMs = untilMs;
  }

  #next(untilMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= untilMs && timer.atMs < (next?.atMs ?? Infinity)) next = timer;
    }
    return next;
  }
}
