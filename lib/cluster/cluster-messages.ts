import { Logger } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { type PriorityRank } from '../jobs/priority.js';
import { inOwnContext } from '../observability/own-context.js';
import {
  type ClusterCoordinator,
  type ClusterSignal,
  type Wakeup,
  type WakeupHint,
} from './cluster-coordinator.js';

/**
 * Tells this process first and the cluster second. Everything that makes work available, or cuts it off, speaks through
 * here and after its commit. It never throws, whatever coordinator the user wrote: a hint that is lost costs latency only.
 * What is told runs in the async context of nobody: whoever happens to enqueue must not be a part of it.
 */
export class ClusterMessages {
  static readonly #logger = new Logger('RatchetCluster');

  readonly #wakeupListeners = new Set<(wakeup: Wakeup) => void>();
  readonly #signalListeners = new Set<(signal: ClusterSignal) => void>();
  /** What fails now: said once, until it works again. */
  readonly #failing = new Set<string>();

  constructor(
    private readonly coordinator: ClusterCoordinator,
    private readonly source: string,
  ) {}

  newWork(lane: string, priority: PriorityRank, hint: WakeupHint = {}): void {
    inOwnContext(() => {
      deliver(this.#wakeupListeners, { lane, priority, source: this.source, ...hint });
      this.#ask('notifyNewWork', () => this.coordinator.notifyNewWork(priority, this.source, lane, hint));
    });
  }

  signal(signal: Omit<ClusterSignal, 'source'>): void {
    const stamped = { ...signal, source: this.source };
    inOwnContext(() => {
      deliver(this.#signalListeners, stamped);
      this.#ask('publish', () => this.coordinator.publish(stamped));
    });
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

  #register<T>(
    listeners: Set<(message: T) => void>,
    listener: (message: T) => void,
    method: string,
    register: () => () => void,
  ): () => void {
    listeners.add(listener);
    const unregister = this.#ask(method, register);
    return () => {
      listeners.delete(listener);
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

function deliver<T>(listeners: ReadonlySet<(message: T) => void>, message: T): void {
  for (const listener of listeners) {
    try {
      listener(message);
    } catch {
      // A listener of ours that fails must not reject somebody's committed enqueue.
    }
  }
}
