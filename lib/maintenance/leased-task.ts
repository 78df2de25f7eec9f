import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type NodeRef } from '../store/job-store.js';
import { type LockStore } from '../store/lock-store.js';

/** Longer than any round takes; a node that dies in a round blocks the others for so long at most. */
const LEASE_MS = 5 * 60_000;

export interface LeasedTaskParts {
  readonly name: string;
  readonly everyMs: number;
  readonly node: NodeRef;
  readonly locks: LockStore;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly work: () => Promise<void>;
  readonly onError: (task: string, error: unknown) => void;
}

/**
 * Work that one node of the cluster does at a time: at start, then every `everyMs`. The lease only saves work; the work
 * must be right when two nodes do it at once. A failed round is told and the next one comes all the same.
 */
export class LeasedTask {
  readonly #parts: LeasedTaskParts;
  #cancelTimer: (() => void) | undefined;
  #started = false;
  #stopped = false;
  #round: Promise<void> | undefined;

  constructor(parts: LeasedTaskParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    void this.#roundAndAgain();
  }

  /** No further round; resolves when the running one has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    await this.#round;
  }

  /** One round. Never rejects. */
  runOnce(): Promise<void> {
    this.#round ??= this.#run().finally(() => (this.#round = undefined));
    return this.#round;
  }

  async #roundAndAgain(): Promise<void> {
    await this.runOnce();
    if (this.#stopped) return;
    this.#cancelTimer = this.#parts.clock.timer(this.#parts.everyMs, () => void this.#roundAndAgain(), true);
  }

  async #run(): Promise<void> {
    const { name, node, locks, events, work, onError } = this.#parts;
    try {
      if (!(await locks.tryLock(name, LEASE_MS, node))) {
        events.emit('maintenance', { task: name, outcome: 'elsewhere' });
        return;
      }
      try {
        await work();
      } finally {
        await locks.release(name, node);
      }
      events.emit('maintenance', { task: name, outcome: 'done' });
    } catch (error) {
      // A round that the node's end cut off is no news.
      if (!this.#stopped) onError(name, error);
      events.emit('maintenance', { task: name, outcome: 'failed' });
    }
  }
}
