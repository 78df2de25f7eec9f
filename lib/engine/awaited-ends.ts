import { type Clock } from '../cluster/clock.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type EngineEvents } from '../observability/engine-events.js';

export interface AwaitedEndsParts {
  readonly messages: Pick<ClusterMessages, 'onSignal' | 'signal' | 'isOwn'>;
  readonly events: EngineEvents;
  readonly clock: Clock;
}

/** Beyond it the oldest are forgotten: whoever awaits them asks the database all the same. */
const MOST = 1_000;
/** Who waits for longer than this hears of the end when he asks. */
const KEPT_MS = 600_000;

/**
 * Remembers the jobs of which other processes have said that somebody awaits them, and tells the cluster when this node records
 * the end of one. While there are none it hears no event, so that jobs that nobody awaits cost nothing.
 */
export class AwaitedEnds {
  readonly #parts: AwaitedEndsParts;
  /** Oldest first: until when each is kept. */
  readonly #untilMs = new Map<string, number>();
  #leave: (() => void) | undefined;
  #deaf: (() => void)[] = [];
  #cancelTimer: (() => void) | undefined;

  constructor(parts: AwaitedEndsParts) {
    this.#parts = parts;
  }

  start(): void {
    const { messages } = this.#parts;
    this.#leave ??= messages.onSignal((signal) => {
      // The end of a job that this process awaits is no news to it; another may await it as well, and says so.
      if (messages.isOwn(signal)) return;
      if (signal.kind === 'awaited') this.#remember(signal.jobId);
      else if (signal.kind === 'ended') this.#forget(signal.jobId);
    });
  }

  stop(): void {
    this.#leave?.();
    this.#leave = undefined;
    this.#untilMs.clear();
    this.#rest();
  }

  #remember(jobId: string): void {
    this.#untilMs.delete(jobId);
    this.#untilMs.set(jobId, this.#parts.clock.monotonicMs() + KEPT_MS);
    if (this.#untilMs.size > MOST) this.#untilMs.delete(this.#oldest() as string);
    this.#listen();
  }

  #forget(jobId: string): void {
    if (this.#untilMs.delete(jobId) && this.#untilMs.size === 0) this.#rest();
  }

  #oldest(): string | undefined {
    return this.#untilMs.keys().next().value;
  }

  #listen(): void {
    if (this.#deaf.length > 0) return;
    const { events } = this.#parts;
    this.#deaf = [
      events.on('settled', ({ jobId, outcome }) => {
        if (outcome === 'succeeded' || outcome === 'failed') this.#ended(jobId);
      }),
      events.on('buried', ({ jobId }) => this.#ended(jobId)),
      events.on('withdrawn', ({ jobId }) => this.#ended(jobId)),
      events.on('canceled', ({ jobId }) => this.#ended(jobId)),
    ];
    this.#sweepLater();
  }

  #ended(jobId: string): void {
    if (!this.#untilMs.has(jobId)) return;
    this.#forget(jobId);
    this.#parts.messages.signal({ kind: 'ended', jobId });
  }

  #sweepLater(): void {
    this.#cancelTimer = this.#parts.clock.timer(KEPT_MS, () => this.#sweep(), true);
  }

  #sweep(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [jobId, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break;
      this.#untilMs.delete(jobId);
    }
    if (this.#untilMs.size === 0) this.#rest();
    else this.#sweepLater();
  }

  #rest(): void {
    for (const off of this.#deaf.splice(0)) off();
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}
