import { type Clock } from '../cluster/clock.js';
import { describeError } from '../errors/describe-error.js';
import { type AbortKind, ClaimLostError, JobTimeoutError, RatchetAbort } from '../errors/execution-errors.js';
import { type RegisteredHandler } from '../jobs/handler-registry.js';
import { decodePayload } from '../jobs/payload-codec.js';
import { type ClaimedJob, type LateOutcome, type Settlement } from '../store/job-store.js';
import { faultKindOf } from '../store/store-fault.js';
import { runInJob } from './async-context.js';
import { type ExecutionContext, type TransactionalExecutionContext } from './execution-context.js';
import { type ExecutionLog } from './execution-log.js';
import { type ExecutionOutcome } from './execution-outcome.js';
import { type ExecutionProgress } from './execution-progress.js';
import { ExecutionWatch } from './execution-watch.js';
import { CalledOff } from './patience.js';
import { type RunningExecution } from './running-execution.js';
import { type HandlerTransaction, type SettlementWithin } from './transactions/handler-transaction.js';

/** A job whose transaction could not begin, because the database or its pool was out of reach, comes back after this long. */
const NOT_BEGUN_DELAY_MS = 5_000;

export interface ExecutionParts {
  readonly job: ClaimedJob;
  readonly handler: RegisteredHandler;
  readonly context: ExecutionContext;
  readonly progress: ExecutionProgress;
  readonly outcome: ExecutionOutcome;
  readonly timeoutMs: number | undefined;
  readonly clock: Clock;
  readonly log: ExecutionLog;
  /** The handler runs in a transaction, which records its outcome too. */
  readonly transactional?: {
    readonly context: TransactionalExecutionContext;
    /** `undefined`: the claim no longer stands. */
    readonly begin: (signal: AbortSignal) => Promise<HandlerTransaction | undefined>;
  };
}

type BodyEnd = { readonly result: unknown } | { readonly error: unknown };

/**
 * One attempt at one job.
 *
 * - `open`: the body runs and its end will be the settlement.
 * - `settled`: the settlement is given: by the body's end, or by the timeout while the body goes on.
 * - `cut`: aborted before it was settled; nothing will be recorded under its claim.
 *
 * Whatever the body does once it is no longer `open` is a late outcome. The slot is free when the body ends, not before.
 *
 * In a transaction a success is settled by the transaction's own last statement: while that may be under way (`commit` is
 * `pending`) nothing cuts the execution off any more, and the row's lock decides. Until then the body counts as running, since what
 * it left behind is waited for. Everything else rolls back first, and is then settled as ever; what is aborted or timed out is
 * rolled back at once, however long its body goes on: it must not keep its locks from the next execution.
 */
export class Execution implements RunningExecution {
  readonly job: ClaimedJob;
  readonly settlement: Promise<Settlement>;
  readonly ended: Promise<LateOutcome | undefined>;
  readonly #parts: ExecutionParts;
  #state: 'open' | 'settled' | 'cut' = 'open';
  #settle!: (settlement: Settlement) => void;
  /** `waiting`: for its transaction. */
  #body: 'waiting' | 'running' | 'ended';
  #commit: RunningExecution['commit'];
  #transaction: HandlerTransaction | undefined;
  readonly #beganMs: number;
  readonly #watch: ExecutionWatch;

