import { type PriorityRank } from '../jobs/priority.js';
import {
  type ClusterCoordinator,
  type ClusterSignal,
  type Wakeup,
  type WakeupHint,
} from './cluster-coordinator.js';

/**
 * Tells this process first and the cluster second. Everything that makes work available, or cuts it off, speaks through
 * here and after its commit. It never throws: a hint that is lost costs latency only.
 */
export class ClusterMessages {
  readonly #wakeupListeners = new Set<(wakeup: Wakeup) => void>();
  readonly #signalListeners = new Set<(signal: ClusterSignal) => void>();

  constructor(
    private readonly coordinator: ClusterCoordinator,
    private readonly source: string,
  ) {}

  newWork(lane: string, priority: PriorityRank, hint: WakeupHint = {}): void {
    deliver(this.#wakeupListeners, { lane, priority, source: this.source, ...hint });
    this.coordinator.notifyNewWork(priority, this.source, lane, hint);
  }

  signal(signal: Omit<ClusterSignal, 'source'>): void {
    const stamped = { ...signal, source: this.source };
    deliver(this.#signalListeners, stamped);
    this.coordinator.publish(stamped);
  }

  /** Hears this process and the cluster. Returns the function that unregisters. */
  onWakeup(listener: (wakeup: Wakeup) => void): () => void {
    this.#wakeupListeners.add(listener);
    const unregister = this.coordinator.registerWakeupListener(listener);
    return () => {
      this.#wakeupListeners.delete(listener);
      unregister();
    };
  }

  onSignal(listener: (signal: ClusterSignal) => void): () => void {
    this.#signalListeners.add(listener);
    const unregister = this.coordinator.registerSignalListener(listener);
    return () => {
      this.#signalListeners.delete(listener);
      unregister();
    };
  }
}

function deliver<T>(listeners: ReadonlySet<(message: T) => void>, message: T): void {
  for (const listener of listeners) {
    try {
      listener(message);
    } catch {
      // A listener of ours that fails must not reject somebody's committed enqueue.
    }
  }
}
