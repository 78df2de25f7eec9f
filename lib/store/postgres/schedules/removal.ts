import { type StoreTransaction } from '../../job-store.js';
import { type DeletedSchedule } from '../../schedule-store.js';
import { type PostgresSession } from '../postgres-session.js';
import { retriedRollback } from '../retried-rollback.js';
import {
  type CanceledJobs,
  cancelJobsOf,
  cancelJobsOfRemoved,
  decodeCanceledJobs,
} from '../statements/schedules/cancel-jobs.js';
import {
  DELETE_CHUNK,
  deleteOccurrencesOf,
  deleteSchedules,
  lockSchedules,
} from '../statements/schedules/delete.js';
import { forgetOccurrences, forgetSchedules } from '../statements/schedules/forget.js';
import { completeRemoval, sweepSchedules } from '../statements/schedules/sweep.js';
import { RETENTION_CHUNK } from '../statements/retention.js';
import { withPartitions } from '../with-partitions.js';
import { ownTransaction } from './own-transaction.js';

/** What one transaction of a deletion did. */
interface DeleteStep {
  readonly found: readonly string[];
  readonly jobs: CanceledJobs['jobs'];
  /** Nothing is left. */
  readonly complete: boolean;
}

/** How schedules come to their end: deleted by hand, removed because their annotation is gone, forgotten. */
export class ScheduleRemoval {
  constructor(private readonly session: PostgresSession) {}

  /**
   * Each transaction deals with so many jobs and occurrences that it stays short; the one that finds no more of them deletes the
   * schedules. They hold the schedules' rows, so that no job can come after the last look.
   */
  async delete(ids: readonly string[]): Promise<readonly DeletedSchedule[]> {
    const canceled = new Map<string, string[]>();
    for (let complete = ids.length === 0; !complete;) {
      const step = await withPartitions(this.session, () =>
        ownTransaction(this.session, (inside) => this.#deleteStep(ids, inside)),
      );
      for (const id of step.found) if (!canceled.has(id)) canceled.set(id, []);
      for (const { id, schedule } of step.jobs) canceled.get(schedule)?.push(id);
      complete = step.complete;
    }
    return [...canceled].map(([id, jobs]) => ({ id, canceled: jobs }));
  }

  async #deleteStep(ids: readonly string[], inside: StoreTransaction): Promise<DeleteStep> {
    const { session } = this;
    const found = await session.app(lockSchedules, [ids], inside);
    const canceled = decodeCanceledJobs(await session.app(cancelJobsOf, [session.offsetMs, ids], inside));
    const [occurrences] = await session.app(deleteOccurrencesOf, [ids], inside);
    const complete = canceled.complete && Number(occurrences?.['deleted']) < DELETE_CHUNK;
    if (complete) await session.app(deleteSchedules, [ids], inside);
    return { found: found.map((row) => row['id'] as string), jobs: canceled.jobs, complete };
  }

  async sweep(windowMs: number): Promise<readonly string[]> {
    const { session } = this;
    const rows = await retriedRollback(() => session.service(sweepSchedules, [session.offsetMs, windowMs]));
    const ids = rows.map((row) => row['id'] as string);
    if (ids.length > 0) await this.#complete(ids);
    return rows.filter((row) => row['tag'] === 'removed').map((row) => row['id'] as string);
  }

  /** Jobs that somebody holds are left to the next sweep, and the removal with them. */
  async #complete(ids: readonly string[]): Promise<void> {
    const { session } = this;
    const cancelSome = async (): Promise<CanceledJobs> =>
      decodeCanceledJobs(await session.service(cancelJobsOfRemoved, [session.offsetMs, ids]));
    for (;;) {
      const { jobs, complete } = await withPartitions(session, () => retriedRollback(cancelSome));
      if (complete) break;
      if (jobs.length === 0) return;
    }
    await session.service(completeRemoval, [session.offsetMs, ids]);
  }

  async forget(ageMs: number, signal?: AbortSignal): Promise<number> {
    const { session } = this;
    let deleted = 0;
    for (;;) {
      signal?.throwIfAborted();
      const [row] = await session.service(forgetOccurrences, [session.offsetMs, ageMs]);
      deleted += Number(row?.['deleted']);
      if (Number(row?.['read']) < RETENTION_CHUNK) break;
    }
    await session.service(forgetSchedules, [session.offsetMs, ageMs]);
    return deleted;
  }
}
