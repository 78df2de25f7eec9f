import { uuidv7 } from 'uuidv7';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { BusinessKeyHeldError, JobNotFoundError } from '../errors/enqueue-errors.js';
import { JobNotFailedError } from '../errors/intake-errors.js';
import { type Intake } from '../intake/intake.js';
import {
  type EnqueueArgs,
  type EnqueueManyItem,
  type EnqueueManyOptions,
  type EnqueueOptions,
  type JobHandle,
} from '../jobs/enqueue-options.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { isUuid } from '../jobs/job-id.js';
import { type ExecutionView, type JobStore } from '../store/job-store.js';
import { optionOf, transactionOf } from './call-options.js';
import { handleOf, handlesOf } from './job-handle.js';
import { type JobInfo, jobInfo } from './job-info.js';
import { type JobMaker } from './job-maker.js';

/** The options of `enqueueNamed`: the payload's version is said here, because no definition says it. */
export type EnqueueNamedOptions = EnqueueOptions & {
  /** Of the payload's shape. @defaultValue that of the definition, if this process has it, else `1` */
  version?: number | undefined;
};

export interface JobSchedulerParts {
  readonly intake: Pick<Intake, 'submit' | 'submitMany'>;
  readonly maker: JobMaker;
  readonly store: Pick<JobStore, 'get' | 'executions' | 'cancel' | 'redrive'>;
  readonly messages: Pick<ClusterMessages, 'newWork' | 'signal'>;
}

/**
 * Inject it to enqueue jobs, to ask what became of them, to cancel and to redrive.
 *
 * It works from the moment that the module is initialised, in processes with `worker: false` too, and until the application
 * has drained. Ids are UUIDv7, in call order.
 *
 * @example
 * constructor(private readonly scheduler: JobScheduler) {}
 *
 * await this.scheduler.enqueue(SendInvoice, { orderId }, { priority: 'high', delay: '5m' });
 */
export class JobScheduler {
  readonly #parts: JobSchedulerParts;

  constructor(parts: JobSchedulerParts) {
    this.#parts = parts;
  }

  /**
   * Enqueues one job. Resolves when it is committed; with `transaction`, when it is written into that transaction, which
   * commits it or not. Calls made at the same moment share one insert.
   *
   * @param definition - what `defineJob` returned.
   * @param args - the payload, and options.
   * @returns `created: false` when it was a repeat of an idempotency key, or the holder of a business key
   *   (`onConflict: 'return'`).
   * @throws InvalidEnqueueOptionError, PayloadNotJsonError, PayloadInvalidError, PayloadTooLargeError before anything is sent.
   * @throws BusinessKeyHeldError when a live job holds the business key; your transaction can go on.
   * @throws EnqueueConflictError (`retryable`) when another transaction stood in the way.
   * @throws TransactionNotActiveError, TransactionReleasedError, ForeignTransactionError for a `transaction` that cannot be joined.
   * @throws EnqueueInDoubtError when the database was lost and nobody can say whether the job was saved.
   *
   * @example
   * await dataSource.transaction(async (tx) => {
   *   await tx.save(order);
   *   await scheduler.enqueue(SendInvoice, { orderId: order.id }, { transaction: tx, businessKey: `invoice:${order.id}` });
   * });
   */
  async enqueue<In, Out, Result>(
    definition: JobDefinition<In, Out, Result>,
    ...args: EnqueueArgs<NoInfer<In>>
  ): Promise<JobHandle<Result>> {
    const [payload, options] = args;
    return await this.#enqueue(definition, payload, options);
  }

  /**
   * Enqueues a job by the name of its definition, for definitions that live elsewhere. If this process has a handler of
   * that name, its definition counts (lane, priority, schema); otherwise lane and priority are the defaults unless the
   * options say them.
   *
   * @throws as {@link JobScheduler.enqueue}.
   *
   * @example
   * await scheduler.enqueueNamed('report.build', { month: '2026-11' }, { lane: 'reports' });
   */
  async enqueueNamed<Result = unknown>(
    name: string,
    payload?: unknown,
    options?: EnqueueNamedOptions,
  ): Promise<JobHandle<Result>> {
    const definition = this.#parts.maker.named(name, optionOf(name, options, 'version'));
    return await this.#enqueue(definition, payload, options, ['transaction', 'version']);
  }

