import { type Bucket } from '../buckets/bucket.js';
import { type WakeupHint } from '../cluster/cluster-coordinator.js';
import { inOwnContext } from '../observability/own-context.js';
import { type ClaimedJob } from '../store/job-store.js';
import { Alarm } from './alarm.js';
import { BucketTurns, mayHaveMore, type TurnResult } from './bucket-turns.js';
import { type ExchangeLoopParts } from './exchange-loop-parts.js';
import { FloorKeeper } from './floor-keeper.js';
import { LookTimes } from './look-times.js';
import { claimKey } from './outbox.js';
import { type Pace, PollPace, type PollSituation } from './poll-pace.js';
import { type RunningClaims } from './running-claims.js';
import { planTurn, skippedDelayMs } from './turn-plan.js';
import { type Consequences } from './verdicts.js';

/** After a turn that broke by a fault of ours. */
const BROKEN_TURN_DELAY_MS = 1_000;

/**
 * When a bucket takes its turns. One exchange is in flight; what finishes meanwhile rides on the next, so batches grow
 * with load and a lone job waits for nothing; there is no timer for batching. A saturated bucket does not poll but still
 * settles at once; an idle one sleeps until a wakeup, the next due job or the poll. Nothing here throws into its callers.
 */
export class ExchangeLoop {
  readonly #parts: ExchangeLoopParts;
  readonly #turns: BucketTurns;
  readonly #floors: FloorKeeper;
  readonly #times = new LookTimes();
  readonly #pace: PollPace;
  readonly #alarm: Alarm;
  readonly #idleWaiters: (() => void)[] = [];
  readonly #recordedWaiters: (() => void)[] = [];
  #claiming = true;
  /** Nothing is claimed for a while; see {@link ExchangeLoop.hold}. */
  #held = false;
  #hasMore = false;
  #stopped = false;
  #deposed = false;
  /** Something says that there may be work to claim. */
  #look = true;
  /** One that comes during a turn outlives its answer, whose snapshot may be older. */
  #wakeups = 0;
  #scheduled = false;
  #running = false;
  #notBeforeMs = 0;
  #skippedAgainMs = 0;
  #toldPace: Pace | undefined;

