import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type JobStore, type NodeRef } from '../store/job-store.js';
import { Alarm } from './alarm.js';
import { type EngineFaults } from './engine-faults.js';
import { type ExchangeLoop } from './exchange-loop.js';

export interface PollerParts {
  readonly node: NodeRef;
  readonly store: JobStore;
  readonly messages: ClusterMessages;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly faults: EngineFaults;
  readonly pollIntervalMs: number;
  /** The loops that live now. */
  readonly loops: () => readonly ExchangeLoop[];
}

/**
 * Brings the outside to the loops of a node: wakeups and cancel signals of this process and the cluster, and, while
 * executions run, the notices that the database keeps for signals that were lost. (When a bucket looks for work by itself
 * is its loop's own business.)
 */
export class Poller {
  readonly #parts: PollerParts;
  readonly #alarm: Alarm;
  #unregister: (() => void)[] = [];
  #stopped = true;
  /** Notices may be left in the database although nothing runs any more: of a cancel that was heard as a signal, too. */
  #mayBeLeft = false;

  constructor(parts: PollerParts) {
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock);
  }

  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    const { messages, loops } = this.#parts;
    this.#unregister = [
      messages.onWakeup(({ lane, dueInMs, behind }) => {
        for (const loop of loops()) {
          if (loop.bucket.ref.lane !== lane) continue;
          loop.wake({
            ...(dueInMs === undefined ? {} : { dueInMs }),
            ...(behind === undefined ? {} : { behind }),
          });
        }
      }),
      messages.onSignal(({ kind, jobId, claimSeq }) => {
        if (kind !== 'cancel') return;
        this.#mayBeLeft = true;
        this.#cancel(jobId, claimSeq);
      }),
    ];
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm.clear();
    for (const unregister of this.#unregister.splice(0)) unregister();
  }

  #arm(): void {
    if (this.#stopped) return;
    this.#alarm.set(this.#parts.pollIntervalMs, () => void this.#takeNotices().finally(() => this.#arm()));
  }

  async #takeNotices(): Promise<void> {
    const { loops, store, node, faults } = this.#parts;
    const running = loops().some((loop) => loop.claims.size > 0);
    if (!running && !this.#mayBeLeft) return;
    this.#mayBeLeft = running;
    try {
      for (const { jobId, claimSeq } of await store.takeNotices(node)) this.#cancel(jobId, claimSeq);
    } catch (error) {
      this.#mayBeLeft = true;
      faults.failed('notices', error);
    }
  }

  #cancel(jobId: string, claimSeq: string | undefined): void {
    for (const loop of this.#parts.loops()) {
      if (loop.claims.abort(jobId, claimSeq, 'canceled')) {
        this.#parts.events.emit('canceled', { jobId, claimSeq: claimSeq ?? '' });
      }
    }
  }
}
