import { Logger } from '@nestjs/common';
import { type Clock } from '../../cluster/clock.js';
import { type ClusterMessages } from '../../cluster/cluster-messages.js';
import { currentJob } from '../../engine/async-context.js';
import { faultDelayMs } from '../../engine/backoff-delay.js';
import { EngineFaults } from '../../engine/engine-faults.js';
import { type EngineSettings } from '../../engine/engine-settings.js';
import { guardedLogger, type LineLogger } from '../../engine/line-logger.js';
import {
  InvalidResultOptionError,
  ResultAbandonedError,
  ResultOfItselfError,
  ResultOfUncommittedError,
  ResultTimeoutError,
} from '../../errors/result-errors.js';
import { type JobArrival } from '../../intake/transaction-end.js';
import { abortReason, isAborted } from '../../jobs/abort-signal.js';
import { type TransactionalJobContext } from '../../jobs/job-context.js';
import { type EngineEvents } from '../../observability/engine-events.js';
import { inOwnContext } from '../../observability/own-context.js';
import { type EndedAnswer, type JobStore } from '../../store/job-store.js';
import { AbortListeners } from './abort-listeners.js';
import { AwaitAnnouncer } from './await-announcer.js';
import { AwaitedJobs, type Waiting } from './awaited-jobs.js';
import { type AboutJob, LaneWaits } from './lane-waits.js';
import { type Question, Questions } from './questions.js';
import { resultSettings, type ResultSettings } from './result-settings.js';

export interface ResultWaiterParts {
  readonly store: Pick<JobStore, 'ended'>;
  /** Of timeouts. */
  readonly clock: Clock;
  /** Of the questions, when that is another one: where the clock stands still, ends have to be noticed all the same. */
  readonly pacing?: Clock;
  readonly events: EngineEvents;
  readonly messages: Pick<ClusterMessages, 'onSignal' | 'signal'>;
  readonly settings: Pick<EngineSettings, 'lanes' | 'concurrency'>;
}

/** The job whose result is awaited, and what its handle knows of it. */
export interface AwaitedJob {
  readonly id: string;
  readonly about?: AboutJob | undefined;
  readonly within?: JobArrival | undefined;
}

/** What handles need. */
export type Results = Pick<ResultWaiter, 'result'>;

/** How long a result is awaited of a job that cannot be there yet (inside its own open transaction) before that is worth a line. */
const NOT_THERE_MS = 5_000;
const WHERE = 'the question for awaited results';

/**
 * Learns how awaited jobs ended, for all handles of the process: one statement asks for all of them ({@link Questions} says
 * when), on the application's connections. While nobody waits it does nothing and has no timer.
 *
 * What ends in this process, or is told by a signal, is asked for at once. That only hastens: what counts is the answer of the
 * database. While that is away they wait on. `close` leaves nobody waiting.
 */
export class ResultWaiter {
  readonly #logger: LineLogger = guardedLogger(new Logger('RatchetResults'));
  readonly #parts: ResultWaiterParts;
  readonly #pacing: Clock;
  readonly #faults: EngineFaults;
  readonly #laneWaits: LaneWaits;
  readonly #awaited = new AwaitedJobs();
  readonly #questions = new Questions();
  readonly #aborts = new AbortListeners();
  readonly #announcer: AwaitAnnouncer;
  /** Whose handles were waited for too long, and were said to be. */
  readonly #told = new WeakSet<JobArrival>();
  #timer: { readonly atMs: number; readonly cancel: () => void } | undefined;
  #asking = false;
  #failures = 0;
  #deaf: (() => void)[] = [];
  #deafToSignals: (() => void) | undefined;
  #closed = false;

  constructor(parts: ResultWaiterParts) {
    const { clock, pacing = clock, events, messages, settings } = parts;
    this.#parts = parts;
    this.#pacing = pacing;
    this.#faults = new EngineFaults(pacing, this.#logger, events);
    this.#announcer = new AwaitAnnouncer(pacing, messages);
    this.#laneWaits = new LaneWaits(settings, pacing, this.#logger);
  }

