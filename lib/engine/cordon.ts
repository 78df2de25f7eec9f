import { type LineLogger } from './line-logger.js';

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

  constructor(private readonly logger: LineLogger) {}

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
      this.logger.warn(`node ${nodeId} was drained by hand: it opens no bucket until somebody undrains it`);
    }
    return this.#ended ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A bucket was granted. */
  opened(): void {
    this.#up = false;
    if (!this.#told) return;
    this.#told = false;
    this.logger.log('the node was undrained: it opens buckets again');
  }

  /** The node leaves. */
  end(): void {
    this.#ended = true;
    this.#letGo();
  }

  #letGo(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
