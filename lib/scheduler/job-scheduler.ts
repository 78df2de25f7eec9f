import { uuidv7 } from 'uuidv7';
import {
  type BufferedEnqueueManyOptions,
  type EnqueueArgs,
  type EnqueueManyItem,
  type EnqueueManyOptions,
  type EnqueueNamedOptions,
  type JobHandle,
} from '../jobs/enqueue-options.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import {
  type BulkOptions,
  type BulkOutcome,
  type BulkPreview,
  type FindOptions,
  type JobFilter,
  type MaybePreviewOptions,
  type PreviewOptions,
  type RescheduleWhen,
} from '../jobs/job-filter.js';
import { type ExecutionView, type NewJob } from '../store/job-store.js';
import { isBuffered, optionOf, requireKeyless, transactionOf } from './call-options.js';
import { isOne, readWhen } from './job-arguments.js';
import { JobControl } from './job-control.js';
import { JobFinder, type JobPage } from './job-finder.js';
import { bufferedHandles, handleOf, handlesOf, handleTo } from './job-handle.js';
import { type JobInfo, jobInfo } from './job-info.js';
import { type JobSchedulerParts } from './job-scheduler-parts.js';
import { readJobId } from './read-job-id.js';
import { handleTarget } from './results/handle-target.js';

/**
 * Inject it to enqueue jobs, to find them, to ask what became of them, and to cancel, pause, redrive and reschedule them.
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
  readonly #finder: JobFinder;
  readonly #control: JobControl;

  constructor(parts: JobSchedulerParts) {
    this.#parts = parts;
    this.#finder = new JobFinder(parts.store);
    this.#control = new JobControl(parts);
  }

  /**
   * Enqueues one job. Resolves when it is committed; with `transaction`, when it is written into that transaction, which
   * commits it or not. Calls made at the same moment share one insert. With `durability: 'buffered'` it resolves before the job is
   * saved, and `saved` of the handle tells the rest.
   *
   * @param definition - what `defineJob` returned.
   * @param args - the payload, and options.
   * @returns `created: false` when it was a repeat of an idempotency key, or the holder of a business key
   *   (`onConflict: 'return'`).
   * @throws InvalidEnqueueOptionError, PayloadNotJsonError, PayloadInvalidError, PayloadTooLargeError before anything is sent.
   * @throws BusinessKeyHeldError when a live job holds the business key; your transaction can go on.
   * @throws PriorityDisabledError when every live node of the lane has switched the priority off; your transaction can go on.
   * @throws EnqueueConflictError (`retryable`) when another transaction stood in the way.
   * @throws TransactionNotActiveError, TransactionReleasedError, ForeignTransactionError for a `transaction` that cannot be joined.
   * @throws EnqueueInDoubtError when the database was lost and nobody can say whether the job was saved.
   * @throws IntakeFullError (`retryable`) when too much waits to be saved already.
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
    return await this.#enqueue(definition, payload, options, ['transaction', 'durability', 'version']);
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
    options?: EnqueueManyOptions | BufferedEnqueueManyOptions,
  ): Promise<JobHandle<Result>[]> {
    const { maker, intake } = this.#parts;
    const transaction = transactionOf(definition, options);
    const buffered = isBuffered(definition, options, () => intake.inTransaction());
    const making = maker.makeMany(definition, items, options);
    if (buffered) return await this.#buffer(making);
    const inserted = await intake.submitMany(making, transaction);
    return handlesOf(this.#parts.results, await making, inserted);
  }

  /**
   * A handle to a job that was enqueued elsewhere, to await its result. Asks nothing: the job need not be there.
   *
   * @param args - the id, with its definition before it for the type of the result.
   * @returns a handle with `created: false`.
   * @throws InvalidJobIdError when it is no UUID.
   *
   * @example
   * const { pages } = await scheduler.handle(BuildReport, id).result({ timeout: '30s' });
   */
  handle<In, Out, Result>(
    ...args: [definition: JobDefinition<In, Out, Result>, id: string]
  ): JobHandle<Result>;
  handle<Result = unknown>(...args: [id: string]): JobHandle<Result>;
  handle(...args: readonly unknown[]): JobHandle {
    const { id, about } = handleTarget(args);
    return handleTo(this.#parts.results, id, about);
  }

  /**
   * What is known of a job, live or finished; `undefined` when there is none of that id (or retention has dropped it).
   *
   * @throws InvalidJobIdError when it is no UUID.
   *
   * @example
   * const job = await scheduler.get(id);
   * if (job?.status === 'failed') console.log(job.error);
   */
  async get(id: string): Promise<JobInfo | undefined> {
    const view = await this.#parts.store.get(readJobId('get', id));
    return view && jobInfo(view);
  }

  /**
   * The job's executions, oldest first; none when nobody knows the job.
   *
   * @throws InvalidJobIdError when it is no UUID.
   *
   * @example
   * for (const { number, outcome, error } of await scheduler.executions(id)) console.log(number, outcome, error);
   */
  async executions(id: string): Promise<readonly ExecutionView[]> {
    return await this.#parts.store.executions(readJobId('executions', id));
  }

  /**
   * Jobs, live or finished, newest first, a page at a time. A job that ends while you turn pages keeps its place.
   *
   * @param filter - all conditions must hold; every job when left out.
   * @throws InvalidJobFilterError for a filter, limit or cursor that cannot be right.
   *
   * @example
   * const { jobs, cursor } = await scheduler.find({ name: SendInvoice, status: 'failed' }, { limit: 20 });
   * const next = cursor && (await scheduler.find({ name: SendInvoice, status: 'failed' }, { limit: 20, cursor }));
   */
  async find(filter?: JobFilter, options?: FindOptions): Promise<JobPage> {
    return await this.#finder.find(filter, options);
  }

  /**
   * The same, one job after another, for scripts: fetches page by page.
   *
   * @throws InvalidJobFilterError in the call itself.
   *
   * @example
   * for await (const job of scheduler.findAll({ tag: 'import-42' })) console.log(job.id, job.status);
   */
  findAll(filter?: JobFilter): AsyncIterableIterator<JobInfo> {
    return this.#finder.all(filter);
  }

  /**
   * How many jobs there are. Counted one by one: it costs what reading them costs.
   *
   * @throws InvalidJobFilterError
   *
   * @example
   * const waiting = await scheduler.count({ lane: 'mail', status: 'pending' });
   */
  async count(filter?: JobFilter): Promise<number> {
    return await this.#finder.count(filter);
  }

  /**
   * Cancels jobs. One that waits ends at once; the signal of one that runs is aborted (reason `canceled`) and whatever its
   * handler still returns is discarded.
   *
   * @returns for an id: false when there was nothing to cancel, because the job had ended or there is none. For a filter: how
   *   many were canceled; with `preview: true` how many would be.
   * @throws InvalidJobIdError for what is neither a UUID nor a filter.
   * @throws InvalidJobFilterError for a filter that cannot be right or has no condition.
   * @throws BulkInterruptedError (`retryable`) when the database failed on the way.
   * @throws JobRowHeldError (`retryable`) for an id whose row another transaction keeps locked; says which session.
   *
   * @example
   * if (!(await scheduler.cancel(id))) throw new ConflictException('too late');
   * await scheduler.cancel({ name: SendInvoice, status: 'pending' }, { preview: true }); // { matched: 3120 }
   */
  cancel(id: string): Promise<boolean>;
  cancel(filter: JobFilter, options: PreviewOptions): Promise<BulkPreview>;
  cancel(filter: JobFilter, options?: BulkOptions): Promise<BulkOutcome>;
  cancel(filter: JobFilter, options?: MaybePreviewOptions): Promise<BulkOutcome | BulkPreview>;
  cancel(target: string | JobFilter): Promise<boolean | BulkOutcome>;
  async cancel(
    target: string | JobFilter,
    options?: MaybePreviewOptions,
  ): Promise<boolean | BulkOutcome | BulkPreview> {
    return isOne('cancel', target, options)
      ? await this.#control.cancel(readJobId('cancel', target))
      : await this.#control.bulk('cancel', { kind: 'cancel' }, target, options);
  }

  /**
   * Cancels the jobs that have a tag; of several tags, those that have all. As `cancel({ tag })`.
   *
   * @example
   * await scheduler.cancelByTag('import-42');
   */
  cancelByTag(tag: string | readonly string[], options: PreviewOptions): Promise<BulkPreview>;
  cancelByTag(tag: string | readonly string[], options?: BulkOptions): Promise<BulkOutcome>;
  cancelByTag(
    tag: string | readonly string[],
    options?: MaybePreviewOptions,
  ): Promise<BulkOutcome | BulkPreview>;
  async cancelByTag(
    tag: string | readonly string[],
    options?: MaybePreviewOptions,
  ): Promise<BulkOutcome | BulkPreview> {
    return await this.#control.bulk('cancelByTag', { kind: 'cancel' }, { tag }, options);
  }

  /**
   * Pauses jobs: nobody claims them until they are resumed. A running one is marked (`JobInfo.pauseRequested`) and runs on: it
   * is paused when its execution gives it back (a retry, snooze, release or rescue), and ends as usual when that ends it.
   *
   * @returns for an id: whether the job is paused, or will be when its execution gives it back; false when it has ended or
   *   there is none. For a filter: as {@link JobScheduler.cancel}.
   * @throws as {@link JobScheduler.cancel}.
   *
   * @example
   * await scheduler.pause({ lane: 'mail', status: 'pending' });
   */
  pause(id: string): Promise<boolean>;
  pause(filter: JobFilter, options: PreviewOptions): Promise<BulkPreview>;
  pause(filter: JobFilter, options?: BulkOptions): Promise<BulkOutcome>;
  pause(filter: JobFilter, options?: MaybePreviewOptions): Promise<BulkOutcome | BulkPreview>;
  pause(target: string | JobFilter): Promise<boolean | BulkOutcome>;
  async pause(
    target: string | JobFilter,
    options?: MaybePreviewOptions,
  ): Promise<boolean | BulkOutcome | BulkPreview> {
    return isOne('pause', target, options)
      ? await this.#control.pause(readJobId('pause', target))
      : await this.#control.bulk('pause', { kind: 'pause' }, target, options);
  }

  /**
   * Lets paused jobs be claimed again, each when it is due, and takes back a pause that a running one has not come to yet.
   *
   * @returns for an id: whether it was paused, or was to be. For a filter: as {@link JobScheduler.cancel}.
   * @throws as {@link JobScheduler.pause}.
   *
   * @example
   * await scheduler.resume({ lane: 'mail' });
   */
  resume(id: string): Promise<boolean>;
  resume(filter: JobFilter, options: PreviewOptions): Promise<BulkPreview>;
  resume(filter: JobFilter, options?: BulkOptions): Promise<BulkOutcome>;
  resume(filter: JobFilter, options?: MaybePreviewOptions): Promise<BulkOutcome | BulkPreview>;
  resume(target: string | JobFilter): Promise<boolean | BulkOutcome>;
  async resume(
    target: string | JobFilter,
    options?: MaybePreviewOptions,
  ): Promise<boolean | BulkOutcome | BulkPreview> {
    return isOne('resume', target, options)
      ? await this.#control.resume(readJobId('resume', target))
      : await this.#control.bulk('resume', { kind: 'resume' }, target, options);
  }

  /**
   * Puts jobs from the dead letter back to work, at once and with their retries renewed. By a filter, a job whose business
   * key a live job holds stays where it is: it is `matched` and not `changed`.
   *
   * @throws JobNotFoundError when there is no job of that id.
   * @throws JobNotFailedError when the job is not in the dead letter.
   * @throws BusinessKeyHeldError when a live job holds its business key by now.
   * @throws JobRowHeldError (`retryable`) when another transaction keeps its row, or its business key, locked.
   * @throws for a filter as {@link JobScheduler.cancel}.
   *
   * @example
   * await scheduler.redrive(deadJob.id);
   * await scheduler.redrive({ name: SendInvoice, ended: { from: outageBegan, until: outageEnded } });
   */
  redrive(id: string): Promise<void>;
  redrive(filter: JobFilter, options: PreviewOptions): Promise<BulkPreview>;
  redrive(filter: JobFilter, options?: BulkOptions): Promise<BulkOutcome>;
  redrive(filter: JobFilter, options?: MaybePreviewOptions): Promise<BulkOutcome | BulkPreview>;
  redrive(target: string | JobFilter): Promise<BulkOutcome | undefined>;
  async redrive(
    target: string | JobFilter,
    options?: MaybePreviewOptions,
  ): Promise<void | BulkOutcome | BulkPreview> {
    return isOne('redrive', target, options)
      ? await this.#control.redrive(readJobId('redrive', target))
      : await this.#control.bulk('redrive', { kind: 'redrive' }, target, options);
  }

  /**
   * Gives jobs that wait (pending or paused) another due time. Paused ones stay paused.
   *
   * @returns for an id: whether its due time was moved; false when it runs, has ended, or there is none. For a filter: as
   *   {@link JobScheduler.cancel}.
   * @throws as {@link JobScheduler.pause}.
   *
   * @example
   * await scheduler.reschedule(id, { delay: '2h' });
   * await scheduler.reschedule({ tag: 'newsletter' }, { runAt: tomorrowAtNine });
   */
  reschedule(id: string, when: RescheduleWhen): Promise<boolean>;
  reschedule(filter: JobFilter, when: RescheduleWhen, options: PreviewOptions): Promise<BulkPreview>;
  reschedule(filter: JobFilter, when: RescheduleWhen, options?: BulkOptions): Promise<BulkOutcome>;
  reschedule(
    filter: JobFilter,
    when: RescheduleWhen,
    options?: MaybePreviewOptions,
  ): Promise<BulkOutcome | BulkPreview>;
  reschedule(target: string | JobFilter, when: RescheduleWhen): Promise<boolean | BulkOutcome>;
  async reschedule(
    target: string | JobFilter,
    when: RescheduleWhen,
    options?: MaybePreviewOptions,
  ): Promise<boolean | BulkOutcome | BulkPreview> {
    const due = readWhen('reschedule', when);
    return isOne('reschedule', target, options)
      ? await this.#control.reschedule(readJobId('reschedule', target), due)
      : await this.#control.bulk('reschedule', { kind: 'reschedule', ...due }, target, options);
  }

  async #enqueue(
    definition: JobDefinition,
    payload: unknown,
    options: unknown,
    allow: readonly string[] = ['transaction', 'durability'],
  ): Promise<JobHandle<never>> {
    // Before the first await: ids are in call order.
    const id = uuidv7();
    const transaction = transactionOf(definition, options);
    const { maker, intake, results } = this.#parts;
    const buffered = isBuffered(definition, options, () => intake.inTransaction());
    const making = maker.make(id, definition, payload, options, allow);
    if (buffered) {
      const [handle] = await this.#buffer(making.then((job) => [job]));
      return handle as JobHandle<never>;
    }
    const inserted = await intake.submit(making, transaction);
    return handleOf(results, await making, inserted);
  }

  async #buffer(making: Promise<readonly NewJob[]>): Promise<JobHandle<never>[]> {
    const keyless = making.then(requireKeyless);
    const buffered = await this.#parts.intake.submitBuffered(keyless);
    return bufferedHandles(this.#parts.results, await keyless, buffered);
  }
}
