import { type RowHolder } from '../errors/control-errors.js';
import { type ResolvedBackoff } from '../jobs/backoff.js';
import { type ExecutionOutcome } from '../jobs/job-status.js';
import { type PriorityRank } from '../jobs/priority.js';
import {
  type ExchangeAnswer,
  type ExchangeRequest,
  type ForeignRequest,
  type ForeignStream,
  type ProbeAnswer,
  type ProbeRequest,
  type ReconcileAnswer,
  type ReconcileRequest,
  type Settlement,
} from './exchange.js';
import {
  type Canceled,
  type ControlAction,
  type ControlPlace,
  type ControlStep,
  type EndedAnswer,
  type FoundJobs,
  type JobQuery,
  type PageRequest,
  type Redriven,
} from './job-control.js';
import { type ExecutionView, type JobView } from './job-view.js';
import {
  type FallbackNeed,
  type FallbackNeedRequest,
  type FallbackRequest,
  type StarvingAnswer,
  type StarvingRequest,
} from './fallback.js';
import {
  type BeatAnswer,
  type BeatRequest,
  type BucketRef,
  type BucketStatus,
  type LostReport,
  type NodeRef,
  type NodeRegistration,
  type NodeView,
  type RescueReport,
  type RescueRequest,
} from './membership.js';
import { type RetentionReport, type RetentionRequest, type UnservedLane } from './upkeep.js';

export * from './exchange.js';
export * from './fallback.js';
export * from './job-control.js';
export * from './membership.js';
export * from './upkeep.js';

export type { ExecutionView, JobView } from './job-view.js';

/**
 * The port to the database. Its methods are meanings, not tables, so that another database can implement them and pass
 * `describeJobStoreContract` (nestjs-ratchet/testing).
 *
 * For every implementor: time is the database's clock plus the offset set by {@link JobStore.travel}. A method that fails
 * changes nothing, or rejects with an error for which {@link StoreFault} says that the outcome is unknown.
 */

/** A job that enters the live table. */
export interface NewJob {
  /** UUIDv7. */
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly lane: string;
  readonly priority: PriorityRank;
  /** The payload as JSON text, already checked by the codec. */
  readonly payload: string;
  /** Due this long after the insert (database clock); 0 is now. Exactly one of `delayMs` and `runAt` counts: `runAt` wins. */
  readonly delayMs: number;
  /** An absolute due time. */
  readonly runAt?: Date;
  readonly maxRetries?: number;
  readonly backoff?: ResolvedBackoff;
  readonly timeoutMs?: number;
  readonly businessKey?: string;
  /** What happens when a live job holds the business key. Default `reject`. */
  readonly onConflict?: 'reject' | 'return' | 'replace';
  readonly idempotencyKey?: { readonly key: string; readonly expiresInMs: number };
  readonly tags: readonly string[];
  /** JSON text. */
  readonly metadata?: string;
  /** With it the insert is fenced: it happens only while that claim stands, and records the parent. */
  readonly parent?: { readonly id: string; readonly claimSeq: string };
}

/** What became of one {@link NewJob}. */
export type Inserted =
  | { readonly outcome: 'created'; readonly id: string; readonly replaced?: string }
  /** An idempotent repeat, or `onConflict: 'return'`. */
  | { readonly outcome: 'existing'; readonly id: string }
  /** A live job holds the business key (`running`: `replace` refuses to touch it). */
  | { readonly outcome: 'held'; readonly holder?: string; readonly running: boolean }
  /** The parent's claim no longer stands. */
  | { readonly outcome: 'fenced' }
  /** Every live node that serves the lane has switched the priority off: `nodes` are their ids. */
  | { readonly outcome: 'disabled'; readonly nodes: readonly string[] }
  /** Nothing is wrong with it, but another job of the call is `disabled`. */
  | { readonly outcome: 'left_out' };

/**
 * The caller's transaction. The store only needs to send statements into it; `query` returns rows.
 * `intake/enlistment.ts` makes one of an EntityManager or QueryRunner.
 */
export interface StoreTransaction {
  /**
   * Unique to one transaction or savepoint, if it is known to end without our doing: what is written for it is written
   * inside it or not at all. See {@link JobStore.enlist}.
   */
  readonly mark?: string;
  query(text: string, parameters: readonly unknown[]): Promise<Record<string, unknown>[]>;
}

/** What a late worker has to say of a claim that was closed without it. */
export interface LateOutcome {
  readonly jobId: string;
  readonly claimSeq: string;
  readonly outcome: ExecutionOutcome;
  readonly error?: string;
}

