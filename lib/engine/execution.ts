import { type Clock } from '../cluster/clock.js';
import { type AbortKind, JobTimeoutError, RatchetAbort } from '../errors/execution-errors.js';
import { type RegisteredHandler } from '../jobs/handler-registry.js';
import { decodePayload } from '../jobs/payload-codec.js';
import { type ClaimedJob, type LateOutcome, type Settlement } from '../store/job-store.js';
import { runInJob } from './async-context.js';
import { type ExecutionContext } from './execution-context.js';
import { type ExecutionLog } from './execution-log.js';
import { type ExecutionOutcome } from './execution-outcome.js';
import { type ExecutionProgress } from './execution-progress.js';
import { type RunningExecution } from './running-execution.js';

/** The part of a timeout after which the handler's owner is warned. */
const SOFT_LIMIT = 0.8;
/** How long an aborted body may take before it is reported; the wait doubles from report to report. */
const IGNORED_FIRST_MS = 5_000;
/** The same for a node that stops. It waits a little longer for such bodies, once; afterwards there is no slot to keep. */
const IGNORED_AT_SHUTDOWN_MS = 400;

export interface ExecutionParts {
  readonly job: ClaimedJob;
  readonly handler: RegisteredHandler;
  readonly context: ExecutionContext;
  readonly progress: ExecutionProgress;
  readonly outcome: ExecutionOutcome;
  readonly timeoutMs: number | undefined;
  readonly clock: Clock;
  readonly log: ExecutionLog;
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
 */
export class Execution implements RunningExecution {
  readonly job: ClaimedJob;
  readonly settlement: Promise<Settlement>;
  readonly ended: Promise<LateOutcome | undefined>;
  readonly #parts: ExecutionParts;
  #state: 'open' | 'settled' | 'cut' = 'open';
  #settle!: (settlement: Settlement) => void;
  #bodyEnded = false;
  #cancelTimer: (() => void) | undefined;

  constructor(parts: ExecutionParts) {
    this.#parts = parts;
    this.job = parts.job;
    this.settlement = new Promise((resolve) => (this.#settle = resolve));
    this.#watchTimeout();
    this.ended = runInJob(parts.context, () => this.#run());
  }

  abort(kind: AbortKind): void {
    if (this.#bodyEnded) return;
    if (this.#state === 'open') {
      this.#state = 'cut';
      this.#parts.progress.stop();
    }
    this.#stop(kind);
  }

  recorded(settlement: Settlement): void {
    this.#parts.outcome.tell(settlement);
  }

  async #run(): Promise<LateOutcome | undefined> {
    const { job, handler, context } = this.#parts;
    let end: BodyEnd;
    try {
      const payload = await decodePayload(handler.definition, job.payload, job.version);
      context.payload = payload;
      end = { result: await handler.invoke(payload, context) };
    } catch (error) {
      end = { error };
    }
    this.#bodyEnded = true;
    this.#cancelTimer?.();
    if (this.#state !== 'open') return this.#late(end);
    this.#record(this.#settlementOf(end));
    return undefined;
  }

  /** The settlement, given at once; what comes after it is late. */
  #record(settlement: Settlement): void {
    const { progress } = this.#parts;
    this.#state = 'settled';
    progress.stop();
    this.#settle(progress.last === undefined ? settlement : { ...settlement, progress: progress.last });
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
    return { ...claim, outcome: context.snoozeMs === undefined ? 'succeeded' : 'snoozed' };
  }

  #watchTimeout(): void {
    const { timeoutMs, clock, log, handler } = this.#parts;
    if (timeoutMs === undefined) return;
    const softMs = Math.floor(timeoutMs * SOFT_LIMIT);
    this.#cancelTimer = clock.timer(
      softMs,
      () => {
        log.warn(`${handler.owner} has used ${softMs} ms of its timeout of ${timeoutMs} ms`);
        this.#cancelTimer = clock.timer(timeoutMs - softMs, () => this.#timedOut(timeoutMs), true);
      },
      true,
    );
  }

  #timedOut(timeoutMs: number): void {
    if (this.#state !== 'open') return;
    // Settled first: what listens on the signal runs within abort().
    this.#record(this.#parts.outcome.failed(new JobTimeoutError(this.job.name, timeoutMs)));
    this.#stop('timeout');
  }

  #stop(kind: AbortKind): void {
    const { context } = this.#parts;
    this.#cancelTimer?.();
    if (kind === 'shutdown') this.#reportAtShutdown();
    else this.#reportIfIgnored(kind, IGNORED_FIRST_MS, 0);
    // Listeners on the signal are part of the job, whoever canceled it.
    runInJob(context, () => context.abort(new RatchetAbort(kind, this.job.name, this.job.id)));
  }

  #reportAtShutdown(): void {
    const { clock, log, handler } = this.#parts;
    this.#cancelTimer = clock.timer(
      IGNORED_AT_SHUTDOWN_MS,
      () => log.warn(`${handler.owner} goes on although the node stops; let it stop at ctx.signal`),
      true,
    );
  }

  #reportIfIgnored(kind: AbortKind, inMs: number, sinceMs: number): void {
    const { clock, log, handler } = this.#parts;
    this.#cancelTimer = clock.timer(
      inMs,
      () => {
        const goneMs = sinceMs + inMs;
        log.warn(
          `${handler.owner} goes on ${Math.round(goneMs / 1_000)} s after its signal was aborted (${kind}) and keeps its slot; ` +
            'let it stop at ctx.signal',
        );
        this.#reportIfIgnored(kind, inMs * 2, goneMs);
      },
      true,
    );
  }
}
