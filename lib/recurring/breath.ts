import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock } from '../cluster/clock.js';

/** Of the 10 ms that the event loop may be held; a step, which may count the occurrences of a long outage, takes up to 8. */
const SLICE_MS = 2;

/** Lets others have the event loop, between two steps of a long piece of work, once it had it for long enough. */
export class Breath {
  #sinceMs: number;

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {
    this.#sinceMs = clock.monotonicMs();
  }

  /** Await it only when it is defined: most steps go on at once. */
  take(): Promise<void> | undefined {
    return this.clock.monotonicMs() - this.#sinceMs < SLICE_MS ? undefined : this.#pause();
  }

  async #pause(): Promise<void> {
    await nextTurn();
    this.#sinceMs = this.clock.monotonicMs();
  }
}
