import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type Notice } from '../store/job-store.js';
import { type ExchangeLoop } from './exchange-loop.js';

export interface MessengerParts {
  readonly messages: ClusterMessages;
  readonly events: EngineEvents;
  /** The loops that live now. */
  readonly loops: () => readonly ExchangeLoop[];
  /** Signals may have been missed: the notices should be asked for now. */
  readonly onCatchUp: () => void;
}

/**
 * Brings the outside to the loops of a node: wakeups and cancel signals of this process and the cluster, and the notices that
 * the database keeps for signals that were lost, which come with the heartbeat. (When a bucket looks for work by itself is its
 * loop's own business.)
 */
export class Messenger {
  readonly #parts: MessengerParts;
  #unregister: (() => void)[] = [];
  #stopped = true;

  constructor(parts: MessengerParts) {
    this.#parts = parts;
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
      messages.onSignal((signal) => {
        if (signal.kind === 'cancel') this.#cancel(signal.jobId, signal.claimSeq);
        else if (signal.kind === 'hungry' && !messages.isOwn(signal)) this.#share(signal.lane);
      }),
      messages.onCatchUp(() => this.#catchUp()),
    ];
  }

  stop(): void {
    this.#stopped = true;
    for (const unregister of this.#unregister.splice(0)) unregister();
  }

  /** Wakeups and cancels may have been missed: every lane looks, also behind its floors. */
  #catchUp(): void {
    for (const loop of this.#parts.loops()) loop.wake({ behind: true });
    this.#parts.onCatchUp();
  }

  /** What the database has kept for this node. */
  noticed(notices: readonly Notice[]): void {
    for (const { jobId, claimSeq } of notices) this.#cancel(jobId, claimSeq);
  }

  #share(lane: string): void {
    for (const loop of this.#parts.loops()) if (loop.bucket.ref.lane === lane) loop.share();
  }

  #cancel(jobId: string, claimSeq: string | undefined): void {
    for (const loop of this.#parts.loops()) {
      if (loop.cancel(jobId, claimSeq)) {
        this.#parts.events.emit('canceled', { jobId, claimSeq: claimSeq ?? '' });
      }
    }
  }
}
