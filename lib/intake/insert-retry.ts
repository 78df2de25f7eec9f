import { setTimeout as pause } from 'node:timers/promises';
import { type Inserted, type JobStore, type NewJob } from '../store/job-store.js';
import { faultKindOf } from '../store/store-fault.js';

/** Waits between the attempts of one insert, in milliseconds: about half a second in all, then the caller is told. */
const RETRY_DELAYS_MS = [0, 20, 80, 400];

/** An insert that waited this long (a lock timeout, a connect timeout) has waited for its caller: it is not tried again. */
const PATIENCE_MS = 1_500;

/** How many ids are looked up at once after a lost reply. */
const LOOKUPS_AT_ONCE = 4;

/**
 * Inserts outside a transaction, through the faults that pass: what was rolled back or refused is sent again, and after a
 * lost reply the ids tell what was committed, so that an enqueue is never doubled and an acknowledged one never lost.
 *
 * It never splits a group (that is {@link Gathering}'s work) and never retries inside somebody else's transaction.
 */
export class InsertRetry {
  constructor(private readonly store: Pick<JobStore, 'insert' | 'get'>) {}

  /** All or nothing, as {@link JobStore.insert}. Rejects with the store's last error. */
  async insert(jobs: readonly NewJob[]): Promise<readonly Inserted[]> {
    const startedAt = performance.now();
    let inDoubt = false;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await (inDoubt ? this.#insertMissing(jobs) : this.store.insert(jobs));
      } catch (error) {
        const kind = faultKindOf(error);
        // In doubt, a bad row may be our own id: the lost attempt was committed after the look.
        const passes =
          kind === 'rolled_back' ||
          kind === 'unavailable' ||
          kind === 'unknown' ||
          (inDoubt && kind === 'bad_row');
        const delay = RETRY_DELAYS_MS[attempt];
        if (!passes || delay === undefined || performance.now() - startedAt > PATIENCE_MS) throw error;
        inDoubt ||= kind === 'unknown';
        if (delay > 0) await pause(delay);
      }
    }
  }

  /** One call is one transaction, so the ids tell whether it was committed. */
  async #insertMissing(jobs: readonly NewJob[]): Promise<readonly Inserted[]> {
    const missing = await this.#missing(jobs);
    if (missing.length === 0) return jobs.map(({ id }) => ({ outcome: 'created', id }));
    // An idempotent repeat leaves no row of its own and is asked again, which is harmless. With `history: 'drop'` a job may
    // have run already and left no trace: it is then inserted again, which at-least-once allows.
    const answers = await this.store.insert(missing);
    const inserted = new Map(missing.map(({ id }, index) => [id, own(id, answers[index])]));
    return jobs.map(({ id }) => inserted.get(id) ?? { outcome: 'created', id });
  }

  async #missing(jobs: readonly NewJob[]): Promise<NewJob[]> {
    const missing = new Set<NewJob>();
    const left = jobs.values();
    const look = async (): Promise<void> => {
      for (const job of left) if (!(await this.store.get(job.id))) missing.add(job);
    };
    await Promise.all(Array.from({ length: LOOKUPS_AT_ONCE }, look));
    return jobs.filter((job) => missing.has(job));
  }
}

/** A key that is held by the very job that we were inserting says that the lost attempt was committed. */
function own(id: string, answer: Inserted | undefined): Inserted {
  const mine =
    (answer?.outcome === 'existing' && answer.id === id) ||
    (answer?.outcome === 'held' && answer.holder === id);
  return answer && !mine ? answer : { outcome: 'created', id };
}
