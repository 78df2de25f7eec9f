import { type Clock } from '../clock.js';

/** Measures how late a timer comes that should come every `everyMs`: so long did the event loop stand still. */
export class LoopLag {
  #dueMs: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    readonly everyMs: number,
  ) {}

  /** Calls back at each tick, with the lateness of this one. */
  start(onTick: (lagMs: number) => void): void {
    this.#dueMs = this.clock.monotonicMs() + this.everyMs;
    this.#cancel = this.clock.timer(this.everyMs, () => {
      const lagMs = Math.max(0, this.clock.monotonicMs() - (this.#dueMs ?? 0));
      this.start(onTick);
      onTick(lagMs);
    });
  }

  /** How long the next tick is overdue. */
  get overdueMs(): number {
    return this.#dueMs === undefined ? 0 : Math.max(0, this.clock.monotonicMs() - this.#dueMs);
  }

  stop(): void {
    this.#dueMs = undefined;
    this.#cancel?.();
  }
}
