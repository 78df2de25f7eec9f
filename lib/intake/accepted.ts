import { PriorityDisabledError } from '../errors/bucket-errors.js';
import { priorityOf } from '../jobs/priority.js';
import { type Inserted, type NewJob } from '../store/job-store.js';

/** What became of a job that nothing is wrong with but, perhaps, its key or its fence. */
export type Accepted = Exclude<Inserted, { readonly outcome: 'disabled' | 'left_out' }>;

/** The error of the first of these jobs that is refused because its priority is switched off. */
export function refusalOf(
  jobs: readonly NewJob[],
  inserted: readonly Inserted[],
): PriorityDisabledError | undefined {
  for (const [index, answer] of inserted.entries()) {
    const job = jobs[index];
    if (job && answer.outcome === 'disabled') {
      return new PriorityDisabledError(job.name, job.lane, priorityOf(job.priority), answer.nodes);
    }
  }
  return undefined;
}

/** @throws PriorityDisabledError when one of them is refused: then none was saved. */
export function accepted(jobs: readonly NewJob[], inserted: readonly Inserted[]): readonly Accepted[] {
  const refusal = refusalOf(jobs, inserted);
  if (refusal) throw refusal;
  return inserted.filter(
    (answer): answer is Accepted => answer.outcome !== 'disabled' && answer.outcome !== 'left_out',
  );
}
