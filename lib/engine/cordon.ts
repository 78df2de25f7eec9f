import { type Clock } from '../cluster/clock.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type LineLogger } from './line-logger.js';

/** While it is up, the database is asked so often at most. */
const ASKED_EVERY_MS = 1_000;

export interface CordonParts {
  readonly logger: LineLogger;
  readonly clock: Clock;
  /** Whoever undrains a node says that there may be work in its lanes. */
  readonly messages: Pick<ClusterMessages, 'onWakeup'>;
  readonly lanes: () => readonly string[];
  /** Asks the database whether it is still drained. */
  readonly ask: () => void;
}

/**
 * Whether somebody has drained this node by hand, as far as the process knows. It has no buckets then, until somebody lets it serve again:
 * what would open one waits here.
 */
export class Cordon {
  readonly #waiting: (() => void)[] = [];
  #up = false;
  /** One line, however many buckets wait. */
  #told = false;
  #ended = false;
  #unregister: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #askedMs = -Infinity;

  constructor(private readonly parts: CordonParts) {}

  get up(): boolean {
    return this.#up;
  }

  /** What a heartbeat was answered. */
  heard(cordoned: boolean): void {
    this.#up = cordoned;
    if (!cordoned) this.#letGo();
  }

  /** A bucket was refused to the node. Resolves when it is worth asking again, or when nobody asks any more. */
  lifted(nodeId: string): Promise<void> {
    this.#up = true;
    if (!this.#told) {
      this.#told = true;
      this.parts.logger.warn(
        `node ${nodeId} was drained by hand: it opens no bucket until somebody undrains it`,
      );
    }
    if (this.#ended) return Promise.resolve();
    this.#unregister ??= this.parts.messages.onWakeup(({ lane }) => this.#woken(lane));
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A bucket was granted. */
  opened(): void {
    this.#up = false;
    if (!this.#told) return;
    this.#told = false;
    this.parts.logger.log('the node was undrained: it opens buckets again');
  }

  /** The node leaves. */
  end(): void {
    this.#ended = true;
    this.#letGo();
  }

  #woken(lane: string): void {
    const { clock, lanes, ask } = this.parts;
    if (this.#cancelTimer || this.#waiting.length === 0 || !lanes().includes(lane)) return;
    const inMs = Math.max(0, this.#askedMs + ASKED_EVERY_MS - clock.monotonicMs());
    this.#cancelTimer = clock.timer(inMs, () => {
      this.#cancelTimer = undefined;
      this.#askedMs = clock.monotonicMs();
      ask();
    });
  }

  #letGo(): void {
    this.#unregister?.();
    this.#unregister = undefined;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
