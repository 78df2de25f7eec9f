import { type Clock } from '../cluster/clock.js';
import { faultKindOf, type StoreFaultKind } from '../store/store-fault.js';
import { faultDelayMs } from './backoff-delay.js';
import { type EngineFaults } from './engine-faults.js';

/** The wait was called off: the node stops. */
export class CalledOff extends Error {
  override readonly name = 'CalledOff';
}

/** These pass by themselves. */
const PASSING: readonly StoreFaultKind[] = ['unavailable', 'unknown', 'rolled_back'];

/**
 * Repeats a step until the database lets it through, with the engine's one back-off. While somebody still watches (the boot
 * of the application), a fault that no waiting mends is thrown. From the first wait on nobody would hear it, so everything
 * is waited out: a password, a grant or a database that went can come back, and a node that gave up would be dead for ever.
 */
export class Patience {
  /** Resolves when nobody has to watch any more. */
  readonly unattended: Promise<void>;
  #watched = true;
  #off = false;
  #letGo: () => void = () => {};
  readonly #sleepers = new Set<() => void>();

  constructor(
    private readonly clock: Clock,
    private readonly faults: EngineFaults,
  ) {
    this.unattended = new Promise((resolve) => (this.#letGo = resolve));
  }

  /** From now on nothing but {@link CalledOff} is thrown. */
  insist(): void {
    this.#watched = false;
    this.#letGo();
  }

  /** Every wait ends now; {@link Patience.until} throws {@link CalledOff}. */
  callOff(): void {
    this.#off = true;
    for (const wake of this.#sleepers) wake();
  }

  /** @throws CalledOff */
  check(): void {
    if (this.#off) throw new CalledOff();
  }

  /** `who`: which of several that take the same step. */
  async until<T>(what: string, step: () => Promise<T>, who = ''): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      this.check();
      try {
        const value = await step();
        this.faults.worked(what, who);
        return value;
      } catch (error) {
        this.check();
        if (this.#watched && !PASSING.includes(faultKindOf(error))) throw error;
        const delayMs = faultDelayMs(failures);
        this.faults.failed(what, error, delayMs, who);
        this.insist();
        await this.#sleep(delayMs);
      }
    }
  }

  /** The wait after the n-th failure in a row, for whoever repeats more than one step. */
  async pause(failures: number): Promise<void> {
    this.check();
    await this.#sleep(faultDelayMs(failures));
    this.check();
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