  constructor(parts: ExchangeLoopParts) {
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock);
    this.#pace = new PollPace(parts.poll);
    this.#floors = new FloorKeeper({
      ...parts,
      bucket: parts.bucket.ref,
      onChange: () => this.wake(),
      onFault: (where, error) => void parts.faults.failed(where, error),
    });
    this.#turns = new BucketTurns(
      parts,
      this.#floors,
      () => this.#changed(),
      (dueInMs) => this.wake({ dueInMs }),
    );
  }

  get bucket(): Bucket {
    return this.#parts.bucket;
  }

  get claims(): RunningClaims {
    return this.#turns.claims;
  }

  /** No body runs, nothing waits to be recorded, no exchange is in flight. */
  get idle(): boolean {
    return this.claims.size === 0 && this.recorded;
  }

  /** Nothing waits to be recorded, no exchange is in flight, and no transaction of a handler is being committed. */
  get recorded(): boolean {
    const { outbox, inFlight, unsure, claims } = this.#turns;
    return outbox.size === 0 && !inFlight && !unsure && !claims.committing;
  }

  /** Outcomes that are not recorded yet. */
  get waiting(): number {
    return this.#turns.outbox.size;
  }

  /** {@link ExchangeLoop.recorded}, and the database refused none of it. */
  get settled(): boolean {
    return this.recorded && this.refused === 0;
  }

  /** Outcomes that the database refused, each although it stood alone. */
  get refused(): number {
    return this.#turns.outbox.parked;
  }

  /** How it looks for work that nobody tells it of. */
  get pace(): Pace {
    return this.#pace.now(this.#situation());
  }

  /** The last claim came back full. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** The bucket is somebody else's. */
  get deposed(): boolean {
    return this.#deposed;
  }

  start(): void {
    this.#schedule();
  }

  /** There may be work: now, later, or behind the floors. */
  wake(hint: WakeupHint = {}): void {
    if (hint.behind) this.#floors.behind();
    if (hint.dueInMs !== undefined && hint.dueInMs > 0) {
      this.#times.dueIn(this.#nowMs(), hint.dueInMs);
      this.#rest();
      return;
    }
    this.#wakeups += 1;
    this.#look = true;
    this.#pace.sign();
    this.#schedule();
  }

  /** Whether wakeups can be expected has changed. */
  repace(): void {
    this.#rest();
  }

  /** While held it only settles: nobody has acknowledged for too long that the node lives. */
  hold(held: boolean): void {
    this.#held = held;
    if (held) this.#rest();
    else this.wake();
  }

  /** From now on it only settles; a claim that is still in flight is given back unbegun. */
  stopClaiming(): void {
    this.#claiming = false;
    const dueInMs = this.#times.nextInMs(this.#nowMs());
    if (Number.isFinite(dueInMs)) this.#parts.onHandedOver(this.bucket.ref.lane, dueInMs);
    this.#turns.stopAccepting();
    this.#floors.stop();
    this.#rest();
  }

  /**
   * Hands unfinished claims back, uncharged, and waits for locked rows from now on. Returns how many. Claims whose outcome
   * the database refuses, now or from now on, are handed back too: they would be stranded.
   */
  release(): number {
    this.#turns.waitForLocks();
    this.#turns.outbox.giveBackRefused();
    const released = this.claims.release(this.#parts.releaseError);
    this.#schedule();
    return released;
  }

  /** No further turn, whatever happens. */
  stop(): void {
    this.#stopped = true;
    this.#floors.stop();
    this.#alarm.clear();
  }

  whenIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** What finished or was released is durable. */
  whenRecorded(): Promise<void> {
    return this.recorded ? Promise.resolve() : new Promise((resolve) => this.#recordedWaiters.push(resolve));
  }

  /** The exchange that is in flight now, if any, has been answered and worked in. */
  landed(): Promise<void> {
    return this.#turns.landed();
  }

  /** Every claim that this bucket has an account of. */
  known(): { id: string; claimSeq: string }[] {
    return this.#turns.known();
  }

  /** A claim of this bucket that nobody knew: it is run here. False: it is known by now, or has ended since. */
  adopt(job: ClaimedJob, seen: ReadonlySet<string>): boolean {
    const key = claimKey(job.id, job.claimSeq);
    if (this.#stopped || seen.has(key) || this.claims.has(key) || this.#turns.outbox.get(key)) return false;
    this.#turns.take([job]);
    this.#schedule();
    return true;
  }

  /** What the database refused even alone is tried again. */
  retryRefused(): void {
    if (this.#turns.outbox.parked === 0) return;
    this.#turns.outbox.unpark();
    this.#schedule();
  }

  /** The bucket is no longer ours: what runs is told, what finished is still offered to the database. */
  depose(): void {
    if (this.#deposed) return;
    this.#deposed = true;
    this.stopClaiming();
    this.claims.abortAll('lost');
    const { bucket, events, onDeposed } = this.#parts;
    events.emit('deposed', { bucket: bucket.ref.id, lane: bucket.ref.lane });
    onDeposed();
  }

  #nowMs(): number {
    return this.#parts.clock.monotonicMs();
  }

  #changed(): void {
    if (this.#turns.outbox.fresh > 0 || this.#turns.progress.size > 0 || this.#look) this.#schedule();
    else this.#rest();
    this.#tellIdle();
  }

  /** A turn soon: jobs that finish in the same tick travel together. It is nobody's request that it serves. */
  #schedule(): void {
    if (this.#scheduled || this.#running || this.#stopped) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void inOwnContext(() => this.#run());
    });
  }

  async #run(): Promise<void> {
    if (this.#running || this.#stopped) return;
    this.#running = true;
    try {
      while (this.#mayTurn() && (await this.#turn())) {
        // Handlers that end within this tick ride on the very next turn.
        await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      // A fault of ours, or of something that we were given: it must not end the bucket, nor spin.
      this.#notBeforeMs = this.#nowMs() + BROKEN_TURN_DELAY_MS;
      this.#parts.faults.failed('turn', error, 0, this.bucket.ref.id);
    } finally {
      this.#running = false;
      this.#tellIdle();
      this.#rest();
    }
  }

  /** False: there is nothing to do. */
  async #turn(): Promise<boolean> {
    const wakeups = this.#wakeups;
    if (this.#turns.unsure) {
      this.#follow(await this.#turns.reconcile(), wakeups);
      return true;
    }
    const want = this.#plan();
    if (want === undefined) return false;
    this.#times.looking();
    const beganMs = this.#nowMs();
    const result = await this.#turns.send(want);
    this.#follow(result, wakeups);
    if (result.kind === 'answered' && result.answer.spawned.length > 0) {
      this.#parts.onSpawned(result.answer.spawned, this.#nowMs() - beganMs);
    }
    return true;
  }

  #mayTurn(): boolean {
    return !this.#stopped && this.#nowMs() >= this.#notBeforeMs;
  }

  #plan(): number | undefined {
    const { outbox, progress } = this.#turns;
    return planTurn({
      fresh: outbox.fresh,
      skipped: outbox.size - outbox.fresh,
      skippedDue: this.#nowMs() >= this.#skippedAgainMs,
      progress: progress.size,
      look: this.#look,
      freeSlots: this.#parts.slots.free,
      claiming: this.#claiming && !this.#held,
    });
  }

  #follow(result: TurnResult, wakeups: number): void {
    const nowMs = this.#nowMs();
    switch (result.kind) {
      case 'failed':
        this.#notBeforeMs = nowMs + result.delayMs;
        return;
      case 'reconciled':
        this.#look = true;
        this.#heed(result.consequences);
        if (result.deposed) this.depose();
        return;
      case 'answered': {
        const { answer, request } = result;
        if (request.want > 0) {
          const more = mayHaveMore(request, answer);
          this.#hasMore = more;
          this.#look = more || wakeups !== this.#wakeups;
          this.#pace.looked(nowMs, answer.claimed.length > 0);
          if (!more) this.#times.cameShort(nowMs, answer.nextDueInMs);
        }
        this.#heed(result.consequences);
        if (!answer.owned) this.depose();
      }
    }
  }

  #heed({ dueNow, behind, dueInMs, fewestSkips }: Consequences): void {
    const nowMs = this.#nowMs();
    if (dueNow) this.#look = true;
    if (behind) {
      this.#floors.behind();
      this.#parts.onHandedOver(this.bucket.ref.lane);
    }
    for (const delayMs of dueInMs) {
      this.#times.dueIn(nowMs, delayMs);
      if (!this.#claiming) this.#parts.onHandedOver(this.bucket.ref.lane, delayMs);
    }
    if (fewestSkips !== undefined) this.#skippedAgainMs = nowMs + skippedDelayMs(fewestSkips);
  }

  /** Nothing to do now: sleeps until a time comes or something wakes it. */
  #rest(): void {
    if (this.#running || this.#scheduled || this.#stopped) return;
    this.#tellPace();
    const inMs = this.#sleepMs(this.#nowMs());
    if (inMs === undefined) this.#alarm.clear();
    else this.#alarm.set(inMs, () => this.#awake());
  }

  #situation(): PollSituation {
    return {
      claiming: this.#claiming && !this.#held,
      freeSlots: this.#parts.slots.free,
      wakeupsExpected: this.#parts.wakeupsExpected(),
    };
  }

  #nextLookInMs(nowMs: number): number | undefined {
    const pollInMs = this.#pace.nextInMs(nowMs, this.#situation());
    return pollInMs === undefined ? undefined : Math.min(pollInMs, this.#times.nextInMs(nowMs));
  }

  #tellPace(): void {
    const { state, waitMs } = this.#pace.now(this.#situation());
    if (this.#toldPace?.state === state && this.#toldPace.waitMs === waitMs) return;
    this.#toldPace = { state, waitMs };
    const { id, lane } = this.bucket.ref;
    this.#parts.events.emit('pace', { bucket: id, lane, state, waitMs });
  }

  #sleepMs(nowMs: number): number | undefined {
    if (this.#notBeforeMs > nowMs) return this.#notBeforeMs - nowMs;
    // Timers may ring a fraction too early: the time for a turn may have come since the loop looked.
    if (this.#turns.unsure || this.#plan() !== undefined) return 0;
    const waits: number[] = [];
    const lookInMs = this.#nextLookInMs(nowMs);
    if (lookInMs !== undefined) waits.push(lookInMs);
    if (this.#turns.outbox.size > 0) waits.push(Math.max(0, this.#skippedAgainMs - nowMs));
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  #awake(): void {
    const nowMs = this.#nowMs();
    if (this.#nextLookInMs(nowMs) === 0) {
      this.#times.passed(nowMs);
      this.#look = true;
    }
    void this.#run();
  }

  #tellIdle(): void {
    if (this.#running || !this.recorded) return;
    for (const resolve of this.#recordedWaiters.splice(0)) resolve();
    if (!this.idle) return;
    this.#parts.events.emit('idle', { bucket: this.bucket.ref.id, lane: this.bucket.ref.lane });
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
