import { type EngineEvents } from '../observability/engine-events.js';
import { type ClaimedJob, type LateOutcome, type Settlement } from '../store/job-store.js';
import { type LateRecorder } from './late-recorder.js';
import { claimKey, type Outbox } from './outbox.js';
import { type AbortKind, type RunningExecution } from './running-execution.js';
import { type Slots } from './slots.js';
import { Suspects } from './suspects.js';

/** Starts one execution; never throws. The executor of a node, seen from the loop. */
export interface ExecutionStarter {
  start(job: ClaimedJob): RunningExecution;
}

/** `cut`: the claim is no longer ours to settle, although the body may still run. */
type ClaimState = 'running' | 'finished' | 'cut';

interface RunningClaim {
  readonly execution: RunningExecution;
  state: ClaimState;
  told: boolean;
}

export interface RunningClaimsParts {
  readonly bucketId: string;
  readonly slots: Slots;
  readonly suspects: Suspects;
  readonly starter: ExecutionStarter;
  readonly outbox: Outbox;
  readonly late: LateRecorder;
  readonly events: EngineEvents;
  /** Something is in the outbox, or a slot is free. */
  readonly onChange: () => void;
}

/** A snoozed job of ours that could not even be started comes back after this long. */
const START_FAILED_DELAY_MS = 30_000;

/** The executions of one bucket whose bodies have not ended. Puts what they report into the outbox. */
export class RunningClaims {
  readonly #claims = new Map<string, RunningClaim>();
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

  has(key: string): boolean {
    return this.#claims.has(key);
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
    const { events, bucketId, slots, suspects } = this.#parts;
    const key = claimKey(job.id, job.claimSeq);
    this.#watch?.add(key);
    if (events.heard('claimed')) {
      events.emit('claimed', { bucket: bucketId, jobId: job.id, claimSeq: job.claimSeq, name: job.name });
    }
    let execution: RunningExecution;
    try {
      execution = this.#parts.starter.start(job);
    } catch {
      // A fault of ours must not strand the claim, nor bring it back at once for ever.
      this.#parts.outbox.add({
        id: job.id,
        claimSeq: job.claimSeq,
        outcome: 'snoozed',
        delayMs: START_FAILED_DELAY_MS,
      });
      this.#parts.onChange();
      return;
    }
    slots.take();
    if (Suspects.is(job)) suspects.began();
    const claim: RunningClaim = { execution, state: 'running', told: false };
    this.#claims.set(key, claim);
    void execution.settlement.then((settlement) => this.#finished(key, claim, settlement));
    void execution.ended.then((late) => this.#ended(key, claim, late));
  }

  /** Gives a claim back that was never started. */
  giveBack(job: ClaimedJob, error: string): void {
    this.#watch?.add(claimKey(job.id, job.claimSeq));
    this.#parts.outbox.add({ id: job.id, claimSeq: job.claimSeq, outcome: 'released', error });
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
      if (claim.state !== 'running') continue;
      claim.state = 'cut';
      const { id, claimSeq } = claim.execution.job;
      this.#parts.outbox.add({ id, claimSeq, outcome: 'released', error });
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
    if (!claim) return false;
    if (claim.state === 'running') claim.state = 'cut';
    claim.execution.abort(kind);
    return true;
  }

  #finished(key: string, claim: RunningClaim, settlement: Settlement): void {
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
    this.#parts.outbox.add(settlement, (recorded) => claim.execution.recorded(recorded));
    this.#parts.onChange();
  }

  #ended(key: string, claim: RunningClaim, late: LateOutcome | undefined): void {
    this.#claims.delete(key);
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
    else this.#parts.late.record(late);
  }
}
