import { RenewedMap } from '../collections/renewed-map.js';
import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type BucketRef, type ClaimedJob, type LateOutcome, type Settlement } from '../store/job-store.js';
import { type ClaimBuffer } from './claim-buffer.js';
import { type EndedWork, executionEvent, tellSettled } from './execution-events.js';
import { type LateCause, type LateRecorder } from './late-recorder.js';
import { claimKey, type Outbox } from './outbox.js';
import { type AbortKind, type RunningExecution } from './running-execution.js';
import { type BucketSlots } from './slots.js';
import { Suspects } from './suspects.js';

/** Starts one execution; never throws. The executor of a node, seen from the loop. */
export interface ExecutionStarter {
  start(job: ClaimedJob): RunningExecution;
}

/** `cut`: the claim is no longer ours to settle, although the body may still run. */
type ClaimState = 'running' | 'finished' | 'cut';

interface RunningClaim extends EndedWork {
  readonly execution: RunningExecution;
  readonly beganMs: number;
  tookMs: number | undefined;
  state: ClaimState;
  cause: LateCause | undefined;
  told: boolean;
}

export interface RunningClaimsParts {
  readonly bucket: BucketRef;
  readonly clock: Clock;
  readonly slots: BucketSlots;
  readonly suspects: Suspects;
  readonly starter: ExecutionStarter;
  readonly outbox: Outbox;
  readonly late: LateRecorder;
  readonly events: EngineEvents;
  /** Something is in the outbox, or a slot is free. */
  readonly onChange: () => void;
  /** A job was given back by a transaction of its own, and is due again after that. */
  readonly onDueIn: (delayMs: number) => void;
}

/** A snoozed job of ours that could not even be started comes back after this long. */
const START_FAILED_DELAY_MS = 30_000;

/** The executions of one bucket whose bodies have not ended. Puts what they report into the outbox. */
export class RunningClaims {
  readonly #claims = new RenewedMap<string, RunningClaim>();
  /** Of these, the ones that record their outcome themselves. */
  readonly #transactional = new Set<RunningExecution>();
  readonly #parts: RunningClaimsParts;
  readonly #emptyWaiters: (() => void)[] = [];
  /** Filled while a reconcile looks at the database: claims that began meanwhile are no strays. */
  #watch: Set<string> | undefined;

  constructor(parts: RunningClaimsParts) {
    this.#parts = parts;
  }

  /** Bodies that have not ended. */
  get size(): number {
    return this.#claims.size;
  }

