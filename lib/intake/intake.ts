import { setTimeout as pause } from 'node:timers/promises';
import { RenewedSet } from '../collections/renewed-set.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type Inserted, type JobStore, type NewJob } from '../store/job-store.js';
import { type Accepted, accepted } from './accepted.js';
import { AfterCommit } from './after-commit.js';
import { announce } from './announce.js';
import { Backlog, type BacklogLimits } from './backlog.js';
import { enqueueError } from './enqueue-error.js';
import { Enlistment } from './enlistment.js';
import { Gathering } from './gathering.js';
import { InsertRetry } from './insert-retry.js';
import { type JoinedTransaction } from './joined-transaction.js';
import { JoinedTransactions } from './joined-transactions.js';
import { KeyedTurns } from './keyed-turns.js';
import { type Buffered, SaveBuffer } from './save-buffer.js';
import { type ServedLanes } from './served-lanes.js';
import { type TransactionEnd } from './transaction-end.js';
import { type IntakeLogger, UnsavedReport } from './unsaved-report.js';
import { Wakeups } from './wakeups.js';

/** What became of one job; written into a caller's transaction, it is not there before that has committed, if it does. */
export type Submitted = Accepted & { readonly within?: TransactionEnd };

export interface IntakeOptions {
  readonly store: JobStore;
  readonly messages: ClusterMessages;
  /** Told of every commit that is heard of. */
  readonly events?: EngineEvents | undefined;
  /** The app's DataSource, when Ratchet's tables are reached by it. */
  readonly dataSource?: object | undefined;
  /** The module option `transaction`. */
  readonly ambient?: (() => unknown) | undefined;
  /** How many jobs with keys may wait. */
  readonly limits?: BacklogLimits | undefined;
  /** Told of the lanes that jobs go into. Must not throw. */
  readonly lanes?: Pick<ServedLanes, 'note'> | undefined;
  /** What `durability: 'buffered'` may keep in memory. */
  readonly buffer?: BacklogLimits | undefined;
  /** Hears of buffered jobs that are not saved. */
  readonly logger?: IntakeLogger | undefined;
}

/** The default of the module option `intake`. */
const BUFFER: BacklogLimits = { jobs: 10_000, bytes: 16_000_000 };
/** What a close waits for buffered jobs, in milliseconds; the drain has had its time for them. */
const LAST_FLUSH_MS = 1_000;
const SILENT: IntakeLogger = { log: () => undefined, warn: () => undefined, error: () => undefined };

/**
 * The way in for every new job, whoever enqueues it: into the caller's transaction, into a gathered insert, or by a
 * statement of its own when it has a key. Tells the engine after the commit.
 *
 * It checks nothing of a job (the scheduler did) and decides nothing about keys (the store does).
 */
export class Intake {
  readonly #store: JobStore;
  readonly #messages: ClusterMessages;
  readonly #events: EngineEvents | undefined;
  readonly #lanes: Pick<ServedLanes, 'note'> | undefined;
  readonly #enlistment: Enlistment;
  readonly #inserts: InsertRetry;
  readonly #gathering: Gathering;
  readonly #report: UnsavedReport;
  readonly #buffer: SaveBuffer;
  readonly #keyed = new KeyedTurns();
  /** For their keys and a slot. */
  readonly #waiting: Backlog;
  readonly #joined: JoinedTransactions;
  readonly #afterCommit: AfterCommit;
  readonly #outstanding = new RenewedSet<Promise<unknown>>();

