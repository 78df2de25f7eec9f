import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { rankOf } from '../jobs/priority.js';
import { type ExchangeAnswer, type RescueReport } from '../store/job-store.js';

/** A statement that took this long may have inserted its jobs behind a claim that has passed their due time. */
const LONG_MS = 100;

/** Tells of the jobs of failure handlers, which no intake has seen: the statements that bury a job insert them. */
export class FailureWakeups {
  readonly #messages: ClusterMessages;
  readonly #ownLanes: readonly string[];

  /** @param ownLanes - of this node's own failure handlers. */
  constructor(messages: ClusterMessages, ownLanes: readonly string[]) {
    this.#messages = messages;
    this.#ownLanes = [...new Set(ownLanes)];
  }

  /** An exchange that took so long has inserted them: one wakeup for each stream. */
  spawned(jobs: ExchangeAnswer['spawned'], tookMs: number): void {
    const streams = new Map(jobs.map((job) => [`${job.priority}${job.lane}`, job]));
    const hint = tookMs > LONG_MS ? { behind: true } : {};
    for (const { lane, priority } of streams.values()) this.#messages.newWork(lane, priority, hint);
  }

  /** A rescue does not say what it inserted; its statements may take long. */
  rescued({ failed }: Pick<RescueReport, 'failed'>): void {
    if (failed === 0) return;
    for (const lane of this.#ownLanes) this.#messages.newWork(lane, rankOf('normal'), { behind: true });
  }
}