  /** The promise of `JobHandle.result()`. */
  result(job: AwaitedJob, options: unknown): Promise<unknown> {
    const result = new Promise((resolve, reject) => {
      // What throws in here rejects.
      const settings = resultSettings(options);
      const running = currentJob();
      if (running?.jobId === job.id) throw new ResultOfItselfError(job.id, running.name);
      if (running && job.within?.holds(job.id, connectionOf(running)))
        throw new ResultOfUncommittedError(job.id, running.name);
      if (this.#closed) throw new ResultAbandonedError(job.id);
      if (settings.signal && isAborted(settings.signal)) {
        const reason = abortReason(settings.signal) as Error;
        return reject(reason);
      }
      const left = running && this.#laneWaits.enter(running, job.about);
      inOwnContext(() => this.#wait(job, settings, { resolve, reject, left }));
    });
    // How a job ended is no news that should end a process: who does not look at the promise yet may look later.
    result.catch(() => undefined);
    return result;
  }

  /** Everybody who still waits is told so. Idempotent. */
  close(): Promise<void> {
    this.#closed = true;
    this.#awaited.abandon((id) => new ResultAbandonedError(id));
    this.#rest();
    this.#deafToSignals?.();
    this.#deafToSignals = undefined;
    return Promise.resolve();
  }

  #wait(
    { id, about, within }: AwaitedJob,
    { timeoutMs, signal }: ResultSettings,
    ends: Pick<Waiting, 'resolve' | 'reject'> & { readonly left: (() => void) | undefined },
  ): void {
    const undo: (() => void)[] = ends.left ? [ends.left] : [];
    const waiting: Waiting = { ...ends, name: about?.name, within, stop: () => undo.forEach((one) => one()) };
    const giveUp = (reason: () => unknown): void => {
      this.#awaited.remove(id, waiting);
      if (!this.#awaited.has(id)) this.#forget(id);
      waiting.reject(reason());
    };
    // First: what cannot be listened to must leave nothing behind.
    if (signal) undo.push(this.#listenTo(signal, ends.left, () => giveUp(() => abortReason(signal))));
    if (timeoutMs !== undefined) {
      undo.push(
        this.#parts.clock.timer(timeoutMs, () => giveUp(() => new ResultTimeoutError(id, timeoutMs))),
      );
    }
    if (within && !within.isOver) undo.push(this.#watch(id, within));
    this.#awaited.add(id, waiting);
    this.#questions.add(id, this.#pacing.monotonicMs());
    this.#announcer.add(id);
    this.#listen();
    this.#arm();
  }

  /** @throws InvalidResultOptionError */
  #listenTo(signal: AbortSignal, left: (() => void) | undefined, call: () => void): () => void {
    try {
      return this.#aborts.on(signal, call);
    } catch (cause) {
      left?.();
      const allowed = 'an AbortSignal that can be listened to';
      throw new InvalidResultOptionError('signal', signal, allowed, { cause });
    }
  }

  /** Says it, once, when a job is awaited where it cannot come to be before the waiting is over. */
  #watch(id: string, within: JobArrival): () => void {
    const say = (): void => {
      if (within.isOver || this.#told.has(within)) return;
      this.#told.add(within);
      this.#logger.warn(
        `the result of job ${id} has been awaited for ${String(NOT_THERE_MS / 1_000)} s while ${within.reason}`,
      );
    };
    return this.#pacing.timer(NOT_THERE_MS, say, true);
  }

  #listen(): void {
    if (this.#deaf.length > 0) return;
    const { events, messages } = this.#parts;
    this.#deaf = [
      events.on('settled', ({ jobId, outcome }) => {
        if (outcome === 'succeeded' || outcome === 'failed') this.#hurry(jobId);
      }),
      events.on('buried', ({ jobId }) => this.#hurry(jobId)),
      events.on('withdrawn', ({ jobId }) => this.#hurry(jobId)),
      events.on('canceled', ({ jobId }) => this.#hurry(jobId)),
    ];
    this.#deafToSignals ??= messages.onSignal((signal) => {
      // A running job that is canceled ends at once: only its handler goes on.
      if (signal.kind === 'ended' || signal.kind === 'cancel') this.#hurry(signal.jobId);
    });
  }

  /** It is told to have ended. */
  #hurry(id: string): void {
    if (!this.#questions.has(id)) return;
    this.#questions.hurry(id);
    this.#arm();
  }

  #forget(id: string): void {
    this.#questions.remove(id);
    this.#announcer.remove(id);
    if (this.#awaited.size === 0) this.#rest();
  }

  /** Nobody waits. */
  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const off of this.#deaf) off();
    this.#deaf = [];
    this.#announcer.clear();
    this.#faults.forget('');
  }

  #arm(): void {
    if (this.#asking || this.#closed) return;
    const nowMs = this.#pacing.monotonicMs();
    const dueInMs = this.#questions.dueInMs(nowMs);
    if (dueInMs === undefined) return;
    const atMs = nowMs + dueInMs;
    if (this.#timer && this.#timer.atMs <= atMs) return;
    this.#timer?.cancel();
    const cancel = this.#pacing.timer(dueInMs, () => inOwnContext(() => void this.#ask()));
    this.#timer = { atMs, cancel };
  }

  /** Never rejects. */
  async #ask(): Promise<void> {
    this.#timer = undefined;
    const question = this.#questions.next(this.#pacing.monotonicMs());
    if (question.ids.length > 0) {
      this.#asking = true;
      await this.#put(question);
      this.#asking = false;
    }
    this.#arm();
  }

  async #put(question: Question): Promise<void> {
    // Before the question is sent: a transaction that ends while it is on its way may have brought the job.
    const decided = new Map(question.ids.map((id) => [id, this.#awaited.decided(id)]));
    try {
      const answer = await this.#parts.store.ended(question.ids, question.everywhere);
      this.#failures = 0;
      this.#faults.worked(WHERE);
      this.#take(question, answer, decided);
    } catch (error) {
      if (this.#closed) return;
      this.#failures += 1;
      const delayMs = faultDelayMs(this.#failures);
      if (this.#awaited.size > 0) this.#faults.failed(WHERE, error, delayMs);
      this.#questions.failed(question, this.#pacing.monotonicMs(), delayMs);
    }
  }

  #take(
    question: Question,
    { ended, absent, postponed }: EndedAnswer,
    decided: ReadonlyMap<string, readonly Waiting[]>,
  ): void {
    for (const job of ended) {
      this.#awaited.end(job);
      this.#forget(job.id);
    }
    for (const id of postponed) this.#questions.hurry(id);
    for (const id of absent) {
      const them = decided.get(id) ?? [];
      if (them.length === 0) continue;
      if (question.everywhere) this.#miss(id, them);
      else this.#questions.doubt(id);
    }
    const ids = ended.map(({ id }) => id);
    this.#questions.answered(question, ids, this.#pacing.monotonicMs());
  }

  #miss(id: string, them: readonly Waiting[]): void {
    this.#awaited.miss(id, them);
    if (!this.#awaited.has(id)) this.#forget(id);
  }
}

/** Of the transaction that a job runs in. */
function connectionOf(running: Partial<TransactionalJobContext>): unknown {
  return running.manager?.queryRunner;
}