export abstract class JobStore {
  /** Prepares connections and the schema (migrations by mode). Called once, before any other method. Safe from many nodes at once. */
  abstract open(): Promise<void>;
  /** Closes what the store opened itself; bounded in time, also while the database is away; idempotent. */
  abstract close(): Promise<void>;

  /** Registers (or re-registers, under a new epoch) a node. */
  abstract registerNode(node: NodeRegistration): Promise<NodeRef>;
  /** For a node whose row was removed. `undefined`: another process has registered under the id meanwhile. */
  abstract returnNode(node: NodeRegistration): Promise<NodeRef | undefined>;
  /** Says that the node lives, and hears what it must know: one statement. */
  abstract beat(request: BeatRequest): Promise<BeatAnswer>;
  /** The nodes with a row, oldest first. */
  abstract nodes(): Promise<readonly NodeView[]>;
  abstract setNodeState(node: NodeRef, state: 'running' | 'draining'): Promise<void>;
  /** Removes the row if the epoch still matches, and what is left of that epoch: notices, buckets without jobs. */
  abstract removeNode(node: NodeRef): Promise<void>;

  /**
   * Rejects with `NodeDeposedError`, which names the other process, when the node's id has been registered under a newer epoch, and
   * with `NodeCordonedError` while the node is drained by hand. With an `id` it may be repeated: what a call has opened whose answer was
   * lost is the answer to the next one.
   */
  abstract openBucket(node: NodeRef, lane: string, priority?: PriorityRank, id?: string): Promise<BucketRef>;
  /**
   * Streams whose jobs have been due for long, and that no active bucket of a live node serves but, perhaps, a fallback bucket of the
   * asking node that it does not know; not those of paused lanes, nor of lanes that have an active fallback bucket. Cheap at any backlog.
   */
  abstract starving(request: StarvingRequest): Promise<StarvingAnswer>;
  /** A bucket for all priorities of a lane; one for each lane in the cluster is active. `undefined`: there is one, or the node may have none. */
  abstract openFallback(request: FallbackRequest): Promise<BucketRef | undefined>;
  /** Whether such a bucket is still of use. */
  abstract fallbackNeeded(request: FallbackNeedRequest): Promise<FallbackNeed>;
  /**
   * Compare-and-set by (id, epoch, from). False: somebody else moved it. `ready_to_delete` deletes the row; false as well,
   * and the bucket stays, when it still holds jobs. May be repeated: true when it is at `to` already, or gone after `ready_to_delete`.
   */
  abstract setBucketStatus(bucket: BucketRef, from: BucketStatus, to: BucketStatus): Promise<boolean>;
  /** Takes back what older epochs of `node.id` hold: crash charge, `crashed` executions, dead letter beyond the budget. */
  abstract rescueOwn(node: NodeRef, maxCrashRedeliveries: number): Promise<RescueReport>;
  /**
   * Takes back, on the same terms, what belongs to nodes past the grace or to no node at all, bucket by bucket. Safe from many
   * nodes at once: each bucket is drained by one of them. What fails is reported, and left to the next call.
   */
  abstract rescueLost(request: RescueRequest, signal?: AbortSignal): Promise<LostReport>;
  /**
   * Takes back, on the same terms, what is running in buckets that do not exist, whoever's they were. Cheap when there is
   * nothing, however many jobs run. An abort of `signal` ends it between two chunks.
   */
  abstract rescueOrphans(maxCrashRedeliveries: number, signal?: AbortSignal): Promise<RescueReport>;

