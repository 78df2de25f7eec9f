import { EnqueueAbandonedError } from '../errors/intake-errors.js';
import { RenewedSet } from '../collections/renewed-set.js';
import { type Inserted, type NewJob } from '../store/job-store.js';
import { faultKindOf } from '../store/store-fault.js';
import { Backlog, type BacklogLimits } from './backlog.js';
import { enqueueError } from './enqueue-error.js';
import { Gathering } from './gathering.js';
import { type InsertRetry } from './insert-retry.js';
import { type UnsavedReport } from './unsaved-report.js';

const UNBOUNDED: BacklogLimits = { jobs: Infinity, bytes: Infinity };

/** A call that was taken: its jobs are on their way. */
export interface Buffered {
  /** Resolves when they are committed. A rejection that nobody looks at ends no process. */
  readonly saved: Promise<void>;
}

interface Caller {
  readonly jobs: readonly NewJob[];
  readonly enter: () => void;
  readonly turnAway: (error: unknown) => void;
}

export interface SaveBufferParts {
  readonly inserts: Pick<InsertRetry, 'insert'>;
  /** Must not throw. */
  readonly committed: (jobs: readonly NewJob[], inserted: readonly Inserted[]) => void;
  readonly limits: BacklogLimits;
  readonly report: UnsavedReport;
}

/**
 * The jobs of `durability: 'buffered'`: taken at once, saved in the order of the calls by gathered inserts, one after the other,
 * which outlast an outage of the database.
 *
 * What is taken counts against the limits until it is committed or refused. Beyond them the calls wait for room, in order; as
 * much as fits into the buffer may wait for it, and whoever comes after that is refused at once.
 */
export class SaveBuffer {
  readonly #parts: SaveBufferParts;
  readonly #gathering: Gathering;
  readonly #taken: Backlog;
  readonly #before: Backlog;
  readonly #callers: Caller[] = [];
  readonly #outstanding = new RenewedSet<Promise<unknown>>();
  #stop = new AbortController();
  #isClosed = false;

  constructor(parts: SaveBufferParts) {
    this.#parts = parts;
    this.#taken = new Backlog(parts.limits);
    this.#before = new Backlog(parts.limits);
    this.#gathering = new Gathering(
      { insert: (jobs) => this.#insert(jobs) },
      (jobs, inserted) => {
        parts.report.worked();
        parts.committed(jobs, inserted);
      },
      { waiting: new Backlog(UNBOUNDED), inFlight: 1 },
    );
  }

  /** Jobs that are not saved yet, those of waiting calls included. */
  get jobs(): number {
    return this.#taken.jobs + this.#before.jobs;
  }

  /**
   * Resolves when there is room. The jobs have neither keys nor parents.
   *
   * @throws IntakeFullError when too many calls wait for room already, EnqueueAbandonedError when the application stops meanwhile or
   *   has stopped.
   */
  async add(jobs: readonly NewJob[]): Promise<Buffered> {
    if (jobs.length === 0) return { saved: Promise.resolve() };
    if (this.#isClosed) throw new EnqueueAbandonedError();
    if (this.#callers.length === 0 && this.#taken.hasRoomFor(jobs)) return this.#take(jobs);
    this.#before.enter(jobs);
    const room = new Promise<Buffered>((resolve, reject) => {
      this.#callers.push({ jobs, enter: () => resolve(this.#take(jobs)), turnAway: reject });
    });
    return await this.#remember(room);
  }

  /** Resolves when all that was added so far is saved or refused. Never rejects. */
  async flush(): Promise<void> {
    // Who waits for room is followed by what it saves.
    await Promise.allSettled([...this.#outstanding].map((one) => one.then(savedOf)));
  }

  /** Gives up whatever is not saved, and says so: those who wait are refused. What is added from now on is taken as ever. */
  abandon(): void {
    for (const { jobs, turnAway } of this.#callers.splice(0)) {
      const error = new EnqueueAbandonedError();
      this.#before.leave(jobs);
      this.#parts.report.unsaved(jobs, error);
      turnAway(error);
    }
    this.#gathering.abandon(() => new EnqueueAbandonedError());
    this.#stop.abort();
    this.#stop = new AbortController();
  }

  /** Abandons, and refuses whatever comes from now on: nobody would wait for it. */
  close(): void {
    this.#isClosed = true;
    this.abandon();
  }

  #take(jobs: readonly NewJob[]): Buffered {
    this.#taken.enter(jobs);
    return { saved: this.#remember(this.#save(jobs)) };
  }

  async #save(jobs: readonly NewJob[]): Promise<void> {
    try {
      await this.#gathering.add(jobs);
    } catch (cause) {
      const error = enqueueError(
        cause,
        jobs.map(({ id }) => id),
      );
      this.#parts.report.unsaved(jobs, error);
      throw error;
    } finally {
      this.#taken.leave(jobs);
      this.#admit();
    }
  }

  #admit(): void {
    for (;;) {
      const [next] = this.#callers;
      if (!next || !this.#taken.hasRoomFor(next.jobs)) return;
      this.#callers.shift();
      this.#before.leave(next.jobs);
      next.enter();
    }
  }

  async #insert(jobs: readonly NewJob[]): Promise<readonly Inserted[]> {
    const { inserts, report } = this.#parts;
    // The rest of a group that is divided.
    if (this.#isClosed) throw new EnqueueAbandonedError();
    const { signal } = this.#stop;
    const failed = (error: unknown): void => {
      // One deadlock is not worth a line: it is mended at once.
      if (faultKindOf(error) !== 'rolled_back') report.waiting(this.jobs, error);
    };
    try {
      return await inserts.insert(jobs, { signal, failed });
    } catch (cause) {
      const kind = faultKindOf(cause);
      // It would have been tried again.
      const isCutOff = signal.aborted && (kind === 'unavailable' || kind === 'rolled_back');
      throw isCutOff ? new EnqueueAbandonedError({ cause }) : cause;
    }
  }

  #remember<T>(answer: Promise<T>): Promise<T> {
    this.#outstanding.add(answer);
    const done = (): void => void this.#outstanding.delete(answer);
    answer.then(done, done);
    return answer;
  }
}

function savedOf(answer: unknown): unknown {
  return (answer as Partial<Buffered> | undefined)?.saved;
}
