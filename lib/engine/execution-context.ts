import { Logger, type LoggerService } from '@nestjs/common';
import { type EntityManager } from 'typeorm';
import { errorText } from '../errors/describe-error.js';
import { InvalidSnoozeError } from '../errors/execution-errors.js';
import { DURATION_WORDS } from '../jobs/backoff.js';
import { type ChildIntake, type ParentClaim } from '../jobs/child-intake.js';
import { type Duration, durationMs } from '../jobs/duration.js';
import { type ChildEnqueueOptions, type EnqueueArgs, type JobHandle } from '../jobs/enqueue-options.js';
import { JobContext, type TransactionalJobContext } from '../jobs/job-context.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type JobPriority, priorityOf } from '../jobs/priority.js';
import { type Recurrence, recurrenceOf } from '../jobs/recurrence.js';
import { type RecurringContext } from '../jobs/recurring-context.js';
import { type ClaimedJob } from '../store/job-store.js';
import { type ExecutionLog } from './execution-log.js';
import { type ExecutionProgress } from './execution-progress.js';
import { guardListeners } from './guarded-signal.js';
import { HandlerChildren } from './transactions/handler-children.js';

/** What the context of one execution is made of. */
export interface ExecutionContextParts {
  readonly job: ClaimedJob;
  readonly children: ChildIntake;
  readonly progress: ExecutionProgress;
  readonly log: ExecutionLog;
}

/**
 * The context of one execution: a `JobContext`, which is a `RecurringContext` when it stands for an occurrence. Cheap to make:
 * signal and logger come into being when a handler asks for them.
 */
export class ExecutionContext extends JobContext implements RecurringContext {
  /** Set once the payload has been decoded, before the handler's first line. */
  override payload: unknown = undefined;
  /** Set once the timeout runs. */
  override deadline: Date | undefined = undefined;
  readonly #parts: ExecutionContextParts;
  /** Null: there is none. */
  #recurrence: Recurrence | null | undefined;
  #controller: AbortController | undefined;
  #abortReason: Error | undefined;
  #logger: Logger | undefined;
  #snoozeMs: number | undefined;
  #warned = false;

  constructor(parts: ExecutionContextParts) {
    super();
    this.#parts = parts;
  }

  override get jobId(): string {
    return this.#parts.job.id;
  }
  override get name(): string {
    return this.#parts.job.name;
  }
  override get execution(): number {
    return this.#parts.job.executions;
  }
  override get failures(): number {
    return this.#parts.job.failures;
  }
  override get claimSeq(): string {
    return this.#parts.job.claimSeq;
  }
  override get lane(): string {
    return this.#parts.job.lane;
  }
  override get priority(): JobPriority {
    return priorityOf(this.#parts.job.priority);
  }
  override get tags(): readonly string[] {
    return this.#parts.job.tags;
  }
  override get metadata(): unknown {
    return this.#parts.job.metadata;
  }
  override get businessKey(): string | undefined {
    return this.#parts.job.businessKey;
  }
  override get scheduledFor(): Date {
    return this.recurrence?.scheduledFor ?? this.#parts.job.scheduledAt;
  }
  override get recurrence(): Recurrence | undefined {
    if (this.#recurrence === undefined) this.#recurrence = recurrenceOf(this.#parts.job.metadata) ?? null;
    return this.#recurrence ?? undefined;
  }
  /** Only jobs of schedules have one, and only methods of these see it. */
  get scheduleId(): string {
    return this.recurrence?.scheduleId ?? '';
  }
  get previous(): Date | undefined {
    return this.recurrence?.previous;
  }
  get missed(): number {
    return this.recurrence?.missed ?? 0;
  }

  override get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      guardListeners(this.#controller.signal, (error) =>
        this.#parts.log.error(
          `a listener of its ctx.signal failed; the outcome of the job is not touched by it\n${errorText(error)}`,
        ),
      );
      if (this.#abortReason) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  override get logger(): LoggerService {
    return (this.#logger ??= new Logger(`RatchetJob ${this.name} ${this.jobId}`));
  }

  /** The wish of the last `snooze`; undefined for none. */
  get snoozeMs(): number | undefined {
    return this.#snoozeMs;
  }

  override progress(value: unknown): void {
    this.#parts.progress.set(value);
  }

  override snooze(delay: Duration): void {
    const ms = durationMs(delay);
    if (ms === undefined) throw new InvalidSnoozeError(this.name, delay, DURATION_WORDS);
    this.#snoozeMs = ms;
    if (this.#parts.progress.stopped) this.#warnOfLateSnooze();
  }

  override async enqueue<In, Out, Result>(
    definition: JobDefinition<In, Out, Result>,
    ...[payload, options = {}]: EnqueueArgs<NoInfer<In>, ChildEnqueueOptions>
  ): Promise<JobHandle<Result>> {
    return (await this.#parts.children.enqueueChild(
      this.parent(),
      definition,
      payload,
      options,
    )) as JobHandle<Result>;
  }

  /** On whose behalf children are enqueued. */
  protected parent(): ParentClaim {
    return { id: this.jobId, claimSeq: this.claimSeq };
  }

  /** Not thrown: the body may be cleaning up after its signal was aborted. */
  #warnOfLateSnooze(): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#parts.log.warn(
      'ctx.snooze() came after the execution had ended or was aborted, and does nothing; await what the handler starts',
    );
  }

  /** As that of the signal, which need not come into being for it. */
  throwIfAborted(): void {
    if (this.#abortReason) throw this.#abortReason;
  }

  /** Aborts the signal, also one that nobody has asked for yet. */
  abort(reason: Error): void {
    this.#abortReason ??= reason;
    this.#controller?.abort(reason);
  }
}

/** The context of an execution that runs in a transaction. */
export class TransactionalExecutionContext extends ExecutionContext implements TransactionalJobContext {
  /** Set once the transaction has begun, before the handler's first line. */
  manager!: EntityManager;
  readonly #children = new HandlerChildren();

  override enqueue<In, Out, Result>(
    definition: JobDefinition<In, Out, Result>,
    ...rest: EnqueueArgs<NoInfer<In>, ChildEnqueueOptions>
  ): Promise<JobHandle<Result>> {
    return this.#children.watch(super.enqueue(definition, ...rest));
  }

  /** Once the handler has ended and its children are in: the first refusal that it did not look at. */
  missedRefusal(): Promise<{ readonly error: unknown } | undefined> {
    return this.#children.missedRefusal();
  }

  protected override parent(): ParentClaim {
    return { ...super.parent(), transaction: this.manager };
  }
}
