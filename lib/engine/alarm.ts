import { type Clock } from '../cluster/clock.js';
import { inOwnContext } from '../observability/own-context.js';

/** One timer that can be set anew; the earlier setting is forgotten. It rings in the engine's own context, whoever set it. */
export class Alarm {
  #cancel: (() => void) | undefined;

  constructor(private readonly clock: Clock) {}

  set(ms: number, ring: () => void): void {
    this.#cancel?.();
    this.#cancel = this.clock.timer(ms, () => {
      this.#cancel = undefined;
      inOwnContext(ring);
    });
  }

  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
