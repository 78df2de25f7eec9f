import { Logger } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { type PriorityRank } from '../jobs/priority.js';
import { inOwnContext } from '../observability/own-context.js';
import {
  type ClusterCoordinator,
  type ClusterSignal,
  type HungrySignal,
  type JobSignal,
  type Wakeup,
  type WakeupHint,
} from './cluster-coordinator.js';
import { Listeners } from './listeners.js';

/**
 * Tells this process first and the cluster second. Everything that makes work available, or cuts it off, speaks through
 * here and after its commit. It never throws, whatever coordinator the user wrote: a hint that is lost costs latency only.
 * What is told runs in the async context of nobody: whoever happens to enqueue must not be a part of it.
 */
export class ClusterMessages {
  static readonly #logger = new Logger('RatchetCluster');

  readonly #wakeupListeners = new Listeners<Wakeup>();
  readonly #signalListeners = new Listeners<ClusterSignal>();
  /** What fails now: said once, until it works again. */
  readonly #failing = new Set<string>();

  constructor(
    private readonly coordinator: ClusterCoordinator,
    private readonly source: string,
  ) {}

  newWork(lane: string, priority: PriorityRank, hint: WakeupHint = {}): void {
    inOwnContext(() => {
      this.#wakeupListeners.tell({ lane, priority, source: this.source, ...hint });
      this.newWorkElsewhere(lane, priority, hint);
    });
  }

  /** As {@link ClusterMessages.newWork}, to other nodes only. */
  newWorkElsewhere(lane: string, priority: PriorityRank, hint: WakeupHint = {}): void {
    inOwnContext(() => {
      this.#ask('notifyNewWork', () => this.coordinator.notifyNewWork(priority, this.source, lane, hint));
    });
  }

  signal(signal: Omit<JobSignal, 'source'> | Omit<HungrySignal, 'source'>): void {
    const stamped = { ...signal, source: this.source };
    inOwnContext(() => {
      this.#signalListeners.tell(stamped);
      this.#ask('publish', () => this.coordinator.publish(stamped));
    });
  }

  /** Whether this process sent it. Two processes may have the same node id for a while: good enough for a hint. */
  isOwn({ source }: Pick<ClusterSignal, 'source'>): boolean {
    return source === this.source;
  }

  /** Hears this process and the cluster. Returns the function that unregisters. */
  onWakeup(listener: (wakeup: Wakeup) => void): () => void {
    return this.#register(this.#wakeupListeners, listener, 'registerWakeupListener', () =>
      this.coordinator.registerWakeupListener(listener),
    );
  }

  onSignal(listener: (signal: ClusterSignal) => void): () => void {
    return this.#register(this.#signalListeners, listener, 'registerSignalListener', () =>
      this.coordinator.registerSignalListener(listener),
    );
  }

  /** Hears that messages of the cluster may have been missed: whoever relies on them looks for itself. */
  onCatchUp(listener: () => void): () => void {
    const unregister = this.#ask('registerCatchUpListener', () =>
      this.coordinator.registerCatchUpListener(listener),
    );
    return () => {
      if (typeof unregister === 'function') this.#ask('registerCatchUpListener', unregister);
    };
  }

  /** Whether messages of other nodes arrive now, as far as the coordinator can tell. */
  get connected(): boolean {
    return this.#ask('health', () => this.coordinator.health())?.state === 'connected';
  }

  #register<T>(
    listeners: Listeners<T>,
    listener: (message: T) => void,
    method: string,
    register: () => () => void,
  ): () => void {
    const forget = listeners.add(listener);
    const unregister = this.#ask(method, register);
    return () => {
      forget();
      if (typeof unregister === 'function') this.#ask(method, unregister);
    };
  }

  /** A user's method may throw, and may be asynchronous although the port is not: a rejection would end the process. */
  #ask<T>(method: string, call: () => T): T | undefined {
    try {
      const answer = call();
      if (isThenable(answer)) {
        answer.then(
          () => this.#failing.delete(method),
          (error: unknown) => this.#failed(method, error),
        );
      } else {
        this.#failing.delete(method);
      }
      return answer;
    } catch (error) {
      this.#failed(method, error);
      return undefined;
    }
  }

  #failed(method: string, error: unknown): void {
    if (this.#failing.has(method)) return;
    this.#failing.add(method);
    try {
      ClusterMessages.#logger.error(
        `the coordinator's ${method}() failed, so other nodes hear of work when they poll: ${describeError(error).message}`,
        describeError(error).stack,
      );
    } catch {
      // A logger that throws is no reason to lose an enqueue.
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