  /** Outcomes that a transaction of their own may be committing now. */
  get committing(): boolean {
    for (const { commit } of this.#transactional) if (commit === 'pending') return true;
    return false;
  }

  /** Of the handlers whose bodies have not ended. */
  names(): Set<string> {
    const names = new Set<string>();
    for (const { execution } of this.#claims.values()) names.add(execution.job.name);
    return names;
  }

  has(key: string): boolean {
    return this.#claims.has(key);
  }

  /** A claim that is ours and not finished. */
  stands(key: string): boolean {
    return this.#claims.get(key)?.state === 'running';
  }

  /** Claims that are ours and not finished. */
  standing(): { id: string; claimSeq: string }[] {
    const standing: { id: string; claimSeq: string }[] = [];
    for (const { state, execution } of this.#claims.values()) {
      if (state === 'running') standing.push({ id: execution.job.id, claimSeq: execution.job.claimSeq });
    }
    return standing;
  }

  start(job: ClaimedJob): void {
    const { events, bucket, slots, suspects, clock } = this.#parts;
    const key = claimKey(job.id, job.claimSeq);
    this.#watch?.add(key);
    if (events.heard('claimed')) {
      const { waitedMs } = job;
      events.emit('claimed', { ...executionEvent(job, bucket), bucket: bucket.id, waitedMs });
    }
    let execution: RunningExecution;
    try {
      execution = this.#parts.starter.start(job);
    } catch {
      // A fault of ours must not strand the claim, nor bring it back at once for ever.
      const claim = { id: job.id, claimSeq: job.claimSeq };
      const work = { job, tookMs: undefined };
      this.#parts.outbox.add({ ...claim, outcome: 'snoozed', delayMs: START_FAILED_DELAY_MS }, work);
      this.#parts.onChange();
      return;
    }
    slots.take();
    if (Suspects.is(job)) suspects.began();
    const claim: RunningClaim = {
      job,
      execution,
      beganMs: clock.monotonicMs(),
      tookMs: undefined,
      state: 'running',
      cause: undefined,
      told: false,
    };
    this.#claims.set(key, claim);
    if (execution.commit !== undefined) this.#transactional.add(execution);
    void execution.settlement.then((settlement) => this.#finished(key, claim, settlement));
    void execution.ended.then((late) => this.#ended(key, claim, late));
  }

  /** One that was claimed ahead waits in the buffer. */
  keep(job: ClaimedJob, buffer: ClaimBuffer): void {
    this.#watch?.add(claimKey(job.id, job.claimSeq));
    buffer.add(job);
  }

  /** Gives a claim back that was never started. */
  giveBack(job: ClaimedJob, error: string): void {
    this.#watch?.add(claimKey(job.id, job.claimSeq));
    const settlement: Settlement = { id: job.id, claimSeq: job.claimSeq, outcome: 'released', error };
    this.#parts.outbox.add(settlement, { job, tookMs: undefined });
  }

  /** Without `claimSeq`: whatever claim of the job runs here. True when something was told to stop. */
  abort(jobId: string, claimSeq: string | undefined, kind: AbortKind): boolean {
    if (claimSeq !== undefined) return this.#abort(this.#claims.get(claimKey(jobId, claimSeq)), kind);
    let told = false;
    for (const claim of this.#claims.values()) {
      if (claim.execution.job.id === jobId) told = this.#abort(claim, kind) || told;
    }
    return told;
  }

  abortAll(kind: AbortKind): void {
    for (const claim of this.#claims.values()) this.#abort(claim, kind);
  }

  /** Hands the unfinished claims back, uncharged; the bodies go on until they are aborted, but speak for nothing any more. */
  release(error: string): number {
    let released = 0;
    for (const claim of this.#claims.values()) {
      // One that may be committing is the database's to decide: it is recorded, or a failure that follows soon.
      if (claim.state !== 'running' || claim.execution.commit === 'pending') continue;
      claim.state = 'cut';
      claim.execution.handedBack();
      const { id, claimSeq } = claim.execution.job;
      this.#parts.outbox.add({ id, claimSeq, outcome: 'released', error }, claim);
      released += 1;
    }
    return released;
  }

  /** Every body has ended. */
  whenEmpty(): Promise<void> {
    return this.#claims.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#emptyWaiters.push(resolve));
  }

  /** Collects the claims that begin from now on. */
  watch(): Set<string> {
    this.#watch = new Set();
    return this.#watch;
  }

  unwatch(): void {
    this.#watch = undefined;
  }

  #abort(claim: RunningClaim | undefined, kind: AbortKind): boolean {
    if (!claim || claim.execution.commit === 'pending') return false;
    if (claim.state === 'running') {
      claim.state = 'cut';
      if (kind === 'lost' || kind === 'canceled') this.#lost(claim, kind);
    }
    claim.execution.abort(kind);
    return true;
  }

  #lost(claim: RunningClaim, kind: LateCause): void {
    const { job } = claim;
    claim.cause = kind;
    const { events, bucket } = this.#parts;
    if (!events.heard('lost')) return;
    const reason = kind === 'canceled' ? kind : 'claim';
    events.emit('lost', { ...executionEvent(job, bucket), bucket: bucket.id, reason });
  }

  #finished(key: string, claim: RunningClaim, settlement: Settlement): void {
    if (claim.execution.commit === 'done') {
      this.#recorded(claim, settlement);
      return;
    }
    if (claim.state === 'cut') {
      const { outcome, error } = settlement;
      this.#late(key, claim, {
        jobId: settlement.id,
        claimSeq: settlement.claimSeq,
        outcome,
        ...(error === undefined ? {} : { error }),
      });
      return;
    }
    claim.state = 'finished';
    claim.tookMs = this.#parts.clock.monotonicMs() - claim.beganMs;
    this.#parts.outbox.add(settlement, claim, (recorded) => claim.execution.recorded(recorded));
    this.#parts.onChange();
  }

  /** By a transaction of its own: nothing of it goes through the outbox. */
  #recorded(claim: RunningClaim, settlement: Settlement): void {
    const { events, bucket, clock, onDueIn } = this.#parts;
    claim.state = 'finished';
    claim.tookMs = clock.monotonicMs() - claim.beganMs;
    tellSettled(events, claim, settlement, bucket);
    claim.execution.recorded(settlement);
    if (settlement.delayMs !== undefined) onDueIn(settlement.delayMs);
  }

  #ended(key: string, claim: RunningClaim, late: LateOutcome | undefined): void {
    this.#claims.delete(key);
    this.#transactional.delete(claim.execution);
    // A transaction that found its claim gone, before or after its body.
    if (claim.state === 'running' && claim.execution.commit === 'none') {
      claim.state = 'cut';
      this.#lost(claim, 'lost');
    }
    this.#parts.slots.giveBack();
    if (Suspects.is(claim.execution.job)) this.#parts.suspects.ended();
    if (late) this.#late(key, claim, late);
    this.#parts.onChange();
    if (this.#claims.size === 0) for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }

  #late(key: string, claim: RunningClaim, late: LateOutcome): void {
    if (claim.told) return;
    claim.told = true;
    // The closed row that takes it exists only once the outcome is recorded.
    const waiting = this.#parts.outbox.get(key);
    if (waiting) waiting.late = late;
    else this.#parts.late.record(late, claim.cause);
  }
}
