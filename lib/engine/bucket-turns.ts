import { describeError } from '../errors/describe-error.js';
import { PARTITION_DAYS } from '../maintenance/maintenance.js';
import { type ClaimedJob, type ExchangeAnswer, type ExchangeRequest } from '../store/job-store.js';
import { faultKindOf } from '../store/store-fault.js';
import { ClaimBuffer } from './claim-buffer.js';
import { type ExchangeLoopParts } from './exchange-loop-parts.js';
import { lostAnswer, respondTo } from './fault-response.js';
import { type FloorKeeper } from './floor-keeper.js';
import { type FloorsInUse } from './floors.js';
import {
  claimKey,
  Outbox,
  settlementOf,
  SKIPS_BEFORE_WAITING,
  type OutboxEntry,
  type Parcel,
} from './outbox.js';
import { ProgressQueue } from './progress-queue.js';
import { RunningClaims } from './running-claims.js';
import { Sharing } from './sharing.js';
import { StartMarks } from './start-marks.js';
import { type TurnPlan, type TurnSituation } from './turn-plan.js';
import { Verdicts, type Consequences } from './verdicts.js';

/** A wait for locked rows that was in vain is not repeated before this, so that one held row never owns the bucket. */
const WAIT_AGAIN_AFTER_MS = 30_000;

/** The claim found as many as it asked for, or more than its answer had room for. */
export function mayHaveMore(request: ExchangeRequest, answer: ExchangeAnswer): boolean {
  return answer.claimed.length === request.want || answer.nextDueInMs === 0;
}

export type TurnResult =
  | {
      readonly kind: 'answered';
      readonly request: ExchangeRequest;
      readonly answer: ExchangeAnswer;
      readonly consequences: Consequences;
    }
  | { readonly kind: 'reconciled'; readonly deposed: boolean; readonly consequences: Consequences }
  | { readonly kind: 'failed'; readonly delayMs: number };

/**
 * One turn of a bucket, and what follows from its answer or its failure. Finished work leaves the outbox only by an answer
 * of the database; after an unknown commit nothing is sent before claims and outcomes were compared with the database: a
 * blind retry would strand the jobs that the lost reply had claimed. Never throws.
 */
export class BucketTurns {
  readonly outbox = new Outbox();
  readonly progress = new ProgressQueue();
  readonly claims: RunningClaims;
  /** Jobs that were claimed ahead of the free slots. */
  readonly buffer: ClaimBuffer;
  readonly #marks = new StartMarks();
  readonly #sharing = new Sharing();
  readonly #parts: ExchangeLoopParts;
  readonly #floors: FloorKeeper;
  readonly #verdicts: Verdicts;
  readonly #landings: (() => void)[] = [];
  #inFlight = false;
  #deposed = false;
  #failures = 0;
  #accepting = true;
  #waitForLocks = false;
  #waitAgainMs = 0;
  /** What an exchange of unknown commit carried. */
  #unsure: readonly OutboxEntry[] | undefined;

  constructor(
    parts: ExchangeLoopParts,
    floors: FloorKeeper,
    onChange: () => void,
    onDueIn: (delayMs: number) => void,
  ) {
    this.#parts = parts;
    this.#floors = floors;
    this.buffer = new ClaimBuffer(parts.clock);
    const { bucket, slots, suspects, late, events } = parts;
    this.#verdicts = new Verdicts(bucket.ref, this.outbox, late, events);
    this.claims = new RunningClaims({
      bucket: bucket.ref,
      clock: parts.clock,
      slots,
      suspects,
      starter: parts.executor({
        onProgress: (report) => {
          this.progress.put(report);
          onChange();
        },
      }),
      outbox: this.outbox,
      late,
      events,
      onChange,
      onDueIn,
    });
  }

  get inFlight(): boolean {
    return this.#inFlight;
  }

  /** Nothing waits to be recorded, no exchange is in flight, and no transaction of a handler is being committed. */
  get recorded(): boolean {
    return this.outbox.size === 0 && !this.#inFlight && !this.unsure && !this.claims.committing;
  }

