import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type WakeupHint } from '../cluster/cluster-coordinator.js';
import { BulkInterruptedError, JobRowHeldError } from '../errors/control-errors.js';
import { BusinessKeyHeldError, JobNotFoundError } from '../errors/enqueue-errors.js';
import { JobNotFailedError } from '../errors/intake-errors.js';
import { isAborted } from '../jobs/abort-signal.js';
import { type BulkOutcome, type BulkPreview } from '../jobs/job-filter.js';
import { type EngineEvents } from '../observability/engine-events.js';
import {
  type ControlAction,
  type ControlledJob,
  type ControlPlace,
  type ControlStep,
  type JobQuery,
  type JobStore,
  type JobView,
} from '../store/job-store.js';
import { isLockTimeout } from '../store/store-fault.js';
import { readActionFilter, readBulkOptions } from './job-arguments.js';

export interface JobControlParts {
  readonly store: Pick<JobStore, 'get' | 'cancel' | 'redrive' | 'holderOf' | 'control' | 'countControllable'>;
  readonly messages: Pick<ClusterMessages, 'newWork' | 'signal'>;
  /** Told of what was canceled. */
  readonly events?: EngineEvents | undefined;
}

/** `claimSeq`: it was running under that claim. */
type CanceledJob = Pick<ControlledJob, 'id' | 'name' | 'lane'> & { readonly claimSeq?: string | undefined };

/** A row that stays locked for so many tries, each of which waits a moment, is held by somebody who means it. */
const TRIES = 5;

/**
 * Cancels, pauses, resumes, redrives and reschedules: one job, or all of a filter. What is done is told to this process and
 * the cluster after its commit, so that a running job hears of its cancel and new work of its claim; a message that is lost
 * costs time only.
 */
export class JobControl {
  readonly #parts: JobControlParts;

  constructor(parts: JobControlParts) {
    this.#parts = parts;
  }

  async cancel(id: string): Promise<boolean> {
    const canceled = await this.#named('cancel', id, (store) => store.cancel(id));
    if (canceled.outcome !== 'canceled' && canceled.outcome !== 'canceled_running') return false;
    const claimSeq = canceled.outcome === 'canceled_running' ? canceled.claimSeq : undefined;
    this.#tellCanceled({ id, name: canceled.name, lane: canceled.lane, claimSeq });
    return true;
  }

  async redrive(id: string): Promise<void> {
    const redriven = await this.#named('redrive', id, (store) => store.redrive(id));
    switch (redriven.outcome) {
      case 'redriven':
        this.#parts.messages.newWork(redriven.lane, redriven.priority, { behind: true });
        return;
      case 'not_failed':
        throw new JobNotFailedError(id, redriven.status);
      case 'held':
        throw new BusinessKeyHeldError(redriven.businessKey, redriven.holder, false, undefined, id);
      case 'not_found':
        throw new JobNotFoundError(id);
    }
  }

  /** Whether the job is, or will be, paused. */
  async pause(id: string): Promise<boolean> {
    const isPaused = (job: JobView): boolean => job.status === 'paused' || job.pauseRequested;
    const canBe = (job: JobView): boolean => job.status === 'pending' || job.status === 'running';
    const left = await this.#changeOne({ kind: 'pause' }, id, (job) => !isPaused(job) && canBe(job));
    return left === 'changed' || (left !== undefined && isPaused(left));
  }

