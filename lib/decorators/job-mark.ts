import 'reflect-metadata';
import { type JobDefinition } from '../jobs/job-definition.js';

/**
 * What `@Job` leaves behind. It is kept twice, on the function and on (prototype, method): where the second exists
 * without the first, somebody has put another function in the handler's place, and discovery says so.
 */
export interface JobMark {
  readonly definition: JobDefinition;
  /** `InvoiceJobs.send`, as it was decorated. */
  readonly owner: string;
}

/** `Symbol.for`: the marks are the same for every copy of the package. */
export const JOB_MARK = Symbol.for('nestjs-ratchet:job');
