import { type LoggerService } from '@nestjs/common';
import { type EntityManager } from 'typeorm';
import { type Duration } from './duration.js';
import { type ChildEnqueueOptions, type EnqueueArgs, type JobHandle } from './enqueue-options.js';
import { type JobDefinition } from './job-definition.js';
import { type JobPriority } from './priority.js';
import { type Recurrence } from './recurrence.js';

/**
 * What a handler knows of its execution. An abstract class, not an interface: an interface in a decorated signature fails
 * to load under swc with ESM.
 *
 * @typeParam P - the payload that the handler receives.
 */
export abstract class JobContext<out P = unknown> {
  abstract readonly jobId: string;
  abstract readonly name: string;
  abstract readonly payload: P;
  /** 1 for the first execution; crashes and releases count too. */
  abstract readonly execution: number;
  /** Failures charged so far. */
  abstract readonly failures: number;
  /** The fence of this claim: pass it on to systems that can reject a stale writer. */
  abstract readonly claimSeq: string;
  abstract readonly lane: string;
  abstract readonly priority: JobPriority;
  abstract readonly tags: readonly string[];
  abstract readonly metadata: unknown;
  abstract readonly businessKey: string | undefined;
  /** When it was to run; of an occurrence of a recurring schedule the planned time, however often it was tried since. */
  abstract readonly scheduledFor: Date;
  /** Which occurrence of a recurring schedule it stands for; `undefined` for a job that nobody scheduled. */
  abstract readonly recurrence: Recurrence | undefined;
  /** When the timeout strikes, if the job has one. */
  abstract readonly deadline: Date | undefined;
  /** Aborted with a `RatchetAbort` (see its `reason`) on timeout, cancel, shutdown, or when the claim was lost. */
  abstract readonly signal: AbortSignal;
  /** Nest-style logger whose lines carry the job. */
  abstract readonly logger: LoggerService;
  /** Keeps the last value; written at most once a second. JSON. Never throws for a lost claim. */
  abstract progress(value: unknown): void;
  /** Ends this execution, uncharged, and runs the job again after `delay`. The last call wins; a throw after it is a failure. */
  abstract snooze(delay: Duration): void;
  /**
   * Enqueues a child of this job: it happens only while this execution holds its claim, and the child records its parent.
   * (`JobScheduler.enqueue` inside a handler is an independent enqueue.)
   *
   * @throws ClaimLostError when this execution no longer owns the job.
   */
  abstract enqueue<In, Out, Result>(
    definition: JobDefinition<In, Out, Result>,
    ...args: EnqueueArgs<NoInfer<In>, ChildEnqueueOptions>
  ): Promise<JobHandle<Result>>;
}

/**
 * What a handler with `transactional` knows of its execution. Its children ({@link JobContext.enqueue}) are enqueued in its
 * transaction, unless the call names another.
 *
 * @typeParam P - the payload that the handler receives.
 */
export abstract class TransactionalJobContext<out P = unknown> extends JobContext<P> {
  /**
   * Of the transaction that the outcome is committed with. Good until the handler ends: await what you start on it. Its end is
   * Ratchet's; `manager.transaction(…)` makes a nested one.
   */
  abstract readonly manager: EntityManager;
}
