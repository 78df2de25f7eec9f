import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type NodeRef } from '../store/job-store.js';
import { type LockStore } from '../store/lock-store.js';

/** A node that dies in a round blocks the others for so long at most; one that lives renews the lease while it works. */
const LEASE_MS = 5 * 60_000;
const RENEW_MS = LEASE_MS / 3;

export interface LeasedTaskParts {
  readonly name: string;
  readonly everyMs: number;
  /** The lease is kept for so long after a round that was done, so that other nodes ask once and pass. Less than `everyMs`. */
  readonly keepMs?: number;
  readonly node: NodeRef;
  readonly locks: LockStore;
  readonly clock: Clock;
  readonly events: EngineEvents;
  /** Ends early when the signal is aborted: the lease is lost, or the node stops. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  readonly onError: (task: string, error: unknown) => void;
}

/**
 * Work that one node of the cluster does at a time: at start, then every `everyMs`. The lease only saves work; the work
 * must be right when two nodes do it at once. A round that loses its lease is called off; one that fails is told, and the
 * next one comes all the same.
 */
export class LeasedTask {
  readonly #parts: LeasedTaskParts;
  #cancelTimer: (() => void) | undefined;
  #started = false;
  #stopped = false;
  #round: Promise<void> | undefined;
  #calling: AbortController | undefined;
  #kept = false;

  constructor(parts: LeasedTaskParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    void this.#roundAndAgain();
  }

  /** No further round; calls the running one off and resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#calling?.abort(new Error('the node stops'));
    // Sent before anything that the caller does next: its next task may want the lease.
    const given = this.#round ? undefined : this.#giveUpKept();
    await this.#round;
    await (given ?? this.#giveUpKept());
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
    const { name, node, locks, events, work, onError, keepMs } = this.#parts;
    let done = false;
    try {
      if (!(await locks.tryLock(name, LEASE_MS, node))) {
        events.emit('maintenance', { task: name, outcome: 'elsewhere' });
        return;
      }
      const calling = new AbortController();
      this.#calling = calling;
      if (this.#stopped) calling.abort(new Error('the node stops'));
      const stopRenewing = this.#keepLease(calling);
      try {
        await work(calling.signal);
        done = true;
      } finally {
        stopRenewing();
        if (done && keepMs !== undefined && !this.#stopped)
          this.#kept = await locks.renew(name, keepMs, node);
        else await locks.release(name, node);
      }
      events.emit('maintenance', { task: name, outcome: 'done' });
    } catch (error) {
      // A round that the node's end cut off is no news.
      if (!this.#stopped) onError(name, error);
      events.emit('maintenance', { task: name, outcome: 'failed' });
    }
  }

  async #giveUpKept(): Promise<void> {
    if (!this.#kept) return;
    this.#kept = false;
    const { name, node, locks } = this.#parts;
    // It expires anyway.
    await locks.release(name, node).catch(() => undefined);
  }

  #keepLease(calling: AbortController): () => void {
    const { name, node, locks, clock } = this.#parts;
    let cancel: () => void = () => {};
    let over = false;
    const arm = (): void => void (cancel = clock.timer(RENEW_MS, () => void renew(), true));
    const renew = async (): Promise<void> => {
      // A database that does not answer takes the lease from nobody; whoever takes it later is seen then.
      const held = await locks.renew(name, LEASE_MS, node).catch(() => true);
      if (over) return;
      if (held) arm();
      else calling.abort(new Error('another node took the lease'));
    };
    arm();
    return () => {
      over = true;
      cancel();
    };
  }
}