  /** Whether the job was paused, or was to be. */
  async resume(id: string): Promise<boolean> {
    const isPaused = (job: JobView): boolean => job.status === 'paused' || job.pauseRequested;
    return (await this.#changeOne({ kind: 'resume' }, id, isPaused)) === 'changed';
  }

  /** Whether its due time was moved. */
  async reschedule(id: string, when: { readonly delayMs: number; readonly runAt?: Date }): Promise<boolean> {
    const waits = (job: JobView): boolean => job.status === 'pending' || job.status === 'paused';
    return (await this.#changeOne({ kind: 'reschedule', ...when }, id, waits)) === 'changed';
  }

  /** Does it to all jobs of a filter, or counts them. */
  async bulk(
    call: string,
    action: ControlAction,
    filter: unknown,
    options: unknown,
  ): Promise<BulkOutcome | BulkPreview> {
    const query = readActionFilter(call, action.kind, filter);
    const { preview, signal } = readBulkOptions(call, options);
    if (preview) return { matched: await this.#parts.store.countControllable(action.kind, query) };
    return await this.#changeAll(action, query, signal);
  }

  async #changeAll(action: ControlAction, query: JobQuery, signal?: AbortSignal): Promise<BulkOutcome> {
    let matched = 0;
    let changed = 0;
    let place: ControlPlace | undefined;
    do {
      if (isAborted(signal)) return { matched, changed, aborted: true };
      let step: ControlStep;
      try {
        step = await this.#parts.store.control(action, query, place);
      } catch (error) {
        // Of a first step the error itself says all there is to say.
        throw place ? new BulkInterruptedError(action.kind, matched, changed, { cause: error }) : error;
      }
      this.#tell(action, step.changed);
      matched += step.matched;
      changed += step.changed.length;
      place = step.next;
      if (step.failure) throw new BulkInterruptedError(action.kind, matched, changed, step.failure);
      // The rest of the process gets its turn.
      if (place) await new Promise(setImmediate);
    } while (place);
    return { matched, changed, aborted: false };
  }

  /**
   * @param isLeft - whether a job that was not changed should have been: its row was held, or it moved meanwhile.
   * @returns `changed`, or what the job is instead; `undefined` when there is none.
   */
  async #changeOne(
    action: ControlAction,
    id: string,
    isLeft: (job: JobView) => boolean,
  ): Promise<JobView | 'changed' | undefined> {
    const query: JobQuery = { ids: [id] };
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { changed, failure } = await this.#parts.store.control(action, query);
      this.#tell(action, changed);
      if (changed.length > 0) return 'changed';
      if (failure) throw failure.cause;
      const job = await this.#parts.store.get(id);
      if (!job || !isLeft(job)) return job;
    }
    throw await this.#rowHeld(action.kind, id);
  }

  /** A row that was held for too long is said by name. */
  async #named<T>(
    action: ControlAction['kind'],
    id: string,
    work: (store: JobControlParts['store']) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(this.#parts.store);
    } catch (error) {
      throw isLockTimeout(error) ? await this.#rowHeld(action, id, error) : error;
    }
  }

  async #rowHeld(action: ControlAction['kind'], id: string, cause?: unknown): Promise<JobRowHeldError> {
    // Whoever it was may have let go by now, and a look that fails says no more.
    const holder = await this.#parts.store.holderOf(id).catch(() => undefined);
    return new JobRowHeldError(action, id, holder, cause === undefined ? undefined : { cause });
  }

  #tell(action: ControlAction, changed: readonly ControlledJob[]): void {
    switch (action.kind) {
      case 'cancel':
        for (const job of changed) this.#tellCanceled(job);
        return;
      case 'pause':
        return;
      case 'resume':
      case 'redrive':
      case 'reschedule':
        this.#tellWork(changed, hintOf(action));
    }
  }

  /** Once for each lane and priority. A job that runs is no new work. */
  #tellWork(changed: readonly ControlledJob[], hint: WakeupHint): void {
    const streams = new Map(
      changed
        .filter(({ claimSeq }) => claimSeq === undefined)
        .map((job) => [`${job.priority} ${job.lane}`, job] as const),
    );
    for (const { lane, priority } of streams.values()) this.#parts.messages.newWork(lane, priority, hint);
  }

  #tellCanceled({ id: jobId, name, lane, claimSeq }: CanceledJob): void {
    const { messages, events } = this.#parts;
    // Its own process hears of it now, other nodes by their coordinator, or by the notice that the store left.
    if (claimSeq !== undefined) messages.signal({ kind: 'cancel', jobId, claimSeq });
    if (events?.heard('withdrawn')) {
      events.emit('withdrawn', { jobId, name, lane, running: claimSeq !== undefined });
    }
  }
}

/** A `runAt` is compared by the database alone: whoever is woken asks it when the next job is due. */
function hintOf(action: ControlAction): WakeupHint {
  return action.kind === 'reschedule' && !action.runAt && action.delayMs > 0
    ? { dueInMs: action.delayMs }
    : { behind: true };
}
