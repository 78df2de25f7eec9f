import 'reflect-metadata';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type TransactionSettings } from '../jobs/transactional.js';

/**
 * What `@Job` and `@OnJobFailure` leave behind. It is kept twice, on the function and on (prototype, method): where the
 * second exists without the first, somebody has put another function in the handler's place, and discovery says so.
 */
export interface JobMark {
  /** Of the jobs that the method runs. */
  readonly definition: JobDefinition;
  /** `InvoiceJobs.send`, as it was decorated. */
  readonly owner: string;
  /** `@OnJobFailure`: what it is told the failures of. */
  readonly failureOf?: JobDefinition;
  /** It runs in a transaction of the app's. */
  readonly transactional?: TransactionSettings;
}

/** `Symbol.for`: the marks are the same for every copy of the package. */
export const JOB_MARK = Symbol.for('nestjs-ratchet:job');

/** The decorator that left a mark, as messages show it. */
export function decoratorOf({ definition, failureOf }: Pick<JobMark, 'definition' | 'failureOf'>): string {
  return failureOf ? `@OnJobFailure("${failureOf.name}")` : `@Job("${definition.name}")`;
}