  constructor(parts: ExecutionParts) {
    this.#parts = parts;
    this.job = parts.job;
    this.#commit = parts.transactional && 'none';
    this.#body = 'waiting';
    this.#beganMs = parts.clock.monotonicMs();
    this.#watch = new ExecutionWatch(parts.clock, parts.log, parts.handler.owner);
    this.settlement = new Promise((resolve) => (this.#settle = resolve));
    if (!parts.transactional) this.#bodyBegins();
    this.ended = runInJob(parts.context, () => this.#run());
  }

  get commit(): RunningExecution['commit'] {
    return this.#commit;
  }

  abort(kind: AbortKind): void {
    if (this.#body === 'ended') return;
    this.#cut();
    this.#stop(kind);
  }

  handedBack(): void {
    // Others end as late outcomes, which they may well be; a transaction must not be committed.
    if (this.#parts.transactional && this.#body !== 'ended') this.#cut();
  }

  recorded(settlement: Settlement): void {
    this.#parts.outcome.tell(settlement);
  }

  async #run(): Promise<LateOutcome | undefined> {
    if (this.#parts.transactional) return this.#runWithin(this.#parts.transactional);
    return this.#ended(await this.#invoke());
  }

  async #invoke(): Promise<BodyEnd> {
    const { job, handler, context } = this.#parts;
    let end: BodyEnd;
    try {
      const payload = await decodePayload(handler.definition, job.payload, job.version);
      // A schema or an upcast may end after the timeout, or after a cancel: too late to begin.
      context.throwIfAborted();
      context.payload = payload;
      end = { result: await handler.invoke(payload, context) };
    } catch (error) {
      end = { error };
    }
    if (!this.#transaction) this.#bodyDone();
    return end;
  }

  #ended(end: BodyEnd): LateOutcome | undefined {
    if (this.#state !== 'open') return this.#late(end);
    this.#record(this.#settlementOf(end));
    return undefined;
  }

  async #runWithin({
    begin,
    context,
  }: NonNullable<ExecutionParts['transactional']>): Promise<LateOutcome | undefined> {
    const transaction = await this.#begun(begin);
    if (!transaction) return undefined;
    this.#transaction = transaction;
    context.manager = transaction.manager;
    if (transaction.isStrict) this.#parts.progress.keep();
    this.#bodyBegins();
    const end = await this.#invoke();
    if (this.#state === 'open' && 'result' in end) return this.#complete(end, transaction, context);
    return this.#undo(end, transaction);
  }

  /** Undefined: there is nothing to run. */
  async #begun(
    begin: (signal: AbortSignal) => Promise<HandlerTransaction | undefined>,
  ): Promise<HandlerTransaction | undefined> {
    const { context, outcome, log } = this.#parts;
    try {
      const transaction = await begin(context.signal);
      if (transaction && this.#state === 'open') return transaction;
      await transaction?.rollBack();
      this.#cut();
    } catch (error) {
      if (this.#state === 'open' && isOutage(error)) {
        log.warn(
          `its transaction could not begin, it is given back for ${NOT_BEGUN_DELAY_MS / 1_000} s: ${describeError(error).message}`,
        );
        this.#record(outcome.snoozed(NOT_BEGUN_DELAY_MS));
      } else if (this.#state === 'open') this.#record(outcome.failed(error));
    }
    this.#bodyDone();
    return undefined;
  }

  async #complete(
    end: BodyEnd,
    transaction: HandlerTransaction,
    context: TransactionalExecutionContext,
  ): Promise<LateOutcome | undefined> {
    const { progress, outcome } = this.#parts;
    let settlement = this.#settlementOf(end);
    const missed = await unlessAborted(context.signal, context.missedRefusal());
    if (missed || this.#isCut()) return this.#undo(missed ?? end, transaction);
    try {
      const completed = await transaction.complete(() => {
        if (this.#isCut()) throw new ClaimLostError(this.job.id, this.job.claimSeq);
        this.#commit = 'pending';
        this.#bodyDone();
        progress.stop();
        settlement = this.#withProgress(settlement);
        return this.#withRun(settlement as SettlementWithin);
      });
      this.#commit = completed === 'recorded' ? 'done' : 'none';
      if (completed === 'recorded') {
        this.#state = 'settled';
        this.#settle(settlement);
        return undefined;
      }
      if (completed !== 'lost') return this.#givenBack(completed.excused);
    } catch (error) {
      // Nobody will know any more, here: it stays pending.
      if (error instanceof CalledOff) return undefined;
      this.#commit = 'none';
      this.#bodyDone();
      if (this.#isCut()) return this.#late(end);
      this.#record(outcome.failed(error));
      return undefined;
    }
    this.#cut();
    return this.#late(end);
  }

  async #undo(end: BodyEnd, transaction: HandlerTransaction): Promise<LateOutcome | undefined> {
    this.#bodyDone();
    // Before its failure is recorded: the next execution must not wait for what this one holds.
    await transaction.rollBack();
    this.#commit = 'none';
    if (this.#state === 'open' && 'error' in end && (await transaction.excuses(end.error)))
      return this.#givenBack(end.error);
    return this.#ended(end);
  }

  /** Not the handler's doing: uncharged, and due at once. */
  #givenBack(cause: unknown): undefined {
    const { outcome, log } = this.#parts;
    log.warn(`it is given back, uncharged: ${describeError(cause).message}`);
    this.#record(outcome.released(cause));
  }

  #bodyBegins(): void {
    this.#body = 'running';
    const { timeoutMs, clock, context } = this.#parts;
    if (timeoutMs === undefined) return;
    context.deadline = new Date(clock.now().getTime() + timeoutMs);
    this.#watch.timeout(timeoutMs, () => this.#timedOut(timeoutMs));
  }

  /** A method, since TypeScript takes a state that was looked at before an `await` for granted. */
  #isCut(): boolean {
    return this.#state !== 'open';
  }

  /** There is no body any more, or will never be one. */
  #bodyDone(): void {
    this.#body = 'ended';
    this.#watch.stop();
  }

  #cut(): void {
    if (this.#state !== 'open') return;
    this.#state = 'cut';
    this.#parts.progress.stop();
  }

  /** The settlement, given at once; what comes after it is late. */
  #record(settlement: Settlement): void {
    const { progress } = this.#parts;
    this.#state = 'settled';
    progress.stop();
    this.#settle(this.#withProgress(settlement));
  }

  #withProgress(settlement: Settlement): Settlement {
    const { last } = this.#parts.progress;
    return last === undefined ? settlement : { ...settlement, progress: last };
  }

  /** With the time since it began, where the database does not know it. */
  #withRun(settlement: SettlementWithin): SettlementWithin {
    const { job, clock } = this.#parts;
    return job.begun ? settlement : { ...settlement, ranMs: clock.monotonicMs() - this.#beganMs };
  }

  #settlementOf(end: BodyEnd): Settlement {
    const { outcome, context } = this.#parts;
    if ('error' in end) return outcome.failed(end.error);
    return context.snoozeMs === undefined ? outcome.succeeded(end.result) : outcome.snoozed(context.snoozeMs);
  }

