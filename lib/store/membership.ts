/** Who is a member of the cluster, and what becomes of the work of those who are not any more: parts of the port `JobStore`. */

import { type PriorityRank } from '../jobs/priority.js';

/** A process, as the database knows it. The epoch rises at each registration and never repeats. */
export interface NodeRef {
  readonly id: string;
  readonly epoch: string;
}

/** What a node says of itself when it registers. */
export interface NodeRegistration {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly lanes: readonly string[];
  readonly handlers: readonly string[];
  /** Told apart from every other process by this, whatever its host and pid: a text of its own. */
  readonly process?: string;
  /** Jobs whose failure it handles, each with the lane in which the job `<name>#failed` is to run. */
  readonly failureHandlers?: readonly { readonly jobName: string; readonly lane: string }[];
  /** Ids of the recurring schedules that its methods are annotated with: those that no node has are removed after a while. */
  readonly schedules?: readonly string[];
  /** Priorities that it has switched off, by lane. */
  readonly disabled?: Readonly<Record<string, readonly PriorityRank[]>>;
  /** It may claim jobs ahead. */
  readonly buffers?: boolean;
  /** It was drained by hand, and was declared dead since: it stays drained. */
  readonly cordoned?: boolean;
  /** By which it sends its heartbeats: who has a shorter one judges it by this. Default: by that of whoever judges. */
  readonly graceMs?: number;
}

/** `fallback`: made for due jobs that no other bucket serves; one for each lane in the cluster. */
export type BucketKind = 'standard' | 'fallback';

/** The owner's key to a bucket: the epoch rises when somebody takes the bucket away. */
export interface BucketRef {
  readonly id: string;
  readonly epoch: number;
  readonly lane: string;
  /** It claims jobs of this priority alone. Absent: of all. */
  readonly priority?: PriorityRank;
  /** Default `standard`. */
  readonly kind?: BucketKind;
  readonly node: NodeRef;
}

export type BucketStatus =
  'active' | 'completing' | 'ready_to_drain' | 'lost' | 'draining' | 'ready_to_delete';

/** A message to the owner of a running claim. */
export interface Notice {
  readonly jobId: string;
  readonly claimSeq: string;
  readonly reason: 'canceled';
}

export interface BeatRequest {
  readonly node: NodeRef;
  /** A node whose last heartbeat is older counts as dead. */
  readonly graceMs: number;
  /** Executions that run on the node now, for those who look at the list of nodes. */
  readonly running: number;
  /** How late its event loop was at worst since the last beat. */
  readonly lagMs: number;
}

export interface BeatAnswer {
  /** False: the node's row is gone or belongs to a later epoch. It was declared dead, and its claims are being taken back. */
  readonly alive: boolean;
  /** Nodes with a row, this one included. */
  readonly nodes: number;
  /** Some nodes are past the grace, or a bucket has no living owner: there is something to rescue. */
  readonly lost: boolean;
  /** Deleted with this beat: they are told once. */
  readonly notices: readonly Notice[];
  /**
   * Milliseconds until the next recurring schedule of the cluster is due; 0 also when an occurrence that waited can become a job;
   * undefined: none will be, as things are.
   */
  readonly scheduleInMs: number | undefined;
  /** Somebody has drained this node by hand: it is to have no buckets. */
  readonly cordoned?: boolean;
  /** Other nodes may claim jobs ahead: a node that finds none may ask them for some. */
  readonly buffersElsewhere?: boolean;
}

/** A row of the list of nodes. */
export interface NodeView {
  readonly id: string;
  readonly epoch: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly lanes: readonly string[];
  readonly handlers: readonly string[];
  readonly schedules: readonly string[];
  readonly state: 'running' | 'draining';
  /** Since when somebody has drained it by hand. */
  readonly drainedAt?: Date;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  /** By the database's clock. */
  readonly heartbeatAgeMs: number;
  /** Running executions, as of its last heartbeat. */
  readonly running: number;
  /** How late its event loop was at worst before its last heartbeat. */
  readonly lagMs: number;
}

export interface RescueRequest {
  /** Who does it. */
  readonly node: NodeRef;
  readonly maxCrashRedeliveries: number;
  /** Nodes without a heartbeat for longer are declared dead first. Without it only what has no owner at all is taken back. */
  readonly graceMs?: number;
}

/** A node that was declared dead: its row is gone. */
export interface DeadNode extends NodeRef {
  readonly host: string;
  readonly pid: number;
  readonly heartbeatAgeMs: number;
}

/** A job that a rescue moved to the dead letter, because its nodes stopped more often than the crash budget allows. */
export interface BuriedJob {
  readonly id: string;
  readonly name: string;
  readonly lane: string;
  /** The claim that was lost. */
  readonly claimSeq: string;
  /** Who had it; null when nobody knows. */
  readonly node: string | null;
  readonly error: string;
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
}

export interface RescueReport {
  readonly buckets: number;
  /** Back to pending, with one crash charge. */
  readonly recovered: number;
  /** Over the crash budget: moved to the dead letter. */
  readonly failed: number;
  /** Claimed ahead and never begun: back to pending, uncharged. Absent when there are none. */
  readonly unbegun?: number;
  /** Those; absent when there are none. */
  readonly buried?: readonly BuriedJob[];
}

/** A bucket that this rescue drained. */
export interface DrainedBucket {
  readonly id: string;
  readonly lane: string;
  /** Who owned it. */
  readonly node: NodeRef;
  /** What it was before this rescue called it lost; absent when it was lost already. */
  readonly was?: BucketStatus;
  /** Back to work, with one crash charge. */
  readonly recovered: number;
  /** Over the crash budget: in the dead letter. */
  readonly failed: number;
  /** Claimed ahead and never begun: back to work, uncharged. Absent when there are none. */
  readonly unbegun?: number;
  /** Those; absent when there are none. */
  readonly buried?: readonly BuriedJob[];
  /** Rows that could not be taken back: the bucket stays, and after a few seconds the next rescue, of any node, tries again. */
  readonly stuck: readonly string[];
}

export interface LostReport {
  readonly dead: readonly DeadNode[];
  readonly drained: readonly DrainedBucket[];
  /** What could not be done now; the next rescue tries again. */
  readonly faults: readonly { readonly what: string; readonly error: unknown }[];
}