  /**
   * Inserts jobs: all in one statement when none has a key; keyed ones a statement each, sorted by key.
   * All or nothing within one call: a job that is `held`, `fenced` or `disabled` means that nothing of this call was inserted.
   * With `transaction` it happens inside the caller's, which stays usable when a job is refused.
   */
  abstract insert(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<readonly Inserted[]>;

  /**
   * Told when a caller's transaction (or savepoint) is joined, before anything else is sent to it; sends its statement within
   * the call. From then on an insert with the same `mark` writes inside it, or nothing: once it has been rolled back or
   * committed, whatever the connection is used for by then, the insert rejects with `TransactionNotActiveError` and leaves
   * the transaction usable that it met instead.
   *
   * @returns its isolation level, as PostgreSQL writes it: `read committed`.
   */
  abstract enlist(transaction: StoreTransaction): Promise<{ readonly isolation: string }>;
  /** Whether statements of a caller's transaction reach this store's own tables. Leaves that transaction usable. */
  abstract reachedBy(transaction: StoreTransaction): Promise<boolean>;

  /** One turn of one bucket: settle what finished, claim what fits, one autocommit statement. */
  abstract exchange(request: ExchangeRequest): Promise<ExchangeAnswer>;
  abstract probe(request: ProbeRequest): Promise<ProbeAnswer>;
  abstract foreign(request: ForeignRequest): Promise<readonly ForeignStream[]>;
  abstract reconcile(request: ReconcileRequest): Promise<ReconcileAnswer>;
  /**
   * Adds to the closed execution `(jobId, claimSeq)` what its worker had to say after it was closed without it (crashed,
   * released, canceled, or timed out), once, and changes nothing else. True when it was taken.
   */
  abstract recordLate(late: LateOutcome): Promise<boolean>;
  abstract get(id: string): Promise<JobView | undefined>;
  abstract executions(id: string): Promise<readonly ExecutionView[]>;
  abstract cancel(id: string): Promise<Canceled>;
  abstract redrive(id: string): Promise<Redriven>;
  /** Which session keeps the row of a job locked now, for people. `undefined`: none, or it cannot be told. */
  abstract holderOf(id: string): Promise<RowHolder | undefined>;

  /** One page, newest ids first. Lookups by time of end spare the days outside of it. */
  abstract find(query: JobQuery, page: PageRequest): Promise<FoundJobs>;
  /** Exact at the moment of the statement, and costs accordingly. */
  abstract count(query: JobQuery): Promise<number>;
  /** How many jobs {@link JobStore.control} would act on now. */
  abstract countControllable(action: ControlAction['kind'], query: JobQuery): Promise<number>;
  /**
   * Does `action` to the jobs that `query` means, some hundreds a step, each step a transaction of its own. Call it again with
   * `next` until that is `undefined`. Waits a moment for rows that somebody holds.
   */
  abstract control(action: ControlAction, query: JobQuery, place?: ControlPlace): Promise<ControlStep>;
  /**
   * One statement for all of `ids` (give it some thousands at most), cheap while most of them are live. Each id is in one of
   * the answer's lists, or live. Without `everywhere` the days that the ids rule out by their time are spared, and what is
   * `absent` may still be there: ids are made by the clocks of nodes, which may be wrong.
   */
  abstract ended(ids: readonly string[], everywhere?: boolean): Promise<EndedAnswer>;

  /** Whether a claim stands, by a plain read that locks nothing, on the caller's own connection. */
  abstract stands(
    claim: { readonly id: string; readonly claimSeq: string },
    connection: StoreTransaction,
  ): Promise<boolean>;
  /**
   * Records the outcome of a claim inside a transaction of the application, so that it is committed together with what the
   * handler wrote. Takes the job's row; false when the claim no longer stands: roll back. Such a transaction that then stands
   * still is ended by the server, so that a frozen process cannot hold the row. Without its `ranMs`, when a job that was claimed ahead
   * began is looked up.
   *
   * @throws TransactionNotActiveError when the marked transaction is over, StoreError when it is broken (25P02).
   */
  abstract settleWithin(
    transaction: StoreTransaction,
    settlement: Settlement & { readonly outcome: 'succeeded' | 'snoozed' },
  ): Promise<boolean>;
  /**
   * What became of a {@link JobStore.settleWithin} whose commit is unknown. Waits for that transaction to end on the server.
   * `standing`: it was rolled back.
   */
  abstract fateOf(claim: {
    readonly id: string;
    readonly claimSeq: string;
    readonly drop?: boolean;
  }): Promise<'standing' | 'recorded' | 'lost'>;

  /** Lanes with due jobs that no node in state `running` has registered (some, when there are many). Cheap at any backlog. */
  abstract unservedLanes(): Promise<readonly UnservedLane[]>;

  /** Failure handlers that no registered node has had for so long are no longer called. Returns the jobs that they were of. */
  abstract forgetFailureHandlers(ageMs: number): Promise<readonly string[]>;

  /** Makes the day partitions that are missing, `days` ahead. Returns how many days ahead now exist. */
  abstract ensurePartitions(days: number): Promise<number>;
  /** Forgets what is past its time. May take long; an abort of `signal` ends it at the next step, which the next round finishes. */
  abstract retain(request: RetentionRequest, signal?: AbortSignal): Promise<RetentionReport>;

  /** The store's time. For tests and for people: what the engine compares, it compares in the database. */
  abstract now(): Promise<Date>;
  /** Moves this store's clock by an offset (tests only; refused under NODE_ENV=production). */
  abstract travel(offsetMs: number): void;
}
