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
    if (!this.hasRoomFor(jobs)) throw new IntakeFullError(this.#jobs);
    this.#jobs += jobs.length;
    this.#bytes += bytesOf(jobs);
  }

  hasRoomFor(jobs: readonly NewJob[]): boolean {
    const { limits } = this;
    if (this.#jobs === 0) return true;
    return this.#jobs + jobs.length <= limits.jobs && this.#bytes + bytesOf(jobs) <= limits.bytes;
  }

  leave(jobs: readonly NewJob[]): void {
    this.#jobs -= jobs.length;
    this.#bytes -= bytesOf(jobs);
  }
}

function bytesOf(jobs: readonly NewJob[]): number {
  return jobs.reduce((sum, { payload, metadata = '' }) => sum + payload.length + metadata.length, 0);
}