  /** Its part of what the next turn depends on. */
  situation(): Omit<TurnSituation, 'skippedDue' | 'look' | 'ask' | 'claiming'> {
    const { slots, bufferSize, clock } = this.#parts;
    const { fresh, size } = this.outbox;
    return {
      fresh,
      skipped: size - fresh,
      progress: this.progress.size,
      freeSlots: slots.free,
      buffered: this.buffer.size,
      bufferSize: this.#sharing.isModest(clock.monotonicMs()) ? 0 : bufferSize,
    };
  }

  /** The last commit is unknown: {@link BucketTurns.reconcile} comes first. */
  get unsure(): boolean {
    return this.#unsure !== undefined;
  }

  /** What waits in the buffer is given back, and so is what comes in from now on. */
  stopAccepting(): void {
    this.#accepting = false;
    this.giveUp();
  }

  /** The bucket is somebody else's. What its marks say is for whoever takes the claims back. */
  depose(): void {
    this.#deposed = true;
    this.buffer.clear();
  }

  /** Gives back half of the buffer, if there is more in it than runs. False: there is not. */
  share(): boolean {
    const { size } = this.buffer;
    const nowMs = this.#parts.clock.monotonicMs();
    if (size <= this.claims.size || !this.#sharing.worthwhile(nowMs)) return false;
    const jobs = this.giveUp(Math.ceil(size / 2));
    this.#sharing.gave(jobs, nowMs);
    return jobs.length > 0;
  }

  /** From now on locked rows are waited for. */
  waitForLocks(): void {
    this.#waitForLocks = true;
  }

  /** The exchange that is in flight now, if any, has been answered and worked in. */
  landed(): Promise<void> {
    return this.#inFlight ? new Promise((resolve) => this.#landings.push(resolve)) : Promise.resolve();
  }

  async send(plan: TurnPlan): Promise<TurnResult> {
    const { store, events, debug, bucket, faults, clock, slots, suspects } = this.#parts;
    const beganMs = clock.monotonicMs();
    const parcel = this.outbox.next(beganMs >= this.#waitAgainMs ? SKIPS_BEFORE_WAITING : undefined);
    const used = this.#floors.inUse();
    const begin = this.#mayClaim(parcel) ? this.buffer.take(plan.begin) : [];
    const reserved = slots.reserve(begin.length + plan.beginNow);
    const free = Math.max(0, reserved - begin.length);
    const want = this.#mayClaim(parcel) ? free + plan.want - plan.beginNow : 0;
    const mayAsk = want > 0 && free > 0 && suspects.ask();
    const ahead = this.#ahead(begin, free);
    const request = this.#request(parcel, used, { want, mayAsk, ahead });
    this.#inFlight = true;
    let arrived = false;
    try {
      await debug.reach('exchange.sending', bucket.ref.id);
      const answer = await store.exchange(request);
      arrived = true;
      await debug.reach('exchange.answered', bucket.ref.id);
      faults.worked('exchange', bucket.ref.id);
      const consequences = this.#answered(request, parcel, used, answer, begin);
      this.#failures = 0;
      events.emit('turn', {
        bucket: bucket.ref.id,
        lane: bucket.ref.lane,
        sent: request.settle.length,
        recorded: answer.recorded.length,
        skipped: answer.skipped.length,
        lost: answer.lost.length,
        wanted: request.want,
        claimed: answer.claimed.length,
        tookMs: clock.monotonicMs() - beganMs,
      });
      return { kind: 'answered', request, answer, consequences };
    } catch (error) {
      // An answer that was not worked in to its end is as good as a lost one.
      const fault = arrived ? lostAnswer(error) : error;
      return { kind: 'failed', delayMs: await this.#failed(fault, request, parcel) };
    } finally {
      slots.unreserve(reserved);
      if (mayAsk) suspects.asked();
      this.#land();
    }
  }

  /** Compares claims and outcomes with the database after an unknown commit. */
  async reconcile(): Promise<TurnResult> {
    const { store, bucket, events, debug, faults } = this.#parts;
    const unsure = this.#unsure ?? [];
    this.#inFlight = true;
    try {
      await debug.reach('reconcile.sending', bucket.ref.id);
      const answer = await store.reconcile({
        buckets: [bucket.ref],
        known: this.known(),
        unsettled: unsure.map(({ settlement: { id, claimSeq, drop } }) => ({
          id,
          claimSeq,
          ...(drop ? { drop } : {}),
        })),
      });
      await debug.reach('reconcile.answered', bucket.ref.id);
      faults.worked('reconcile', bucket.ref.id);
      this.#unsure = undefined;
      const recorded = new Set(answer.recorded);
      const lost = new Set(answer.lost);
      const consequences = this.#verdicts.apply(unsure, (id) =>
        recorded.has(id) ? 'recorded' : lost.has(id) ? 'lost' : 'standing',
      );
      this.take(answer.strays.map(({ job }) => job));
      events.emit('reconciled', {
        cause: 'unknown_commit',
        buckets: 1,
        strays: answer.strays.length,
        recorded: recorded.size,
        lost: lost.size,
      });
      return { kind: 'reconciled', deposed: answer.deposed.includes(bucket.ref.id), consequences };
    } catch (error) {
      this.#failures += 1;
      const { delayMs } = respondTo('unavailable', this.#failures);
      faults.failed('reconcile', error, delayMs, bucket.ref.id);
      return { kind: 'failed', delayMs };
    } finally {
      this.#land();
    }
  }

  /** Every claim that this bucket has an account of. */
  known(): { id: string; claimSeq: string }[] {
    const finished = this.outbox.all().map(({ settlement: { id, claimSeq } }) => ({ id, claimSeq }));
    return [...this.claims.standing(), ...this.buffer.known(), ...finished];
  }

  /** A claim of this bucket that nobody knew: it is run here. False: it is known by now, or has ended since. */
  adopt(job: ClaimedJob, seen: ReadonlySet<string>): boolean {
    const key = claimKey(job.id, job.claimSeq);
    if (seen.has(key) || this.claims.has(key) || this.buffer.has(key) || this.outbox.get(key)) return false;
    this.take([job]);
    return true;
  }

  /** Runs claimed jobs, or keeps them until their start is durable, or gives them back when the node is stopping. */
  take(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) {
      if (!this.#accepting) this.claims.giveBack(job, this.#parts.releaseError);
      else if (job.begun) this.claims.start(job);
      else this.claims.keep(job, this.buffer);
    }
  }

  /** What is sent to find the one bad row, or waits for locked rows, goes alone. */
  #mayClaim({ suspect, overdue }: Parcel): boolean {
    return !suspect && !overdue;
  }

  /** Gives back what waits in the buffer, the newest first, `count` at most. */
  giveUp(count?: number): readonly ClaimedJob[] {
    const jobs = this.buffer.giveUp(count);
    for (const job of jobs) this.claims.giveBack(job, this.#parts.releaseError);
    return jobs;
  }

  #ahead(begin: readonly ClaimedJob[], beginNow: number): ExchangeRequest['ahead'] {
    // Also without a buffer of its own: a reconcile may have found what an earlier option claimed ahead.
    const isHeld = (key: string): boolean => this.claims.stands(key) || this.outbox.get(key) !== undefined;
    const forget = this.#deposed ? [] : this.#marks.takeForgotten(isHeld);
    if (this.#parts.bufferSize === 0 && begin.length === 0 && forget.length === 0) return undefined;
    return {
      beginNow,
      begin: begin.map(({ id, claimSeq }) => ({ id, claimSeq })),
      mark: begin.length > 0 ? this.#marks.next() : 0,
      forget,
    };
  }

  #request(
    parcel: Parcel,
    used: FloorsInUse,
    { want, mayAsk, ahead }: { want: number; mayAsk: boolean; ahead: ExchangeRequest['ahead'] },
  ): ExchangeRequest {
    const { bucket, handlers, priorityBoostMs, clock } = this.#parts;
    const { floors, readPast } = used;
    const nowMs = clock.monotonicMs();
    return {
      bucket: bucket.ref,
      settle: parcel.entries.map((entry) => settlementOf(entry, nowMs)),
      progress: this.progress.take(parcel, this.claims, this.outbox),
      want,
      suspect: mayAsk,
      ...(ahead ? { ahead } : {}),
      handlers,
      floors,
      ...(readPast === undefined ? {} : { readPast }),
      wait: parcel.overdue || this.#waitForLocks,
      priorityBoostMs,
    };
  }

  #answered(
    request: ExchangeRequest,
    parcel: Parcel,
    used: FloorsInUse,
    answer: ExchangeAnswer,
    begin: readonly ClaimedJob[],
  ): Consequences {
    if (answer.claimed.length > 0) this.#floors.claimed(used, answer.claimed);
    if (answer.owned && !mayHaveMore(request, answer)) this.#floors.short();
    this.outbox.passed(parcel);
    const skipped = new Set(answer.skipped);
    const lost = new Set(answer.lost);
    const consequences = this.#verdicts.apply(parcel.entries, (id) =>
      lost.has(id) ? 'lost' : skipped.has(id) ? 'skipped' : 'recorded',
    );
    for (const { id, claimSeq } of request.progress) {
      if (lost.has(id)) this.claims.abort(id, claimSeq, 'lost');
    }
    if (answer.claimed.length > 0) this.#sharing.claimed(answer.claimed, this.#parts.clock.monotonicMs());
    if (begin.length > 0) this.#begun(request, answer);
    this.take(answer.claimed);
    return consequences;
  }

