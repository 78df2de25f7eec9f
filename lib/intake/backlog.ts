import { IntakeFullError } from '../errors/intake-errors.js';
import { type NewJob } from '../store/job-store.js';

export interface BacklogLimits {
  readonly jobs: number;
  readonly bytes: number;
}

const LIMITS: BacklogLimits = { jobs: 100_000, bytes: 256_000_000 };

/**
 * What may wait for its statement. Beyond, the process takes in more than its database can (or the database is silent), and
 * callers must hear of it.
 */
export class Backlog {
  #jobs = 0;
  #bytes = 0;

  constructor(private readonly limits = LIMITS) {}

  /** Jobs that wait now. */
  get jobs(): number {
    return this.#jobs;
  }

  /**
   * Call {@link Backlog.leave} with the same jobs. One call may be larger than the limits when nothing else waits.
   *
   * @throws IntakeFullError when too much is waiting already.
   */
  enter(jobs: readonly NewJob[]): void {
    const bytes = bytesOf(jobs);
    const { limits } = this;
    if (this.#jobs > 0 && (this.#jobs + jobs.length > limits.jobs || this.#bytes + bytes > limits.bytes)) {
      throw new IntakeFullError(this.#jobs);
    }
    this.#jobs += jobs.length;
    this.#bytes += bytes;
  }

  leave(jobs: readonly NewJob[]): void {
    this.#jobs -= jobs.length;
    this.#bytes -= bytesOf(jobs);
  }
}

function bytesOf(jobs: readonly NewJob[]): number {
  return jobs.reduce((sum, { payload }) => sum + payload.length, 0);
}
