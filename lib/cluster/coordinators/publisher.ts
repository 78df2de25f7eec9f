import { inOwnContext } from '../../observability/own-context.js';
import { type Clock } from '../clock.js';
import { type CoordinatorMessage } from './coordinator-message.js';
import { PendingMessages } from './pending-messages.js';

export interface PublisherParts {
  /** Tells the others. A rejection means that nobody may have heard. */
  readonly send: (messages: readonly CoordinatorMessage[]) => Promise<void>;
  readonly clock: Clock;
  /** The least time from one send to the next, in milliseconds. */
  readonly intervalMs: number;
  /** Called at the first failure, and with nothing when it works again. */
  readonly onFault: (error: unknown) => void;
  readonly onMended: () => void;
}

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;

/**
 * Sends what is pending: the first at the end of the tick in which it was asked for, then at most one batch an interval, never
 * two at a time. After a failure it tries again, ever more slowly. States: `idle`, `soon` (the tick's end), `sending`, `resting`
 * (until the interval, or the wait after a failure, is over), `closed`.
 */
export class Publisher {
  readonly #parts: PublisherParts;
  readonly #pending = new PendingMessages();
  #state: 'idle' | 'soon' | 'sending' | 'resting' | 'closed' = 'idle';
  #sending: Promise<void> = Promise.resolve();
  #failures = 0;
  #cancelRest: () => void = () => {};

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Never throws, never waits. */
  add(message: CoordinatorMessage): void {
    if (this.#state === 'closed') return;
    this.#pending.add(message, this.#parts.clock.monotonicMs());
    if (this.#state !== 'idle') return;
    this.#state = 'soon';
    // Whatever the same tick asks for besides, such as the streams of one enqueueMany, goes along.
    queueMicrotask(() => inOwnContext(() => this.#send()));
  }

  /** Sends what is pending one last time, and is over when that is. Never rejects, but may take as long as a send does. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return this.#sending;
    this.#cancelRest();
    const inFlight = this.#sending;
    this.#state = 'closed';
    this.#sending = inFlight.then(() => this.#attempt()).then(() => undefined);
    await this.#sending;
  }

  #send(): void {
    if (this.#state === 'closed') return;
    this.#state = 'sending';
    const { clock, intervalMs } = this.#parts;
    const beganMs = clock.monotonicMs();
    this.#sending = this.#attempt().then((waitMs) => {
      if (this.#state === 'closed') return;
      this.#rest(waitMs ?? Math.max(0, intervalMs - (clock.monotonicMs() - beganMs)), waitMs !== undefined);
    });
  }

  /** Returns how long to wait after a failure. */
  async #attempt(): Promise<number | undefined> {
    const { clock, send, onFault, onMended } = this.#parts;
    const messages = this.#pending.take(clock.monotonicMs());
    if (messages.length === 0) return undefined;
    try {
      await send(messages);
      if (this.#failures > 0) onMended();
      this.#failures = 0;
      return undefined;
    } catch (error) {
      this.#pending.giveBack(messages, clock.monotonicMs());
      if (this.#failures === 0) onFault(error);
      this.#failures += 1;
      return (
        Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#failures - 1, 10)) *
        (0.5 + Math.random() / 2)
      );
    }
  }

  #rest(ms: number, failed: boolean): void {
    this.#state = 'resting';
    // A process that is done need not stay for a database that is away.
    this.#cancelRest = this.#parts.clock.timer(
      ms,
      () => {
        if (this.#state !== 'resting') return;
        this.#state = 'idle';
        if (this.#pending.size > 0) inOwnContext(() => this.#send());
      },
      failed,
    );
  }
}