  /** The start of what was claimed ahead is durable. */
  #begun({ ahead }: ExchangeRequest, { gone, owned }: ExchangeAnswer): void {
    const jobs = this.buffer.begun();
    if (!owned) return;
    const refused = new Set(gone);
    const begun = jobs.filter(({ id }) => !refused.has(id));
    if (begun.length > 0) this.#marks.written(ahead?.mark ?? 0, begun);
    else this.#marks.unsure(ahead?.mark ?? 0);
    for (const job of jobs) {
      // One that is to pause goes back; one that was canceled is lost, which the answer to that will say.
      if (!this.#accepting || refused.has(job.id)) this.claims.giveBack(job, this.#parts.releaseError);
      else this.claims.start(job);
    }
  }

  /** Returns how long to wait before the next turn. */
  async #failed(error: unknown, request: ExchangeRequest, parcel: Parcel): Promise<number> {
    const { faults, store, clock, bucket } = this.#parts;
    const kind = faultKindOf(error);
    if (parcel.overdue && kind === 'unavailable') {
      this.outbox.forgetSkips(parcel.entries);
      this.#waitAgainMs = clock.monotonicMs() + WAIT_AGAIN_AFTER_MS;
    }
    this.#failures += 1;
    const { reconcile, mend, delayMs } = respondTo(kind, this.#failures);
    faults.failed('exchange', error, delayMs, bucket.ref.id);
    this.buffer.putBack();
    if (!this.#accepting) this.giveUp();
    if (request.ahead) {
      this.#marks.putBack(request.ahead.forget);
      if (request.ahead.mark > 0) this.#marks.unsure(request.ahead.mark);
    }
    if (reconcile) this.#unsure = parcel.entries;
    if (mend === 'partitions') {
      await store
        .ensurePartitions(PARTITION_DAYS)
        .catch((cause: unknown) => void faults.failed('partitions', cause));
    }
    if (mend !== 'split') this.progress.putBack(request.progress);
    // A report of progress is not worth a second statement: the first try after a bad row goes without.
    else if (request.progress.length === 0) {
      if (parcel.entries.length === 0) return respondTo('fatal', this.#failures).delayMs;
      this.outbox.split(parcel, describeError(error).message);
    }
    return delayMs;
  }

  #land(): void {
    this.#inFlight = false;
    for (const resolve of this.#landings.splice(0)) resolve();
  }
}
