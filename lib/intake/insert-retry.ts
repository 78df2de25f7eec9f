import { setTimeout as pause } from 'node:timers/promises';
import { type Inserted, type JobStore, type NewJob } from '../store/job-store.js';
import { faultKindOf, StoreError } from '../store/store-fault.js';

/** Waits between the attempts of one insert, in milliseconds: about half a second in all, then the caller is told. */
const RETRY_DELAYS_MS = [0, 20, 80, 400];

/** Between the attempts of one that does not give up, once those are used up. */
const LONG_DELAY_MS = 1_000;
/** Part of a wait that is random: processes that lost one database do not come back as one. */
const JITTER = 0.2;

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

/** An insert that waits for the database, however long it is away. */
export interface Persistence {
  /** Its abort ends the waiting: what is not committed by then is not, or nobody knows. */
  readonly signal: AbortSignal;
  /** Told of each attempt that failed, and will be followed by another. Must not throw. */
  readonly failed: (error: unknown) => void;
}

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

  /**
   * All or nothing, as {@link JobStore.insert}. Rejects with the store's last error; `unknown` when an attempt may have been
   * committed.
   */
  async insert(jobs: readonly NewJob[], persistence?: Persistence): Promise<readonly Inserted[]> {
    const startedAt = performance.now();
    /** Of the first attempt that may have been committed: what the later ones say does not take that back. */
    let doubt: { readonly error: unknown } | undefined;
    let clash = false;
    for (let attempt = 0; ; attempt += 1) {
      try {
        const work = doubt ? this.#insertMissing(jobs, clash) : this.store.insert(jobs);
        return await this.#inTime(work, persistence?.signal);
      } catch (error) {
        const kind = faultKindOf(error);
        if (kind === 'unknown') doubt ??= { error };
        // In doubt, a bad row may be our own id: the lost attempt was committed after the look. After the second look it is not.
        const passes =
          kind === 'rolled_back' ||
          kind === 'unavailable' ||
          kind === 'unknown' ||
          (doubt !== undefined && kind === 'bad_row' && !(persistence && clash));
        clash = kind === 'bad_row' || (clash && kind !== 'unknown');
        const told = doubt && kind !== 'bad_row' ? doubt.error : error;
        const delay = passes ? delayAfter(attempt, performance.now() - startedAt, persistence) : undefined;
        if (delay === undefined) throw told;
        persistence?.failed(error);
        if (delay > 0) await pause(delay, undefined, { signal: persistence?.signal }).catch(() => undefined);
        if (persistence?.signal.aborted) throw told;
      }
    }
  }

  async #inTime<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let stop: (() => void) | undefined;
    const late = new Promise<never>((_, reject) => {
      const give = (message: string): void => reject(new StoreError('unknown', message, 'ETIMEDOUT'));
      const { deadlineMs } = this;
      timer = setTimeout(() => give(`STORE_FAULT: no reply within ${String(deadlineMs)} ms`), deadlineMs);
      if (!signal) return;
      stop = () => give('STORE_FAULT: no reply before the application stopped');
      signal.addEventListener('abort', stop);
    });
    // What is too late is rejected, or answered, to nobody.
    work.catch(() => undefined);
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
      if (stop) signal?.removeEventListener('abort', stop);
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

/** Undefined: that was the last one. */
function delayAfter(
  attempt: number,
  sinceMs: number,
  persistence: Persistence | undefined,
): number | undefined {
  const delay = RETRY_DELAYS_MS[attempt];
  if (!persistence) return sinceMs > PATIENCE_MS ? undefined : delay;
  if (persistence.signal.aborted) return undefined;
  return (delay ?? LONG_DELAY_MS) * (1 + JITTER * (2 * Math.random() - 1));
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
