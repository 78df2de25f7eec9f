import { type PriorityRank } from '../jobs/priority.js';

/** What may be told with a wakeup. Times are relative: no clocks are compared. */
export interface WakeupHint {
  /** The job is due only in so many milliseconds. */
  readonly dueInMs?: number;
  /** The job lies behind what claims have already passed: floors must look back. */
  readonly behind?: boolean;
}

export interface Wakeup extends WakeupHint {
  readonly lane: string;
  readonly priority: PriorityRank;
  /** Node id of the sender. */
  readonly source: string;
}

export interface ClusterSignal {
  readonly kind: 'cancel' | 'ended';
  readonly source: string;
  readonly jobId: string;
  readonly claimSeq?: string;
}

/**
 * Carries hints between nodes. A hint that is lost costs latency, never work, so nothing here may throw into the caller,
 * and nothing may be correct because of it.
 */
export abstract class ClusterCoordinator {
  abstract notifyNewWork(priority: PriorityRank, source: string, lane: string, hint?: WakeupHint): void;
  /** Returns the function that unregisters. Listeners must not throw; a coordinator guards against those that do. */
  abstract registerWakeupListener(listener: (wakeup: Wakeup) => void): () => void;
  abstract publish(signal: ClusterSignal): void;
  abstract registerSignalListener(listener: (signal: ClusterSignal) => void): () => void;
  /** Releases what the coordinator opened. Idempotent. */
  abstract close(): Promise<void>;
}
