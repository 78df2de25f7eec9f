import { lanesOfNode } from '../buckets/lanes-of-node.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type EngineSettings } from '../engine/engine-settings.js';
import { RatchetRuntime } from '../engine/runtime.js';
import { type HandlerTransactions } from '../engine/transactions/handler-transactions.js';
import { type ChildIntake } from '../jobs/child-intake.js';
import { type Duration, durationMs } from '../jobs/duration.js';
import { type HandlerRegistry } from '../jobs/handler-registry.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type RetryPolicy } from '../jobs/retry-policy.js';
import { DURATION_WORDS } from '../jobs/backoff.js';
import { jobInfo } from '../scheduler/job-info.js';
import { type HandlerFilter } from '../store/job-store.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type ClaimAnswer, type JobSource } from './job-source.js';
import { ManualRuntime } from './manual-runtime.js';
import { type EnqueuedJob, type RanJob } from './ran-job.js';
import { TestSchedules } from './schedules/test-schedules.js';
import { eventLoopTurns } from './settled.js';
import { TestExecutions } from './test-executions.js';
import { EndlessDrainError, InvalidTravelError, NoTesterError } from './testing-errors.js';
import { type VirtualClock } from './virtual-clock.js';
import { nothingDue, obstacleOf, type RunnerFacts } from './nothing-due.js';

export interface RatchetTesterParts {
  readonly source: JobSource;
  readonly clock: VirtualClock;
  readonly settings: EngineSettings;
  readonly handlers: HandlerRegistry;
  readonly retryPolicy: RetryPolicy;
  readonly children: ChildIntake;
  /** Undefined: there is no database. */
  readonly transactions?: HandlerTransactions;
  readonly messages: ClusterMessages;
  readonly events: EngineEvents;
  /** The node that events name. */
  readonly nodeId: string;
}

/** What a `TestingModule` or an `INestApplication` has. */
export interface AppUnderTest {
  get<T>(token: abstract new (...parameters: never[]) => T, options: { strict: false }): T;
}

/** What the context of an occurrence says. */
export interface FireOptions {
  /** `ctx.scheduledFor`. @defaultValue now */
  readonly at?: Date;
  /** `ctx.previous`. @defaultValue the last occurrence that became a job */
  readonly previous?: Date;
  /** `ctx.missed`. @defaultValue `0` */
  readonly missed?: number;
}

export interface DrainJobsOptions {
  /** More executions than this are taken for an endless loop. @defaultValue `1000` */
  readonly limit?: number;
  /** Moves the clock from due time to due time for so long: retries and delayed jobs run too. @defaultValue none: the clock stands */
  readonly within?: Duration;
}

/**
 * Runs the jobs of an application under test: one at a time, and only when it is told to. The same for
 * `RatchetTestingModule` (a list of jobs, no database) and `manualRatchet` (the app's real database).
 *
 * The executor, the payload codec and the retry policy are the engine's own. Timeouts and delays pass when
 * {@link RatchetTester.advance} moves the clock. Lanes do not run side by side: the default lane goes first, then the
 * others; within a lane the order is the engine's.
 *
 * @example
 * ```ts
 * const tester = RatchetTester.of(app);
 * await app.get(SignUp).register('ana@example.com');
 * await tester.advance('1d');
 * expect(await tester.runNext(SendReminder)).toMatchObject({ outcome: 'succeeded' });
 * ```
 */
