import { type Clock } from '../../cluster/clock.js';
import { type ClusterMessages } from '../../cluster/cluster-messages.js';

/** What ends sooner is found by the first questions. */
const PATIENCE_MS = 200;
/** Whoever awaits more than this asks for all of them every second anyhow, and must not flood the cluster. */
const MOST_AWAITED = 100;

/**
 * Tells the cluster, once for each job, that somebody here has awaited it for a while, so that the node that records its end says
 * so. Says nothing while many jobs are awaited at once.
 */
export class AwaitAnnouncer {
  readonly #clock: Clock;
  readonly #messages: Pick<ClusterMessages, 'signal'>;
  /** Awaited and not told of: since when. Oldest first. */
  readonly #untold = new Map<string, number>();
  readonly #told = new Set<string>();
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, messages: Pick<ClusterMessages, 'signal'>) {
    this.#clock = clock;
    this.#messages = messages;
  }

  add(jobId: string): void {
    if (this.#told.has(jobId) || this.#untold.has(jobId)) return;
    this.#untold.set(jobId, this.#clock.monotonicMs());
    this.#arm();
  }

  remove(jobId: string): void {
    this.#told.delete(jobId);
    this.#untold.delete(jobId);
    this.#arm();
  }

  clear(): void {
    this.#told.clear();
    this.#untold.clear();
    this.#arm();
  }

  get #isQuiet(): boolean {
    return this.#untold.size === 0 || this.#untold.size + this.#told.size > MOST_AWAITED;
  }

  #arm(): void {
    if (this.#isQuiet) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      return;
    }
    if (this.#cancelTimer) return;
    const [sinceMs = 0] = this.#untold.values();
    const dueInMs = Math.max(0, sinceMs + PATIENCE_MS - this.#clock.monotonicMs());
    this.#cancelTimer = this.#clock.timer(dueInMs, () => this.#announce(), true);
  }

  #announce(): void {
    this.#cancelTimer = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const [jobId, sinceMs] of this.#untold) {
      if (nowMs - sinceMs < PATIENCE_MS) break;
      this.#untold.delete(jobId);
      this.#told.add(jobId);
      this.#messages.signal({ kind: 'awaited', jobId });
    }
    this.#arm();
  }
}
