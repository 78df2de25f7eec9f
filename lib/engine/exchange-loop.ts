import { type Bucket } from '../buckets/bucket.js';
import { type WakeupHint } from '../cluster/cluster-coordinator.js';
import { inOwnContext } from '../observability/own-context.js';
import { type ClaimedJob } from '../store/job-store.js';
import { Alarm } from './alarm.js';
import { BucketTurns, mayHaveMore, type TurnResult } from './bucket-turns.js';
import { type ExchangeLoopParts } from './exchange-loop-parts.js';
import { FloorKeeper } from './floor-keeper.js';
import { NextLook } from './next-look.js';
import { type Pace, type PollSituation } from './poll-pace.js';
import { type RunningClaims } from './running-claims.js';
import { planTurn, skippedDelayMs, type TurnPlan, type TurnSituation } from './turn-plan.js';
import { type Consequences } from './verdicts.js';
import { Waiters } from './waiters.js';

/** After a turn that broke by a fault of ours. */
const BROKEN_TURN_DELAY_MS = 1_000;

/**
 * When a bucket takes its turns. One exchange is in flight; what finishes meanwhile rides on the next, so batches grow
 * with load and a lone job waits for nothing; there is no timer for batching. A saturated bucket does not poll but still
 * settles at once; an idle one sleeps until a wakeup, the next due job or the poll. Nothing here throws into its callers.
 */
export class ExchangeLoop {
  readonly #parts: ExchangeLoopParts;
  readonly turns: BucketTurns;
  readonly #floors: FloorKeeper;
  readonly #next: NextLook;
  readonly #alarm: Alarm;
  readonly #idleWaiters = new Waiters();
  readonly #recordedWaiters = new Waiters();
  #claiming = true;
  /** Nothing is claimed for a while; see {@link ExchangeLoop.hold}. */
  #held = false;
  #hasMore = false;
  #stopped = false;
  #deposed = false;
  /** Something says that there may be work to claim. */
  #look = true;
  /** A pause or a drain by hand may have come; see {@link TurnSituation.ask}. */
  #ask = false;
  /** One that comes during a turn outlives its answer, whose snapshot may be older. */
  #wakeups = 0;
  #scheduled = false;
  #running = false;
  #notBeforeMs = 0;
  #skippedAgainMs = 0;

