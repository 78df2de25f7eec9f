import { setTimeout as pause } from 'node:timers/promises';
import { type Inserted, type JobStore, type NewJob } from '../store/job-store.js';
import { faultKindOf, StoreError } from '../store/store-fault.js';

/** Waits between the attempts of one insert, in milliseconds: about half a second in all, then the caller is told. */
const RETRY_DELAYS_MS = [0, 20, 80, 400];

/** An insert that waited this long (a lock timeout, a connect timeout) has waited for its caller: it is not tried again. */
const PATIENCE_MS = 1_500;

/**
 * After so much silence the caller is told that nobody knows, in milliseconds. Longer than a store waits for a connection and
 * a reply of its own; it counts where the connections are the app's, whose driver may wait for ever.
 */
const DEADLINE_MS = 60_000;

/** How many ids are looked up at once after a lost reply. */
const LOOKUPS_AT_ONCE = 4;
const LOOKUPS_AT_MOST = 100;

/**
 * Inserts outside a transaction, through the faults that pass: what was rolled back or refused is sent again, and after a
 * lost reply the ids tell what was committed, so that an enqueue is never doubled and an acknowledged one never lost.
 *
 * It never splits a group (that is {@link Gathering}'s work) and never retries inside somebody else's transaction.
 */
export class InsertRetry {
  constructor(
    private readonly store: Pick<JobStore, 'insert' | 'get'>,
    private readonly deadlineMs = DEADLINE_MS,
  ) {}

  /** All or nothing, as {@link JobStore.insert}. Rejects with the store's last error, or `unknown` at the deadline. */
  async insert(jobs: readonly NewJob[]): Promise<readonly Inserted[]> {
    const startedAt = performance.now();
    let inDoubt = false;
    let clash = false;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#inTime(inDoubt ? this.#insertMissing(jobs, clash) : this.store.insert(jobs));
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
        clash ||= kind === 'bad_row';
        if (delay > 0) await pause(delay);
      }
    }
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const message = `STORE_FAULT: no reply within ${String(this.deadlineMs)} ms`;
      timer = setTimeout(() => reject(new StoreError('unknown', message, 'ETIMEDOUT')), this.deadlineMs);
    });
    // What is too late is rejected, or answered, to nobody.
    work.catch(() => undefined);
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #insertMissing(jobs: readonly NewJob[], clash: boolean): Promise<readonly Inserted[]> {
    const missing = await this.#missing(jobs, clash);
    if (missing.length === 0) return jobs.map(({ id }) => ({ outcome: 'created', id }));
    // An idempotent repeat leaves no row of its own and is asked again, which is harmless. With `history: 'drop'` a job may
    // have run already and left no trace: it is then inserted again, which at-least-once allows.
    const answers = await this.store.insert(missing);
    const inserted = new Map(missing.map(({ id }, index) => [id, own(id, answers[index])]));
    return jobs.map(({ id }) => inserted.get(id) ?? { outcome: 'created', id });
  }

  /**
   * One call is one transaction, so one of its jobs tells of all that can only have been created together: the last, which has
   * had the least time to run and to leave no trace. After a clash with an id of ours each is looked up.
   */
  async #missing(jobs: readonly NewJob[], clash: boolean): Promise<readonly NewJob[]> {
    if (clash) return await this.#eachMissing(jobs);
    const witness = jobs.filter(isCertain).at(-1);
    if (witness && !(await this.store.get(witness.id))) return jobs;
    const doubtful = jobs.filter((job) => !isCertain(job));
    // Their keys know them again, so they are asked again together.
    if (doubtful.length > LOOKUPS_AT_MOST && doubtful.every(hasMemory)) return doubtful;
    return await this.#eachMissing(doubtful);
  }

  async #eachMissing(jobs: readonly NewJob[]): Promise<NewJob[]> {
    const missing = new Set<NewJob>();
    const left = jobs.values();
    const look = async (): Promise<void> => {
      for (const job of left) if (!(await this.store.get(job.id))) missing.add(job);
    };
    await Promise.all(Array.from({ length: LOOKUPS_AT_ONCE }, look));
    return jobs.filter((job) => missing.has(job));
  }
}

/** Whether the job was created if its call was committed at all: no key may have answered with another one. */
function isCertain({ idempotencyKey, onConflict }: NewJob): boolean {
  return idempotencyKey === undefined && onConflict !== 'return';
}

function hasMemory({ idempotencyKey }: NewJob): boolean {
  return idempotencyKey !== undefined;
}

/** A key that is held by the very job that we were inserting says that the lost attempt was committed. */
function own(id: string, answer: Inserted | undefined): Inserted {
  const mine =
    (answer?.outcome === 'existing' && answer.id === id) ||
    (answer?.outcome === 'held' && answer.holder === id);
  return answer && !mine ? answer : { outcome: 'created', id };
}