  /** For the closed execution row; the job is past it, so nobody is asked for a retry. */
  #late(end: BodyEnd): LateOutcome {
    const { job, outcome, context } = this.#parts;
    const claim = { jobId: job.id, claimSeq: job.claimSeq };
    if ('error' in end) return { ...claim, outcome: 'failed', error: outcome.errorOf(end.error) };
    // It returned, and nothing of it was kept.
    if (this.#parts.transactional)
      return {
        ...claim,
        outcome: 'failed',
        error: outcome.errorOf(new ClaimLostError(job.id, job.claimSeq)),
      };
    return { ...claim, outcome: context.snoozeMs === undefined ? 'succeeded' : 'snoozed' };
  }

  #timedOut(timeoutMs: number): void {
    if (this.#state !== 'open') return;
    // Settled first: what listens on the signal runs within abort().
    this.#record(this.#parts.outcome.failed(new JobTimeoutError(this.job.name, timeoutMs)));
    this.#stop('timeout');
  }

  #stop(kind: AbortKind): void {
    const { context } = this.#parts;
    this.#watch.stop();
    // One that waits for its transaction ignores nothing: it never begins.
    if (this.#body === 'running') this.#watch.aborted(kind);
    // Listeners on the signal are part of the job, whoever canceled it.
    const reason = new RatchetAbort(kind, this.job.name, this.job.id);
    runInJob(context, () => context.abort(reason));
    void this.#transaction?.rollBack(reason);
  }
}

/** Undefined when it was aborted first. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const aborted = (): void => resolve(undefined);
    signal.addEventListener('abort', aborted, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}

/** No fault of the handler's. */
function isOutage(error: unknown): boolean {
  return ['unavailable', 'unknown', 'rolled_back'].includes(faultKindOf(error));
}
