import { type PriorityRank } from '../jobs/priority.js';
import { type BucketKind, type BucketStatus, type NodeRef } from './membership.js';

/**
 * The port for people who look after buckets, lanes and nodes by hand, from any process. It never does a node's work: it says in the
 * database what is wanted, and the node that owns the bucket sees it at its next exchange or heartbeat and acts.
 *
 * Every act may be done again without harm, says what it has changed, and changes no epoch: an owner stays the owner until it lets go.
 */
export abstract class BucketStore {
  /** Every bucket that has a row, by lane, then age. Cheap while a hundred thousand jobs run. */
  abstract buckets(): Promise<readonly BucketView[]>;
  /** Every lane that somebody has spoken of, that a node serves, or that has live jobs; by name. */
  abstract lanes(): Promise<readonly LaneView[]>;

  /** From now on nothing of the lane is claimed, by any node. False: it was paused already. */
  abstract pauseLane(lane: string): Promise<boolean>;
  /** False: it was not paused. */
  abstract resumeLane(lane: string): Promise<boolean>;

  /** From `active` to `completing`, if it is active. Undefined: there is no such bucket. */
  abstract drainBucket(id: string): Promise<Drained | undefined>;
  /** The same with every active bucket of a lane. */
  abstract drainLane(lane: string): Promise<Drained>;
  /**
   * The node opens no bucket from now on, and its active ones go to `completing`: none is left out, one that it is just opening
   * included. Undefined: there is no such node.
   */
  abstract drainNode(id: string): Promise<DrainedNode | undefined>;
  /** The node may open buckets again. Undefined: there is no such node. */
  abstract undrainNode(id: string): Promise<DrainedNode | undefined>;

  /** Whether jobs may be moved so: what stands in the way, if anything does. */
  abstract moveObstacles(move: LaneMove): Promise<readonly SwitchedOff[]>;
  /** Up to a thousand pending or paused jobs change their lane, at once, and nothing else of them. Those that somebody holds are left. */
  abstract move(move: LaneMove): Promise<MoveStep>;

  /**
   * Writes down, for each lane, which priorities every node that serves it has switched off. Whoever changes the list of nodes does it
   * too; this puts right what was missed.
   */
  abstract agreeOnPriorities(): Promise<void>;
}

/** A bucket, as the database knows it. Times and ages are by the database's clock. */
export interface BucketView {
  readonly id: string;
  readonly lane: string;
  /** It claims jobs of this priority alone. Absent: of all. */
  readonly priority?: PriorityRank;
  readonly kind: BucketKind;
  readonly status: BucketStatus;
  /** Who owns it, or did. */
  readonly node: NodeRef;
  /** Who gives its jobs back, because its owner is gone. */
  readonly drainer?: NodeRef;
  readonly createdAt: Date;
  /** When it came to its status. */
  readonly statusAt: Date;
  readonly ageMs: number;
  readonly statusAgeMs: number;
  /** Jobs whose handlers run. */
  readonly begun: number;
  /** Jobs that are claimed ahead and have not begun. */
  readonly buffered: number;
  /** How long the oldest of those that run has run; absent when none does. */
  readonly oldestBegunMs?: number;
  readonly lanePaused: boolean;
}

/** A lane, as the database knows it. */
export interface LaneView {
  readonly name: string;
  /** Since when nothing of it is claimed. */
  readonly pausedAt?: Date;
  /** Priorities that every node which serves it has switched off: an enqueue is refused. */
  readonly disabled: readonly PriorityRank[];
  /** Ids of the nodes that serve it, those that drain included. */
  readonly nodes: readonly string[];
  readonly buckets: number;
}

/** A bucket that was moved by hand, always from `active` to `completing`. */
export interface DrainedByHand {
  readonly id: string;
  readonly lane: string;
  readonly node: NodeRef;
}

export interface Drained {
  readonly moved: readonly DrainedByHand[];
}

export interface DrainedNode extends Drained {
  readonly node: NodeRef;
  /** Lanes that the node serves. */
  readonly lanes: readonly string[];
  /** False: it was so already. */
  readonly changed: boolean;
}

/** Which jobs go where. */
export interface LaneMove {
  readonly from: string;
  readonly to: string;
  /** Only these. */
  readonly priority?: PriorityRank;
}

/** A priority that every node which serves a lane has switched off, although there are jobs to move into it. */
export interface SwitchedOff {
  readonly priority: PriorityRank;
  /** Ids of those nodes. */
  readonly nodes: readonly string[];
}

export interface MoveStep {
  readonly moved: number;
  /** More may be there: call it again. */
  readonly more: boolean;
}
