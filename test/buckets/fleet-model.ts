import { type PriorityRank } from '../../lib/jobs/priority.js';
import { type BucketRef, type BucketStatus, type NodeRef } from '../../lib/store/job-store.js';

/** What the fleet should be: kept beside the database by the commands of the property, and compared with it after each of them. */

export const LANES = ['default', 'mail'] as const;
export type Lane = (typeof LANES)[number];
/** Crashes that are redelivered. */
export const BUDGET = 2;
/** Long: real time, however slow the machine is, counts for nothing beside it. */
export const GRACE_MS = 600_000;
export const OUTCOMES = ['succeeded', 'failed', 'retried', 'snoozed', 'released'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** A process, under one registration. */
export class ModelNode {
  /** It runs. One that does not may have been stopped for good, or only for a while. */
  alive = true;
  /** Its row is there, under its epoch. */
  member = true;
  cordoned = false;
  readonly buckets: ModelBucket[] = [];
  /** What it believes to hold. */
  claims: ModelClaim[] = [];

  constructor(
    readonly ref: NodeRef,
    readonly process: string,
    /** When it beat last. */
    public beatMs: number,
  ) {}
}

export class ModelBucket {
  status: BucketStatus | 'gone' = 'active';
  /** What its owner believes. */
  believed: BucketStatus = 'active';
  /** Somebody took it away: its owner's key fits no more. */
  taken = false;
  drainer: ModelNode | undefined;
  lastMark = 0;
  marks: { readonly no: number; readonly claims: readonly ModelClaim[] }[] = [];

  constructor(
    readonly ref: BucketRef,
    readonly node: ModelNode,
    readonly buffers: boolean,
  ) {}

  /** Its owner may finish in it. */
  get owned(): boolean {
    return !this.taken && (this.status === 'active' || this.status === 'completing');
  }

  get ownerless(): boolean {
    return this.status !== 'gone' && !this.node.member;
  }

  serves(job: ModelJob): boolean {
    return (
      this.ref.lane === job.lane && (this.ref.priority === undefined || this.ref.priority === job.priority)
    );
  }
}

export interface ModelClaim {
  readonly job: ModelJob;
  readonly seq: string;
  readonly bucket: ModelBucket;
  /** By its claim, or by a start mark. */
  begun: boolean;
  byMark: boolean;
}

export class ModelJob {
  place: 'pending' | 'running' | 'succeeded' | 'dead' = 'pending';
  seq = 0;
  executions = 0;
  failures = 0;
  crashes = 0;
  /** The one that stands. */
  claim: ModelClaim | undefined;

  constructor(
    readonly id: string,
    public lane: string,
    readonly priority: PriorityRank,
    readonly dueMs: number,
  ) {}

  claimed(bucket: ModelBucket, begun: boolean): ModelClaim {
    this.place = 'running';
    this.seq += 1;
    this.executions += begun ? 1 : 0;
    this.claim = { job: this, seq: String(this.seq), bucket, begun, byMark: false };
    return this.claim;
  }

  settled(outcome: Outcome): void {
    this.#leave();
    if (outcome === 'succeeded') this.place = 'succeeded';
    else if (outcome === 'failed') this.place = 'dead';
    if (outcome === 'failed' || outcome === 'retried') this.failures += 1;
    if (outcome === 'released') this.seq += 1;
  }

  /** Its node stopped: charged if it had begun, and only then. */
  takenBack(): void {
    const begun = this.claim?.begun ?? false;
    this.#leave();
    this.seq += 1;
    if (!begun) return;
    this.crashes += 1;
    if (this.crashes > BUDGET) this.place = 'dead';
  }

  #leave(): void {
    this.executions += this.claim?.byMark ? 1 : 0;
    this.claim = undefined;
    this.place = 'pending';
  }
}
