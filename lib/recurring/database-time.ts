import { type Clock } from '../cluster/clock.js';

/**
 * The database's time, known to this process without asking: read once in a while, and carried on by the monotonic clock. The
 * wall clock of the machine may say what it likes.
 */
export class DatabaseTime {
  #offsetMs: number | undefined;

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /** @param askedAtMs - when it was asked for, on the monotonic clock: the answer is from between then and now. */
  read(now: Date, askedAtMs: number): void {
    const nowMs = this.clock.monotonicMs();
    this.#offsetMs = now.getTime() - (askedAtMs + nowMs) / 2;
  }

  /** Undefined until it was read. */
  get now(): Date | undefined {
    return this.#offsetMs === undefined
      ? undefined
      : new Date(Math.floor(this.clock.monotonicMs() + this.#offsetMs));
  }
}
