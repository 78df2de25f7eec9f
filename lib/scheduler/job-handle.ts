import { BusinessKeyHeldError } from '../errors/enqueue-errors.js';
import { ClaimLostError } from '../errors/execution-errors.js';
import { type JobHandle } from '../jobs/enqueue-options.js';
import { type Inserted, type NewJob } from '../store/job-store.js';

/**
 * What the caller of `enqueueMany` gets for the store's answers.
 *
 * @throws BusinessKeyHeldError, ClaimLostError for the first job that was refused.
 */
export function handlesOf(jobs: readonly NewJob[], inserted: readonly Inserted[]): JobHandle<never>[] {
  return jobs.map((job, index) => {
    const answer = inserted[index];
    const holder = answer?.outcome === 'held' ? answer.holder : undefined;
    // Held by a job of the same call, which for this reason was never saved.
    const rival = holder === undefined ? -1 : jobs.findIndex(({ id }) => id === holder);
    if (rival >= 0) throw new BusinessKeyHeldError(job.businessKey ?? '', undefined, false, [rival, index]);
    return handleOf(job, answer);
  });
}

/**
 * What the caller gets for the store's answer.
 *
 * @throws BusinessKeyHeldError, ClaimLostError
 */
export function handleOf(job: NewJob, inserted: Inserted | undefined): JobHandle<never> {
  switch (inserted?.outcome) {
    case 'created':
      return { id: inserted.id, created: true };
    case 'existing':
      return { id: inserted.id, created: false };
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
