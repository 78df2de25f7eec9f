import { Logger, type LoggerService } from '@nestjs/common';
import { errorText } from '../errors/describe-error.js';
import { InvalidSnoozeError } from '../errors/execution-errors.js';
import { DURATION_WORDS } from '../jobs/backoff.js';
import { type ChildIntake } from '../jobs/child-intake.js';
import { type Duration, durationMs } from '../jobs/duration.js';
import { type EnqueueArgs, type JobHandle } from '../jobs/enqueue-options.js';
import { JobContext } from '../jobs/job-context.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type JobPriority, priorityOf } from '../jobs/priority.js';
import { type ClaimedJob } from '../store/job-store.js';
import { type ExecutionLog } from './execution-log.js';
import { type ExecutionProgress } from './execution-progress.js';
import { guardListeners } from './guarded-signal.js';

/** What the context of one execution is made of. */
export interface ExecutionContextParts {
  readonly job: ClaimedJob;
  readonly children: ChildIntake;
  readonly progress: ExecutionProgress;
  readonly log: ExecutionLog;
  readonly deadline: Date | undefined;
}

/** The `JobContext` of one execution. Cheap to make: signal and logger come into being when a handler asks for them. */
export class ExecutionContext extends JobContext {
  /** Set once the payload has been decoded, before the handler's first line. */
  override payload: unknown = undefined;
  override readonly deadline: Date | undefined;
  readonly #parts: ExecutionContextParts;
  #controller: AbortController | undefined;
  #abortReason: Error | undefined;
  #logger: Logger | undefined;
  #snoozeMs: number | undefined;
  #warned = false;

  constructor(parts: ExecutionContextParts) {
    super();
    this.#parts = parts;
    this.deadline = parts.deadline;
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
    return this.#parts.job.scheduledAt;
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
    ...[payload, options = {}]: EnqueueArgs<NoInfer<In>>
  ): Promise<JobHandle<Result>> {
    const parent = { id: this.jobId, claimSeq: this.claimSeq };
    return (await this.#parts.children.enqueueChild(
      parent,
      definition,
      payload,
      options,
    )) as JobHandle<Result>;
  }

  /** Not thrown: the body may be cleaning up after its signal was aborted. */
  #warnOfLateSnooze(): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#parts.log.warn(
      'ctx.snooze() came after the execution had ended or was aborted, and does nothing; await what the handler starts',
    );
  }

  /** Aborts the signal, also one that nobody has asked for yet. */
  abort(reason: Error): void {
    this.#abortReason ??= reason;
    this.#controller?.abort(reason);
  }
}
