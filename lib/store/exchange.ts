/** What a turn of a bucket says and hears, and what keeps it right: parts of the port `JobStore`. */

import { type ResolvedBackoff } from '../jobs/backoff.js';
import { type ExecutionOutcome } from '../jobs/job-status.js';
import { type PriorityRank } from '../jobs/priority.js';
import { type BucketRef } from './membership.js';

/** A handler that a node has: it runs jobs of `name` up to `version`. */
export interface HandlerFilter {
  readonly name: string;
  readonly version: number;
}

/** One finished (or reported) execution, matched by `(id, claimSeq)`. */
export interface Settlement {
  readonly id: string;
  readonly claimSeq: string;
  readonly outcome: Exclude<ExecutionOutcome, 'crashed' | 'canceled'>;
  /** JSON text, `succeeded` only. */
  readonly result?: string;
  /** Cleaned text; `failed` and `retried`, also kept as the job's last error. */
  readonly error?: string;
  /** `retried`, `snoozed`: due again after this long. `released` keeps its due time. */
  readonly delayMs?: number;
  /** `history: 'drop'`: keep nothing of a success. */
  readonly drop?: boolean;
  /** The last `ctx.progress()` value, JSON text. */
  readonly progress?: string;
  /** Of a job that was claimed ahead: how long ago its handler began. Absent: it never did, and is only `released`. */
  readonly ranMs?: number;
}

export interface ProgressReport {
  readonly id: string;
  readonly claimSeq: string;
  /** JSON text. */
  readonly value: string;
}

/** A place in a stream: the database's own text of a `scheduled_at`, never a JS Date (it would lose microseconds). */
export type StreamPlace = string;

export interface ExchangeRequest {
  readonly bucket: BucketRef;
  readonly settle: readonly Settlement[];
  readonly progress: readonly ProgressReport[];
  /** How many jobs to claim at most; 0 claims nothing. */
  readonly want: number;
  readonly handlers: readonly HandlerFilter[];
  /** Claims of a stream start at its floor. */
  readonly floors: Partial<Record<PriorityRank, StreamPlace>>;
  /** May one job be claimed that was running in two crashes or more? A node runs at most one of those at a time. */
  readonly suspect: boolean;
  /** Jobs of other nodes that stand at a floor, before ours: the claim reads so many rows more than it usually would. */
  readonly readPast?: number;
  /** Of a bucket that claims ahead. */
  readonly ahead?: {
    /** So many of the claimed jobs, the first ones in claim order, begin at once; the others only wait in the node's buffer. */
    readonly beginNow: number;
    /** Jobs that were claimed ahead before: their start becomes durable now. */
    readonly begin: readonly { readonly id: string; readonly claimSeq: string }[];
    /** The number of the start mark that names them; each is used once in the life of a bucket. */
    readonly mark: number;
    /** Start marks all of whose jobs are answered for. */
    readonly forget: readonly number[];
  };
  /** Wait for locked rows instead of skipping them (after five skips, and in the last flush of a drain). */
  readonly wait: boolean;
  /** Ageing: one level for each of these; 0 is none. */
  readonly priorityBoostMs: number;
}

export interface ExchangeAnswer {
  /** False: the bucket is no longer ours (deposed); nothing was claimed, settles were still tried. */
  readonly owned: boolean;
  /** Somebody asked for its end: it claims nothing any more. */
  readonly completing: boolean;
  /** Its lane is paused: nothing is claimed, and nothing that was claimed ahead may begin. Told of turns that would do one of them. */
  readonly paused: boolean;
  /** Of those that were to begin: their claims stand no more, or a pause was asked for. They must not begin. */
  readonly gone: readonly string[];
  /** Ids that were recorded. */
  readonly recorded: readonly string[];
  /** Locked by somebody: send again. */
  readonly skipped: readonly string[];
  /** The claim no longer stands: the outcome was discarded. Also names progress reports of lost claims. */
  readonly lost: readonly string[];
  /** In claim order. */
  readonly claimed: readonly ClaimedJob[];
  /** Where jobs became due that this statement inserted: those of failure handlers. */
  readonly spawned: readonly { readonly lane: string; readonly priority: PriorityRank }[];
  /**
   * Milliseconds until the next pending job of the lane is due; `undefined` when there is none. Does not see this statement's
   * own retries. 0: more are due than the answer had room for, because of the size of their payloads.
   */
  readonly nextDueInMs: number | undefined;
}

