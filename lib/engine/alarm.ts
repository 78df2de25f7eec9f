import { type Clock } from '../cluster/clock.js';

/** One timer that can be set anew; the earlier setting is forgotten. */
export class Alarm {
  #cancel: (() => void) | undefined;

  constructor(private readonly clock: Clock) {}

  set(ms: number, ring: () => void): void {
    this.#cancel?.();
    this.#cancel = this.clock.timer(ms, () => {
      this.#cancel = undefined;
      ring();
    });
  }

  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