  /**
   * Enqueues many jobs of one definition, all or nothing.
   *
   * @param definition - what `defineJob` returned.
   * @param items - a payload each, and options that concern that job only.
   * @param options - for all of them, and the transaction. What an item says counts more.
   * @returns a handle each, in the order of the items.
   * @throws as {@link JobScheduler.enqueue}; whatever is wrong with one job, none is enqueued.
   *
   * @example
   * await scheduler.enqueueMany(SendInvoice, orders.map(({ id }) => ({ payload: { orderId: id } })), { priority: 'low' });
   */
  async enqueueMany<In, Out, Result>(
    definition: JobDefinition<In, Out, Result>,
    items: readonly EnqueueManyItem<NoInfer<In>>[],
    options?: EnqueueManyOptions,
  ): Promise<JobHandle<Result>[]> {
    const { maker, intake } = this.#parts;
    const transaction = transactionOf(definition, options);
    const making = maker.makeMany(definition, items, options);
    const inserted = await intake.submitMany(making, transaction);
    return handlesOf(await making, inserted);
  }

  /**
   * What is known of a job, live or finished; `undefined` when there is none of that id (or retention has dropped it).
   *
   * @example
   * const job = await scheduler.get(id);
   * if (job?.status === 'failed') console.log(job.error);
   */
  async get(id: string): Promise<JobInfo | undefined> {
    const view = isUuid(id) ? await this.#parts.store.get(id) : undefined;
    return view && jobInfo(view);
  }

  /**
   * The job's executions, oldest first; none when nobody knows the job.
   *
   * @example
   * for (const { number, outcome, error } of await scheduler.executions(id)) console.log(number, outcome, error);
   */
  async executions(id: string): Promise<readonly ExecutionView[]> {
    return isUuid(id) ? await this.#parts.store.executions(id) : [];
  }

  /**
   * Cancels a job. One that waits ends at once; the signal of one that runs is aborted (reason `canceled`) and whatever its
   * handler still returns is discarded.
   *
   * @returns false when there was nothing to cancel: the job had ended, or there is none of that id.
   *
   * @example
   * if (!(await scheduler.cancel(id))) throw new ConflictException('too late');
   */
  async cancel(id: string): Promise<boolean> {
    if (!isUuid(id)) return false;
    const canceled = await this.#parts.store.cancel(id);
    if (canceled.outcome === 'canceled_running') {
      // Its own process hears of it now, other nodes by their coordinator, or by the notice that the store left.
      this.#parts.messages.signal({ kind: 'cancel', jobId: id, claimSeq: canceled.claimSeq });
    }
    return canceled.outcome === 'canceled' || canceled.outcome === 'canceled_running';
  }

  /**
   * Puts a job from the dead letter back to work, at once and with its retries renewed.
   *
   * @throws JobNotFoundError when there is no job of that id.
   * @throws JobNotFailedError when the job is not in the dead letter.
   * @throws BusinessKeyHeldError when a live job holds its business key by now.
   *
   * @example
   * await scheduler.redrive(deadJob.id);
   */
  async redrive(id: string): Promise<void> {
    if (!isUuid(id)) throw new JobNotFoundError(id);
    const redriven = await this.#parts.store.redrive(id);
    switch (redriven.outcome) {
      case 'redriven':
        this.#parts.messages.newWork(redriven.lane, redriven.priority, { behind: true });
        return;
      case 'not_failed':
        throw new JobNotFailedError(id, redriven.status);
      case 'held':
        throw new BusinessKeyHeldError(redriven.businessKey, redriven.holder);
      case 'not_found':
        throw new JobNotFoundError(id);
    }
  }

  async #enqueue(
    definition: JobDefinition,
    payload: unknown,
    options: EnqueueOptions | undefined,
    allow: readonly string[] = ['transaction'],
  ): Promise<JobHandle<never>> {
    // Before the first await: ids are in call order.
    const id = uuidv7();
    const transaction = transactionOf(definition, options);
    const making = this.#parts.maker.make(id, definition, payload, options, allow);
    const inserted = await this.#parts.intake.submit(making, transaction);
    return handleOf(await making, inserted);
  }
}