export class RatchetTester {
  readonly #parts: RatchetTesterParts;
  readonly #executions: TestExecutions;
  readonly #schedules: TestSchedules;
  readonly #deaf: () => void;
  /** The last thing asked of the source: one at a time, as a bucket has one exchange in flight. */
  #tail: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(parts: RatchetTesterParts) {
    this.#parts = parts;
    this.#executions = new TestExecutions(parts, (work) => this.#turn(work));
    this.#schedules = new TestSchedules(parts);
    this.#deaf = parts.messages.onSignal((signal) => {
      if (signal.kind === 'cancel') this.#executions.cut(signal.jobId, signal.claimSeq, 'canceled');
    });
  }

  /**
   * The tester of an application.
   *
   * @param app - what `Test.createTestingModule(…).compile()` or `createNestApplication()` returned.
   * @throws NoTesterError when its engine runs by itself.
   */
  static of(app: AppUnderTest): RatchetTester {
    let runtime: RatchetRuntime | undefined;
    try {
      runtime = app.get(RatchetRuntime, { strict: false });
    } catch {
      // Nest knows no such provider.
    }
    if (!(runtime instanceof ManualRuntime)) throw new NoTesterError();
    return runtime.tester;
  }

  /** Executions whose handlers have not returned. */
  get running(): number {
    return this.#executions.running;
  }

  /**
   * The jobs of a definition that wait to be run, due or not, in the order in which this application enqueued them.
   *
   * @param definition - all jobs when left out.
   */
  async enqueued<In = unknown, Out = unknown, Result = unknown>(
    definition?: JobDefinition<In, Out, Result>,
  ): Promise<EnqueuedJob<In>[]> {
    const jobs = await this.#parts.source.jobs();
    return jobs
      .filter(({ status, name }) => status === 'pending' && (!definition || name === definition.name))
      .map((job) => jobInfo(job) as EnqueuedJob<In>);
  }

  /**
   * Runs the job that is due and first in order, and waits for its end. A handler that throws does not make it reject:
   * that is an outcome.
   *
   * @param definition - the next one of this definition.
   * @throws NothingDueError when there is none: its message says which jobs wait, and for what.
   */
  async runNext<In = unknown, Out = unknown, Result = unknown>(
    definition?: JobDefinition<In, Out, Result>,
  ): Promise<RanJob<In, Result>> {
    const started = await this.#start(definition?.name);
    if (started.ran) return (await started.ran) as RanJob<In, Result>;
    throw nothingDue(await this.#parts.source.jobs(), await this.#facts(), definition?.name);
  }

  /**
   * Runs jobs, one after another, until none is due; what they enqueue runs too.
   *
   * @returns what ran, in order; none is fine.
   * @throws EndlessDrainError after `limit` executions.
   *
   * @example
   * // All retries, down to the dead letter.
   * await tester.drain({ within: '1d' });
   */
  async drain({ limit = 1_000, within = 0 }: DrainJobsOptions = {}): Promise<RanJob[]> {
    const ran: RanJob[] = [];
    let leftMs = travelMs('drain.within', within);
    for (;;) {
      if (ran.length >= limit && (await this.#isAnyDue())) throw new EndlessDrainError(limit, busiest(ran));
      const started = await this.#start();
      if (started.ran) {
        ran.push(await started.ran);
        continue;
      }
      const { fired, nextInMs = Infinity } = leftMs > 0 ? await this.#look() : NOTHING;
      if (fired) continue;
      const waitMs = Math.ceil(Math.min(started.nextDueInMs ?? Infinity, nextInMs));
      if (waitMs > leftMs) return ran;
      leftMs -= waitMs;
      await this.#advance(waitMs);
    }
  }

  /**
   * An occurrence of a recurring schedule now, whatever its plan says, and also while a job of it is live: a job that `runNext` or
   * `drain` runs. With what the context shall say it is one beside the plan, which `RecurringScheduler.occurrences` does not know.
   *
   * @param scheduleId - of a `@Recurring` or of `RecurringScheduler.create`, of scope `node` too.
   * @throws RecurringScheduleNotFoundError
   *
   * @example
   * await tester.fire('daily-digest', { at: new Date('2027-03-28T06:00:00Z'), missed: 3 });
   * expect(await tester.runNext()).toMatchObject({ outcome: 'succeeded' });
   */
  async fire(scheduleId: string, { at, previous, missed }: FireOptions = {}): Promise<EnqueuedJob> {
    const id = await this.#turn(() =>
      this.#schedules.fire(scheduleId, {
        ...(at ? { scheduledFor: at } : {}),
        ...(previous ? { previous } : {}),
        ...(missed === undefined ? {} : { missed }),
      }),
    );
    const job = (await this.#parts.source.jobs()).find((one) => one.id === id);
    if (!job) throw new TypeError(`the job of schedule ${scheduleId} is not there`);
    return jobInfo(job);
  }

  /**
   * Moves the clock on. Timeouts and progress reports of running handlers happen on the way; jobs that become due wait for
   * `runNext` or `drain`. Recurring
   * schedules fire on the way, each occurrence at its time.
   *
   * @throws InvalidTravelError
   *
   * @example
   * // A handler that hangs meets its timeout.
   * const run = tester.runNext(SlowReport);
   * await tester.advance('2m');
   * expect((await run).outcome).toBe('retried');
   */
  async advance(duration: Duration): Promise<void> {
    await this.#advance(travelMs('advance', duration));
  }

  /**
   * Moves the clock on to a date.
   *
   * @throws InvalidTravelError when that date has passed.
   */
  async travelTo(date: Date): Promise<void> {
    const ms = await this.#parts.source.until(date);
    if (!(ms >= 0)) {
      const now = await this.now();
      throw new InvalidTravelError(
        'travelTo',
        date,
        `a Date from now (${now.toISOString()}) on: time only moves on`,
      );
    }
    await this.#advance(ms);
  }

  /** The time by which jobs are due: it moves with {@link RatchetTester.advance}; on a database it also passes. */
  async now(): Promise<Date> {
    return this.#parts.source.now();
  }

  /** Brings the annotated schedules of the application to where its schedules are. `app.init()` calls it. */
  async register(): Promise<void> {
    await this.#turn(() => this.#schedules.register());
  }

  /** Gives back what still runs and aborts it. `app.close()` calls it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#deaf();
    await this.#executions.release();
    await this.#turn(() => this.#parts.source.close());
  }

  /** Claims in one turn with the start: who moves the clock behind it meets a running handler. */
  #start(name?: string): Promise<{ ran?: Promise<RanJob>; nextDueInMs: number | undefined }> {
    return this.#turn(async () => {
      await this.#schedules.promote();
      const { job, nextDueInMs } = await this.#claim(name);
      if (!job) return { nextDueInMs };
      await this.#executions.requireRunnable(job);
      return { ran: this.#executions.start(job), nextDueInMs };
    });
  }

  #claim(name: string | undefined): Promise<ClaimAnswer> {
    const { handlers: registry } = this.#parts;
    const ofNode = registry.schedules().flatMap(({ jobName }) => registry.find(jobName) ?? []);
    const names = new Map(
      [...registry.all(), ...ofNode].map(({ definition }) => [definition.name, definition]),
    );
    const handlers: HandlerFilter[] = [...names.values()]
      .map(({ name: known, version }) => ({ name: known, version }))
      .filter((handler) => name === undefined || handler.name === name);
    return this.#parts.source.claim({ lanes: this.#lanes(), handlers });
  }

  #lanes(): string[] {
    const { handlers, settings } = this.#parts;
    // Those of scope `node` have no lane to be served in, and here their runs are jobs as well.
    const ofNode = handlers.schedules().map(({ spec }) => spec.template.lane);
    return lanesOfNode(settings, [...handlers.lanes(), ...ofNode]).map(({ lane }) => lane);
  }

  async #isAnyDue(): Promise<boolean> {
    const facts = await this.#facts();
    return (await this.#parts.source.jobs()).some((job) => obstacleOf(job, facts) === undefined);
  }

  async #facts(): Promise<RunnerFacts> {
    return { now: await this.now(), lanes: this.#lanes(), handlers: this.#parts.handlers };
  }

  /** From occurrence to occurrence of recurring schedules. */
  async #advance(ms: number): Promise<void> {
    let leftMs = ms;
    for (let steps = 0; steps < MOST_STEPS; steps += 1) {
      const { nextInMs = Infinity } = await this.#look();
      if (nextInMs > leftMs) return await this.#move(leftMs);
      const stepMs = Math.max(1, nextInMs);
      await this.#move(stepMs);
      leftMs -= stepMs;
    }
    await this.#move(Math.max(0, leftMs));
    await this.#look();
  }

  async #move(ms: number): Promise<void> {
    await eventLoopTurns();
    await this.#turn(async () => {
      await this.#parts.source.travel(ms);
      this.#parts.clock.advance(ms);
    });
    await eventLoopTurns();
  }

  #look(): ReturnType<TestSchedules['look']> {
    return this.#turn(() => this.#schedules.look());
  }

  #turn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#tail.then(work, work);
    this.#tail = turn;
    return turn;
  }
}

/** Occurrences that one journey stops at; those beyond them fire at its end. */
const MOST_STEPS = 250;
const NOTHING: Awaited<ReturnType<TestSchedules['look']>> = { fired: false };

function travelMs(call: string, duration: Duration): number {
  const ms = durationMs(duration);
  if (ms === undefined) throw new InvalidTravelError(call, duration, DURATION_WORDS);
  return ms;
}

function busiest(ran: readonly RanJob[]): string {
  const counts = new Map<string, number>();
  for (const { name } of ran) counts.set(name, (counts.get(name) ?? 0) + 1);
  const [most] = [...counts].sort(([, one], [, other]) => other - one);
  return most ? `${most[0]} (${most[1]})` : 'no job';
}
