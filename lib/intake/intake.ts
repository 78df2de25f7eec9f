import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type Inserted, type JobStore, type NewJob } from '../store/job-store.js';
import { AfterCommit } from './after-commit.js';
import { enqueueError } from './enqueue-error.js';
import { Enlistment, type Enlisted } from './enlistment.js';
import { Gathering } from './gathering.js';
import { InsertRetry } from './insert-retry.js';
import { KeyedTurns } from './keyed-turns.js';
import { Wakeups } from './wakeups.js';

export interface IntakeOptions {
  readonly store: JobStore;
  readonly messages: ClusterMessages;
  /** The app's DataSource, when Ratchet's tables are reached by it. */
  readonly dataSource?: object | undefined;
  /** The module option `transaction`. */
  readonly ambient?: (() => unknown) | undefined;
}

/**
 * The way in for every new job, whoever enqueues it: into the caller's transaction, into a gathered insert, or by a
 * statement of its own when it has a key. Tells the engine after the commit.
 *
 * It checks nothing of a job (the scheduler did) and decides nothing about keys (the store does).
 */
export class Intake {
  readonly #store: JobStore;
  readonly #messages: ClusterMessages;
  readonly #enlistment: Enlistment;
  readonly #inserts: InsertRetry;
  readonly #gathering: Gathering;
  readonly #keyed = new KeyedTurns();
  readonly #afterCommit = new AfterCommit();
  /** The last statement given to a runner: a connection does one thing at a time, and keys are taken in call order. */
  readonly #tails = new WeakMap<object, Promise<unknown>>();
  readonly #outstanding = new Set<Promise<unknown>>();

  constructor({ store, messages, dataSource, ambient }: IntakeOptions) {
    this.#store = store;
    this.#messages = messages;
    this.#inserts = new InsertRetry(store);
    this.#gathering = new Gathering(this.#inserts, (jobs) => new Wakeups(jobs).send(messages));
    this.#enlistment = new Enlistment({
      dataSource,
      ambient,
      reaches: (transaction) => store.reachedBy(transaction),
    });
  }

  /**
   * Resolves when the job is committed, or written into the caller's transaction.
   *
   * @param transaction - an EntityManager or QueryRunner inside a transaction; without it the module's ambient one is asked.
   */
  submit(job: NewJob, transaction?: unknown): Promise<Inserted> {
    return this.#count(this.#submit(job, transaction));
  }

  /** All or nothing; the answers are in the order of the jobs. */
  submitMany(jobs: readonly NewJob[], transaction?: unknown): Promise<readonly Inserted[]> {
    return this.#count(this.#submitMany(jobs, transaction));
  }

  /** Resolves when everything that was submitted so far has its answer. Never rejects. */
  async flush(): Promise<void> {
    await Promise.allSettled(this.#outstanding);
  }

  /** Flushes, and takes its subscriber out of the app's DataSource. Idempotent. */
  async close(): Promise<void> {
    await this.flush();
    this.#afterCommit.close();
  }

  async #submit(job: NewJob, given: unknown): Promise<Inserted> {
    const enlisted = await this.#enlistment.find(given);
    try {
      if (!enlisted && !isKeyed(job)) return await this.#gathering.add(job);
      const [inserted] = await this.#insert([job], enlisted);
      if (!inserted) throw new TypeError('The job store gave no answer for a job.');
      return inserted;
    } catch (error) {
      throw enqueueError(error, enlisted ? [] : [job.id]);
    }
  }

  async #submitMany(jobs: readonly NewJob[], given: unknown): Promise<readonly Inserted[]> {
    const enlisted = await this.#enlistment.find(given);
    try {
      return await this.#insert(jobs, enlisted);
    } catch (error) {
      throw enqueueError(error, enlisted ? [] : jobs.map(({ id }) => id));
    }
  }

  #insert(jobs: readonly NewJob[], enlisted: Enlisted | undefined): Promise<readonly Inserted[]> {
    return enlisted ? this.#join(jobs, enlisted) : this.#commit(jobs);
  }

  async #commit(jobs: readonly NewJob[]): Promise<readonly Inserted[]> {
    const insert = (): Promise<readonly Inserted[]> => this.#inserts.insert(jobs);
    const keys = keysOf(jobs);
    const inserted = await (keys.length > 0 ? this.#keyed.run(keys, insert) : insert());
    new Wakeups(created(jobs, inserted)).send(this.#messages);
    return inserted;
  }

  async #join(jobs: readonly NewJob[], { runner, transaction }: Enlisted): Promise<readonly Inserted[]> {
    let wakeups: Wakeups | undefined;
    const insert = async (): Promise<readonly Inserted[]> => {
      const startedAt = performance.now();
      // Before the insert: a caller that does not wait for us may commit right behind it.
      this.#afterCommit.listen(runner, () => wakeups?.send(this.#messages));
      const inserted = await this.#store.insert(jobs, transaction);
      wakeups = new Wakeups(created(jobs, inserted), startedAt);
      return inserted;
    };
    const turn = (this.#tails.get(runner) ?? Promise.resolve()).then(insert, insert);
    this.#tails.set(runner, turn);
    return await turn;
  }

  #count<T>(answer: Promise<T>): Promise<T> {
    this.#outstanding.add(answer);
    const done = (): void => void this.#outstanding.delete(answer);
    answer.then(done, done);
    return answer;
  }
}

function isKeyed(job: NewJob): boolean {
  return job.businessKey !== undefined || job.idempotencyKey !== undefined;
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