/** A job that this node may run now. */
export interface ClaimedJob {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly lane: string;
  readonly priority: PriorityRank;
  readonly claimSeq: string;
  /** Parsed JSON. */
  readonly payload: unknown;
  readonly scheduledAt: Date;
  /** The database's text of `scheduledAt`, for floors. */
  readonly place: StreamPlace;
  readonly createdAt: Date;
  /** False: it was claimed ahead. It must not run before its start is durable. */
  readonly begun: boolean;
  /** From its due time to this claim. */
  readonly waitedMs: number;
  /** Begun executions, this one included: `ctx.execution`. */
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
  readonly maxRetries: number | undefined;
  readonly backoff: ResolvedBackoff | undefined;
  readonly timeoutMs: number | undefined;
  readonly businessKey: string | undefined;
  readonly tags: readonly string[];
  readonly metadata: unknown;
  readonly parentId: string | undefined;
  readonly lastError: string | undefined;
}

export interface ProbeRequest {
  readonly lane: string;
  readonly handlers: readonly HandlerFilter[];
  /** The streams to look at, each up to a place: where is the oldest pending row that we could run? */
  readonly streams: readonly { readonly priority: PriorityRank; readonly upTo: StreamPlace }[];
}

export interface ProbeAnswer {
  /** The oldest runnable pending row per asked stream, at or before `upTo`. */
  readonly oldest: Partial<Record<PriorityRank, StreamPlace>>;
  /** How long the database took, by its own clock: without the network and without our queue. */
  readonly tookMs: number;
}

/** Asked when a claim came back short: is the head of a stream full of jobs that this node has no handler for? */
export interface ForeignRequest {
  readonly lane: string;
  /** Only this stream. Absent: all. */
  readonly priority?: PriorityRank;
  readonly handlers: readonly HandlerFilter[];
  readonly floors: Partial<Record<PriorityRank, StreamPlace>>;
}

/** A stream at whose head due jobs stand that this node cannot run. */
export interface ForeignStream {
  readonly priority: PriorityRank;
  /** How many, among the rows that one claim reads. */
  readonly foreign: number;
  /** Some of their names (at most 10). */
  readonly names: readonly string[];
  /** Whether a job that this node can run stands behind them. */
  readonly own: boolean;
  /** Where that one is, or the last row read when there is none: claims may start here for a while. */
  readonly resumeAt: StreamPlace;
  /** Jobs of the same due time that a claim from `resumeAt` still has to read before it comes to ours. */
  readonly hidden: number;
}

export interface ReconcileRequest {
  readonly buckets: readonly BucketRef[];
  /** Claims that the node knows: running, or finished and not yet recorded. */
  readonly known: readonly { readonly id: string; readonly claimSeq: string }[];
  /** Of these, the finished ones whose settle may or may not have been committed. */
  readonly unsettled: readonly { readonly id: string; readonly claimSeq: string; readonly drop?: boolean }[];
}

export interface ReconcileAnswer {
  /** Claimed for our buckets, unknown to us: adopt them. With the bucket they belong to. */
  readonly strays: readonly { readonly bucketId: string; readonly job: ClaimedJob }[];
  /** Their outcome was committed. */
  readonly recorded: readonly string[];
  /** Neither live under this claim nor recorded by it: somebody else owns the job now. */
  readonly lost: readonly string[];
  /** Buckets that are no longer ours. */
  readonly deposed: readonly string[];
}
