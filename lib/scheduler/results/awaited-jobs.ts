import { JobNotFoundError } from '../../errors/enqueue-errors.js';
import {
  JobCanceledError,
  JobFailedError,
  ResultNotKeptError,
  ResultOfOtherJobError,
} from '../../errors/result-errors.js';
import { type JobArrival } from '../../intake/transaction-end.js';
import { whyNotKept } from '../../jobs/payload-codec.js';
import { type EndedJob } from '../../store/job-store.js';

/** One call of `result()` that has not been answered. */
export interface Waiting {
  /** Of the definition that the handle has its type from, if there is one. */
  readonly name?: string | undefined;
  /** What the job has to wait for before it is there: the caller's transaction, or its place in the buffer. */
  readonly within: JobArrival | undefined;
  /** Gives up its timer and its listener. */
  readonly stop: () => void;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** Who waits for which job, and how they are told. Several may wait for one. */
export class AwaitedJobs {
  readonly #byId = new Map<string, Set<Waiting>>();

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  add(id: string, waiting: Waiting): void {
    const all = this.#byId.get(id);
    if (all) all.add(waiting);
    else this.#byId.set(id, new Set([waiting]));
  }

  /** It waits no more. */
  remove(id: string, waiting: Waiting): void {
    const all = this.#byId.get(id);
    // The database's answer and a timeout may both have come.
    if (!all?.delete(waiting)) return;
    if (all.size === 0) this.#byId.delete(id);
    waiting.stop();
  }

  /** Those for whom it settles the matter when the job is not there: no transaction is open that may still bring it. */
  decided(id: string): readonly Waiting[] {
    return [...(this.#byId.get(id) ?? [])].filter(({ within }) => within === undefined || within.isOver);
  }

  /** The job ended: tells all who wait for it. */
  end(job: EndedJob): void {
    const reason = whyNotKept(job.result);
    for (const [index, waiting] of [...(this.#byId.get(job.id) ?? [])].entries()) {
      this.remove(job.id, waiting);
      const { name } = waiting;
      if (name !== undefined && name !== job.name)
        waiting.reject(new ResultOfOtherJobError(job.id, job.name, name));
      else if (job.status !== 'succeeded') waiting.reject(errorOf(job));
      else if (reason !== undefined) waiting.reject(new ResultNotKeptError(job.id, job.name, reason));
      // Two who wait must not share an object.
      else waiting.resolve(index === 0 ? job.result : structuredClone(job.result));
    }
  }

  /** There is no such job, as far as these are concerned. */
  miss(id: string, decided: readonly Waiting[]): void {
    for (const waiting of decided) {
      this.remove(id, waiting);
      waiting.reject(new JobNotFoundError(id));
    }
  }

  /** Nobody will be told any more. */
  abandon(reasonOf: (id: string) => unknown): void {
    for (const [id, all] of [...this.#byId]) {
      for (const waiting of [...all]) {
        this.remove(id, waiting);
        waiting.reject(reasonOf(id));
      }
    }
  }
}

function errorOf({ id, name, status, error, executions, failures, crashes }: EndedJob): unknown {
  if (status === 'canceled') return new JobCanceledError(id, name);
  const facts = { jobId: id, jobName: name, executions, failures, crashes };
  return new JobFailedError({ ...facts, error: error ?? '' });
}