  constructor({ store, messages, events, dataSource, ambient, limits, ...options }: IntakeOptions) {
    this.#store = store;
    this.#messages = messages;
    this.#events = events;
    this.#lanes = options.lanes;
    this.#waiting = new Backlog(limits);
    this.#inserts = new InsertRetry(store);
    const committed = (jobs: readonly NewJob[], inserted: readonly Inserted[]): void => {
      new Wakeups(created(jobs, inserted)).send(messages);
      announce(events, jobs, inserted);
    };
    this.#gathering = new Gathering(this.#inserts, committed);
    this.#report = new UnsavedReport(options.logger ?? SILENT, events);
    this.#buffer = new SaveBuffer({
      inserts: this.#inserts,
      committed,
      limits: options.buffer ?? BUFFER,
      report: this.#report,
    });
    this.#joined = new JoinedTransactions((transaction) => store.enlist(transaction));
    this.#afterCommit = new AfterCommit(this.#joined);
    this.#enlistment = new Enlistment({
      dataSource,
      ambient,
      reaches: (transaction) => store.reachedBy(transaction),
      join: (runner) => this.#joined.of(runner, this.#afterCommit.watch(runner)),
    });
  }

  /**
   * Resolves when the job is committed, or written into the caller's transaction.
   *
   * @param making - the job, while it is still being checked: the transaction that counts is the one of the call, and the
   *   checks may last longer than that.
   * @param transaction - an EntityManager or QueryRunner inside a transaction; without it the module's ambient one is asked.
   */
  async submit(making: Promise<NewJob>, transaction?: unknown): Promise<Submitted> {
    const joined = this.#find(transaction, making);
    const [inserted] = joined
      ? await this.#join(joined, async () => [await making])
      : await this.#commit([await making], true);
    if (!inserted) throw new TypeError('The job store gave no answer for a job.');
    return inserted;
  }

  /** All or nothing; the answers are in the order of the jobs. */
  async submitMany(making: Promise<readonly NewJob[]>, transaction?: unknown): Promise<readonly Submitted[]> {
    const joined = this.#find(transaction, making);
    return joined ? await this.#join(joined, () => making) : await this.#commit(await making, false);
  }

  /**
   * Resolves when the jobs are in the buffer, from where they are saved together, all or nothing. They have no keys.
   *
   * @throws IntakeFullError, EnqueueAbandonedError
   */
  async submitBuffered(making: Promise<readonly NewJob[]>): Promise<Buffered> {
    return await this.#buffer.add(this.#noted(await making));
  }

  /** Whether a plain call would join a transaction of its own accord now. */
  inTransaction(): boolean {
    return this.#enlistment.isUnderWay();
  }

  /** Jobs of `durability: 'buffered'` that are not saved yet. */
  get buffered(): number {
    return this.#buffer.jobs;
  }

  /** Resolves when everything that was submitted so far has its answer. Never rejects. */
  async flush(): Promise<void> {
    await Promise.all([Promise.allSettled(this.#outstanding), this.#buffer.flush()]);
  }

  /** Buffered jobs that are not saved yet never will be: they are refused, and said to be. */
  abandon(): void {
    this.#buffer.abandon();
    // The refusals arrive within this turn.
    setImmediate(() => this.#report.tell());
  }

  /**
   * Flushes, and takes its subscriber out of the app's DataSource. Idempotent. Buffered jobs that are not saved soon (a handler that
   * outlived the drain may have made some while the database is away) are refused, and so are those that come later.
   */
  async close(): Promise<void> {
    await Promise.all([Promise.allSettled(this.#outstanding), this.#closeBuffer()]);
    this.#report.tell();
    this.#afterCommit.close();
  }

  async #closeBuffer(): Promise<void> {
    const enough = new AbortController();
    const late = pause(LAST_FLUSH_MS, undefined, { signal: enough.signal }).catch(() => undefined);
    await Promise.race([this.#buffer.flush(), late]);
    enough.abort();
    this.#buffer.close();
    // What was refused says so.
    await this.#buffer.flush();
  }

  /** Called before anything is awaited. */
  #find(given: unknown, making: Promise<unknown>): JoinedTransaction | undefined {
    // Awaited later, or never when this throws.
    making.catch(() => undefined);
    return this.#enlistment.find(given);
  }

  async #commit(jobs: readonly NewJob[], gathered: boolean): Promise<readonly Accepted[]> {
    try {
      return await this.#count(this.#insert(this.#noted(jobs), gathered));
    } catch (error) {
      throw enqueueError(
        error,
        jobs.map(({ id }) => id),
      );
    }
  }

  async #insert(jobs: readonly NewJob[], gathered: boolean): Promise<readonly Accepted[]> {
    const [first] = jobs;
    const keys = keysOf(jobs);
    if (gathered && first && keys.length === 0) return await this.#gathering.add([first]);
    const insert = (): Promise<readonly Inserted[]> => this.#inserts.insert(jobs);
    const inserted = await (keys.length > 0 ? this.#inTurn(keys, jobs, insert) : insert());
    new Wakeups(created(jobs, inserted)).send(this.#messages);
    announce(this.#events, jobs, inserted);
    return accepted(jobs, inserted);
  }

  async #inTurn<T>(keys: readonly string[], jobs: readonly NewJob[], work: () => Promise<T>): Promise<T> {
    this.#waiting.enter(jobs);
    try {
      return await this.#keyed.run(keys, work);
    } finally {
      this.#waiting.leave(jobs);
    }
  }

  #join(joined: JoinedTransaction, making: () => Promise<readonly NewJob[]>): Promise<readonly Submitted[]> {
    return this.#joined.inTurn(joined, async () => {
      const jobs = this.#noted(await making());
      let inserted: readonly Inserted[];
      try {
        await joined.requireOpen();
        await this.#enlistment.requireReach(joined);
        inserted = await this.#count(this.#write(jobs, joined));
      } catch (error) {
        this.#joined.doubt(joined);
        throw enqueueError(error, []);
      }
      // A refusal has written nothing, and the transaction goes on.
      return accepted(jobs, inserted).map((one) => ({ ...one, within: joined.end }));
    });
  }

  async #write(jobs: readonly NewJob[], joined: JoinedTransaction): Promise<readonly Inserted[]> {
    let committed = (): void => undefined;
    const startedAt = performance.now();
    // Before the insert: who sends COMMIT as text does not wait for us.
    this.#afterCommit.listen(joined.runner, () => committed());
    const inserted = await this.#store.insert(jobs, joined);
    const wakeups = new Wakeups(created(jobs, inserted), startedAt);
    committed = () => {
      if (joined.isUndone) return;
      wakeups.send(this.#messages);
      announce(this.#events, jobs, inserted);
    };
    return inserted;
  }

  #noted(jobs: readonly NewJob[]): readonly NewJob[] {
    if (this.#lanes) for (const { lane } of jobs) this.#lanes.note(lane);
    return jobs;
  }

  #count<T>(answer: Promise<T>): Promise<T> {
    this.#outstanding.add(answer);
    const done = (): void => void this.#outstanding.delete(answer);
    answer.then(done, done);
    return answer;
  }
}

function keysOf(jobs: readonly NewJob[]): string[] {
  const keys = new Set<string>();
  for (const { businessKey, idempotencyKey } of jobs) {
    if (businessKey !== undefined) keys.add(`b${businessKey}`);
    if (idempotencyKey) keys.add(`i${idempotencyKey.key}`);
  }
  return [...keys];
}

function created(jobs: readonly NewJob[], inserted: readonly Inserted[]): NewJob[] {
  return jobs.filter((_, index) => inserted[index]?.outcome === 'created');
}
