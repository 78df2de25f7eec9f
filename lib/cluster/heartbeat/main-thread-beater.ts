import { inOwnContext } from '../../observability/own-context.js';
import { type BeatAnswer, type BeatRequest } from '../../store/membership.js';
import { type Clock } from '../clock.js';
import { type Beater, type BeatListener, type BeatState } from './beater.js';

/** After a beat that failed the next one comes sooner, so that a short outage costs one beat and not the lease. */
const RETRY_MS = 1_000;

/**
 * Beats in the main thread, by the store: for stores that have no program for a worker thread, and for connections whose settings
 * cannot be given to one. A handler that blocks the event loop blocks it too.
 */
export class MainThreadBeater implements Beater {
  acknowledgedAtMs: number | undefined;
  #listener: BeatListener | undefined;
  #state: BeatState | undefined;
  #cancel: (() => void) | undefined;
  #beating: Promise<void> = Promise.resolve();
  #busy = false;
  #again = false;
  #stopped = false;

  constructor(
    private readonly store: { beat(request: BeatRequest): Promise<BeatAnswer> },
    private readonly clock: Clock,
  ) {}

  start(listener: BeatListener): void {
    this.#listener = listener;
  }

  update(state: BeatState): void {
    const before = this.#state;
    this.#state = state;
    if (before && before.node.epoch !== state.node.epoch) this.acknowledgedAtMs = undefined;
    if (!before) this.beatNow();
  }

  beatNow(): void {
    if (this.#stopped || !this.#state) return;
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#cancel?.();
    this.#busy = true;
    this.#beating = inOwnContext(() => this.#beat(this.#state as BeatState));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#beating;
  }

  async #beat(state: BeatState): Promise<void> {
    const sentAtMs = this.clock.monotonicMs();
    let waitMs = state.intervalMs;
    try {
      const answer = await this.store.beat(state);
      this.#busy = false;
      // The answer to a beat under an epoch that this process has left says nothing of it.
      if (state.node.epoch === this.#state?.node.epoch) {
        if (answer.alive) this.acknowledgedAtMs = sentAtMs;
        if (!this.#stopped) this.#listener?.answered(answer);
      }
    } catch (error) {
      this.#busy = false;
      waitMs = Math.min(RETRY_MS, waitMs);
      if (!this.#stopped) this.#listener?.failed(error);
    }
    if (this.#stopped) return;
    if (this.#again) waitMs = 0;
    this.#again = false;
    this.#cancel = this.clock.timer(waitMs, () => this.beatNow());
  }
}
