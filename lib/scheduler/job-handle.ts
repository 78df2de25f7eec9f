import { BusinessKeyHeldError } from '../errors/enqueue-errors.js';
import { ClaimLostError } from '../errors/execution-errors.js';
import { type Submitted } from '../intake/intake.js';
import { type Buffered } from '../intake/save-buffer.js';
import { type JobArrival } from '../intake/transaction-end.js';
import { type JobHandle, type ResultOptions } from '../jobs/enqueue-options.js';
import { type NewJob } from '../store/job-store.js';
import { type AboutJob } from './results/lane-waits.js';
import { type Results } from './results/result-waiter.js';

/** A handle that knows whom to ask. There may be a hundred thousand of them: it keeps nothing of the job but names. */
class AwaitableHandle implements JobHandle<never> {
  readonly id: string;
  readonly created: boolean;
  readonly #results: Results;
  readonly #name: string | undefined;
  readonly #lane: string | undefined;
  readonly #within: JobArrival | undefined;
  readonly #saved: Promise<void> | undefined;

  constructor(
    results: Results,
    { id, created }: { readonly id: string; readonly created: boolean },
    about: AboutJob | undefined,
    within: JobArrival | undefined,
    saved?: Promise<void>,
  ) {
    this.id = id;
    this.created = created;
    this.#results = results;
    this.#name = about?.name;
    this.#lane = about?.lane;
    this.#within = within;
    this.#saved = saved;
  }

  get saved(): Promise<void> {
    return this.#saved ?? Promise.resolve();
  }

  result(options?: ResultOptions): Promise<never> {
    const about =
      this.#name === undefined || this.#lane === undefined
        ? undefined
        : { name: this.#name, lane: this.#lane };
    const job = { id: this.id, about, within: this.#within };
    return this.#results.result(job, options) as Promise<never>;
  }
}

/** A job on its way from the buffer to the database. */
class BufferedArrival implements JobArrival {
  readonly reason = 'it is not saved yet (durability: buffered)';
  isOver = false;

  constructor(saved: Promise<void>) {
    const end = (): void => void (this.isOver = true);
    saved.then(end, end);
  }

  holds(): boolean {
    return false;
  }
}

/** What the caller of a buffered call gets, before anything is saved. */
export function bufferedHandles(
  results: Results,
  jobs: readonly NewJob[],
  { saved }: Buffered,
): JobHandle<never>[] {
  const arrival = new BufferedArrival(saved);
  return jobs.map((job) => new AwaitableHandle(results, { id: job.id, created: true }, job, arrival, saved));
}

/** A handle to a job that was not enqueued by this call, unless `created` says so. */
export function handleTo(results: Results, id: string, about?: AboutJob, created = false): JobHandle<never> {
  return new AwaitableHandle(results, { id, created }, about, undefined);
}

/**
 * What the caller of `enqueueMany` gets for the store's answers.
 *
 * @throws BusinessKeyHeldError, ClaimLostError for the first job that was refused.
 */
export function handlesOf(
  results: Results,
  jobs: readonly NewJob[],
  inserted: readonly Submitted[],
): JobHandle<never>[] {
  return jobs.map((job, index) => {
    const answer = inserted[index];
    const holder = answer?.outcome === 'held' ? answer.holder : undefined;
    // Held by a job of the same call, which for this reason was never saved.
    const rival = holder === undefined ? -1 : jobs.findIndex(({ id }) => id === holder);
    if (rival >= 0) throw new BusinessKeyHeldError(job.businessKey ?? '', undefined, false, [rival, index]);
    return handleOf(results, job, answer);
  });
}

/**
 * What the caller gets for the store's answer.
 *
 * @throws BusinessKeyHeldError, ClaimLostError
 */
export function handleOf(results: Results, job: NewJob, inserted: Submitted | undefined): JobHandle<never> {
  switch (inserted?.outcome) {
    case 'created':
      inserted.within?.bring(inserted.id);
      return new AwaitableHandle(results, { id: inserted.id, created: true }, job, inserted.within);
    case 'existing':
      return new AwaitableHandle(results, { id: inserted.id, created: false }, job, inserted.within);
    case 'held':
      throw new BusinessKeyHeldError(
        job.businessKey ?? '',
        inserted.holder,
        inserted.running && job.onConflict === 'replace',
      );
    case 'fenced':
      throw new ClaimLostError(job.parent?.id ?? '', job.parent?.claimSeq ?? '');
    case undefined:
      throw new TypeError('The job store answered for fewer jobs than it was given.');
  }
}