  constructor(parts: ExchangeLoopParts) {
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock);
    this.#next = new NextLook(parts.poll);
    this.#floors = new FloorKeeper({
      ...parts,
      bucket: parts.bucket.ref,
      onChange: () => this.wake(),
      onFault: (where, error) => void parts.faults.failed(where, error),
    });
    this.turns = new BucketTurns(
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
    return this.turns.claims;
  }

  /** Jobs that it has claimed ahead. */
  get buffered(): number {
    return this.turns.buffer.size;
  }

  /** No body runs or waits to run, nothing waits to be recorded, no exchange is in flight. */
  get idle(): boolean {
    return this.claims.size === 0 && this.turns.buffer.empty && this.recorded;
  }

  /** Nothing waits to be recorded, no exchange is in flight, and no transaction of a handler is being committed. */
  get recorded(): boolean {
    return this.turns.recorded;
  }

  /** {@link ExchangeLoop.recorded}, and the database refused none of it. */
  get settled(): boolean {
    return this.recorded && this.refused === 0;
  }

  /** Outcomes that the database refused, each although it stood alone. */
  get refused(): number {
    return this.turns.outbox.parked;
  }

  /** How it looks for work that nobody tells it of. */
  get pace(): Pace {
    return this.#next.pace(this.#situation());
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
    if (hint.behind) {
      this.#floors.behind();
      this.#ask = this.buffered > 0;
    }
    if (hint.dueInMs !== undefined && hint.dueInMs > 0) {
      this.#next.dueIn(this.#nowMs(), hint.dueInMs);
      this.#rest();
      return;
    }
    this.#wakeups += 1;
    this.#look = true;
    this.#next.sign();
    this.#schedule();
  }

  /** There is room for claims, after it wanted some and found none. */
  readonly room = (): void => this.#schedule();

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
    const dueInMs = this.#next.dueInMs(this.#nowMs());
    if (Number.isFinite(dueInMs)) this.#parts.onHandedOver(this.bucket.ref.lane, dueInMs);
    this.turns.stopAccepting();
    this.#floors.stop();
    if (this.turns.outbox.fresh > 0) this.#schedule();
    else this.#rest();
  }

  /** The claim of a job was canceled. True when it was here. */
  cancel(jobId: string, claimSeq: string | undefined): boolean {
    const waited = this.turns.buffer.cancel(jobId, claimSeq);
    return this.claims.abort(jobId, claimSeq, 'canceled') || waited;
  }

  /** Another node has free slots and found nothing: half of what was claimed ahead goes back, if that is more than runs here. */
  share(): void {
    if (this.#claiming && this.turns.share()) this.#schedule();
  }

  /**
   * Hands unfinished claims back, uncharged, and waits for locked rows from now on. Returns how many. Claims whose outcome
   * the database refuses, now or from now on, are handed back too: they would be stranded.
   */
  release(): number {
    this.turns.waitForLocks();
    this.turns.outbox.giveBackRefused();
    const released = this.claims.release(this.#parts.releaseError);
    this.#schedule();
    return released;
  }

  /** No further turn, whatever happens. */
  stop(): void {
    this.#stopped = true;
    this.#parts.slots.wants(false);
    this.#floors.stop();
    this.#alarm.clear();
  }

  whenIdle(): Promise<void> {
    return this.#idleWaiters.wait(this.idle);
  }

  /** What finished or was released is durable. */
  whenRecorded(): Promise<void> {
    return this.#recordedWaiters.wait(this.recorded);
  }

  /** A claim of this bucket that nobody knew: it is run here. False: it is known by now, or has ended since. */
  adopt(job: ClaimedJob, seen: ReadonlySet<string>): boolean {
    if (this.#stopped || !this.turns.adopt(job, seen)) return false;
    this.#schedule();
    return true;
  }

  /** What the database refused even alone is tried again. */
  retryRefused(): void {
    if (this.turns.outbox.parked === 0) return;
    this.turns.outbox.unpark();
    this.#schedule();
  }

  /** The bucket is no longer ours: what runs is told, what finished is still offered to the database. */
  depose(): void {
    if (this.#deposed) return;
    this.#deposed = true;
    this.turns.depose();
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
    if (this.turns.outbox.fresh > 0 || this.turns.progress.size > 0 || this.#look) this.#schedule();
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
    if (this.#running) return;
    this.#running = true;
    try {
      while (!this.#stopped && this.#nowMs() >= this.#notBeforeMs && (await this.#turn())) {
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
    if (this.turns.unsure) {
      this.#follow(await this.turns.reconcile(), wakeups);
      return true;
    }
    const plan = this.#plan();
    if (plan === undefined) return false;
    this.#next.looking();
    const beganMs = this.#nowMs();
    const result = await this.turns.send(plan);
    this.#follow(result, wakeups);
    if (result.kind === 'answered' && result.answer.spawned.length > 0) {
      this.#parts.onSpawned(result.answer.spawned, this.#nowMs() - beganMs);
    }
    return true;
  }

  #plan(change: Partial<TurnSituation> = {}): TurnPlan | undefined {
    return planTurn({
      ...this.turns.situation(),
      skippedDue: this.#nowMs() >= this.#skippedAgainMs,
      look: this.#look,
      ask: this.#ask,
      claiming: this.#claiming && !this.#held,
      ...change,
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
        this.#ask = false;
        if (request.want > 0) {
          const more = mayHaveMore(request, answer);
          this.#hasMore = more;
          this.#look = more || wakeups !== this.#wakeups;
          this.#next.looked(nowMs, answer.claimed.length > 0);
          if (!more) this.#cameShort(nowMs, answer.nextDueInMs);
        }
        this.#heed(result.consequences);
        if (!answer.owned) this.depose();
        else if (answer.completing && this.#claiming) {
          this.stopClaiming();
          this.#parts.onCompleting();
        } else if (answer.paused) this.turns.giveUp();
      }
    }
  }

  #cameShort(nowMs: number, nextDueInMs: number | undefined): void {
    this.#next.cameShort(nowMs, nextDueInMs);
    // In deep idle there has been nothing for so long that others have nothing either.
    if (this.#parts.slots.free > 0 && this.pace.state !== 'deep_idle')
      this.#parts.onHungry(this.bucket.ref.lane);
  }

  #heed({ dueNow, behind, dueInMs, fewestSkips }: Consequences): void {
    const nowMs = this.#nowMs();
    if (dueNow) this.#look = true;
    if (behind) {
      this.#floors.behind();
      this.#parts.onHandedOver(this.bucket.ref.lane);
    }
    for (const delayMs of dueInMs) {
      this.#next.dueIn(nowMs, delayMs);
      if (!this.#claiming) this.#parts.onHandedOver(this.bucket.ref.lane, delayMs);
    }
    if (fewestSkips !== undefined) this.#skippedAgainMs = nowMs + skippedDelayMs(fewestSkips);
  }

  /** Nothing to do now: sleeps until a time comes or something wakes it. */
  #rest(): void {
    if (this.#running || this.#scheduled || this.#stopped) return;
    const nowMs = this.#nowMs();
    const mayBegin = this.#claiming && !this.#held && nowMs >= this.#notBeforeMs;
    this.#parts.slots.wants(mayBegin && (this.#look || this.buffered > 0));
    const news = this.#next.news(this.#situation());
    const { id, lane } = this.bucket.ref;
    if (news) this.#parts.events.emit('pace', { bucket: id, lane, ...news });
    const inMs = this.#sleepMs(nowMs);
    if (inMs === undefined) this.#alarm.clear();
    else this.#alarm.set(inMs, () => this.#awake());
  }

  #situation(): PollSituation {
    return {
      claiming: this.#claiming && !this.#held,
      // Without a wish to claim nobody tells it of room: what other buckets have taken must not keep it from looking.
      freeSlots: this.#look ? (this.#plan({ claiming: true })?.want ?? 0) : Infinity,
      wakeupsExpected: this.#parts.wakeupsExpected(),
    };
  }

  #sleepMs(nowMs: number): number | undefined {
    if (this.#notBeforeMs > nowMs) return this.#notBeforeMs - nowMs;
    // Timers may ring a fraction too early: the time for a turn may have come since the loop looked.
    if (this.turns.unsure || this.#plan() !== undefined) return 0;
    const waits: number[] = [];
    const lookInMs = this.#next.inMs(nowMs, this.#situation());
    if (lookInMs !== undefined) waits.push(lookInMs);
    if (this.turns.outbox.size > 0) waits.push(Math.max(0, this.#skippedAgainMs - nowMs));
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  #awake(): void {
    const nowMs = this.#nowMs();
    if (this.#next.inMs(nowMs, this.#situation()) === 0) {
      this.#next.passed(nowMs);
      this.#look = true;
    }
    void this.#run();
  }

  #tellIdle(): void {
    if (this.#running || !this.recorded) return;
    this.#recordedWaiters.tell();
    if (!this.idle) return;
    this.#parts.events.emit('idle', { bucket: this.bucket.ref.id, lane: this.bucket.ref.lane });
    this.#idleWaiters.tell();
  }
}
