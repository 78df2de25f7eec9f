import { type Clock } from '../cluster/clock.js';
import { faultKindOf } from '../store/store-fault.js';
import { faultDelayMs } from './backoff-delay.js';
import { type EngineFaults } from './engine-faults.js';

/** The wait was called off: the node stops. */
export class CalledOff extends Error {
  override readonly name = 'CalledOff';
}

/** Repeats a step until the database lets it through, with the engine's one back-off. A fault that no waiting mends is thrown. */
export class Patience {
  #off = false;
  readonly #sleepers = new Set<() => void>();

  constructor(
    private readonly clock: Clock,
    private readonly faults: EngineFaults,
  ) {}

  /** Every wait ends now; `until` throws {@link CalledOff}. */
  callOff(): void {
    this.#off = true;
    for (const wake of this.#sleepers) wake();
  }

  /** `onFailure` is called after each failure that is worth waiting for. */
  async until<T>(what: string, step: () => Promise<T>, onFailure: () => void = () => {}): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      this.#check();
      try {
        const value = await step();
        this.faults.worked(what);
        return value;
      } catch (error) {
        this.#check();
        const kind = faultKindOf(error);
        if (kind === 'fatal' || kind === 'bad_row' || kind === 'missing_partition') throw error;
        const delayMs = faultDelayMs(failures);
        this.faults.failed(what, error, delayMs);
        onFailure();
        await this.#sleep(delayMs);
      }
    }
  }

  #check(): void {
    if (this.#off) throw new CalledOff();
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        this.#sleepers.delete(wake);
        resolve();
      };
      const cancel = this.clock.timer(ms, wake);
      this.#sleepers.add(wake);
    });
  }
}
