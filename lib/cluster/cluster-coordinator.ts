import { type PriorityRank } from '../jobs/priority.js';

/** What may be told with a wakeup. Times are relative: no clocks are compared. */
export interface WakeupHint {
  /** The job is due only in so many milliseconds. */
  readonly dueInMs?: number;
  /** The job lies behind what claims have already passed: floors must look back. */
  readonly behind?: boolean;
}

/**
 * There is, or will be, work in a lane. One wakeup may stand for several: then it has the highest of their priorities, the
 * earliest of their times, and `behind` if one of them had it.
 */
export interface Wakeup extends WakeupHint {
  readonly lane: string;
  readonly priority: PriorityRank;
  /** Node id of the sender, for people. Two processes may have the same one for a while. */
  readonly source: string;
}

/**
 * Something about one job. `cancel`: it was canceled, stop its execution. `awaited`: somebody has awaited its result for a while.
 * `ended`: it ended, and somebody had said that it is awaited.
 */
export interface JobSignal {
  readonly kind: 'cancel' | 'awaited' | 'ended';
  /** Node id of the sender, for people. */
  readonly source: string;
  readonly jobId: string;
  readonly claimSeq?: string;
}

/** A node has free slots in a lane and found nothing due: one that has claimed more ahead than it runs should give some of it back. */
export interface HungrySignal {
  readonly kind: 'hungry';
  /** Node id of the sender, for people. */
  readonly source: string;
  readonly lane: string;
}

export type ClusterSignal = JobSignal | HungrySignal;

/** How a coordinator is. */
export interface CoordinatorHealth {
  /**
   * `connected`: messages of others arrive. `connecting`: not yet, for the first time. `down`: not at present, so that nodes
   * find each other's work when they poll. `none`: there is nothing that could be up or down, or it does not say.
   */
  readonly state: 'none' | 'connected' | 'connecting' | 'down';
  /** When that state began. */
  readonly since?: Date;
  /** For people: why it is down. */
  readonly detail?: string;
}

/**
 * Carries hints between nodes. A hint that is lost costs latency, never work, so nothing here may throw into the caller,
 * and nothing may be correct because of it.
 *
 * Write your own with {@link BroadcastCoordinator}, and examine it with `describeCoordinatorContract` of
 * `nestjs-ratchet/testing`.
 */
export abstract class ClusterCoordinator {
  /** Tells other nodes of work, soon. Called after the commit, from any process. Must return at once. */
  abstract notifyNewWork(priority: PriorityRank, source: string, lane: string, hint?: WakeupHint): void;
  /**
   * Hears wakeups of other processes, never this one's own. Returns the function that unregisters. Listeners must not throw; a
   * coordinator guards against those that do.
   */
  abstract registerWakeupListener(listener: (wakeup: Wakeup) => void): () => void;
  /** Tells other nodes of one job, or of a hungry node, soon. Must return at once. */
  abstract publish(signal: ClusterSignal): void;
  /** As {@link registerWakeupListener}, for signals. */
  abstract registerSignalListener(listener: (signal: ClusterSignal) => void): () => void;
  /** Releases what the coordinator opened, in bounded time, also while the transport is away. Idempotent. */
  abstract close(): Promise<void>;

  /**
   * Hears that messages may have been missed: the transport is there again after a time in which it was not. The engine then
   * looks for itself. A transport that cannot know is none the worse: nodes poll. The default tells nobody.
   */
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- named for those who override it
  registerCatchUpListener(listener: () => void): () => void {
    return () => {};
  }

  /**
   * How it is. Must not throw, and must ask nobody. While it says `connected`, nodes without work rely on messages and look for
   * themselves once a minute only: say so only while texts are known to arrive.
   *
   * @defaultValue `none`
   */
  health(): CoordinatorHealth {
    return { state: 'none' };
  }
}
