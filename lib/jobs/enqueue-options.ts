import { type EntityManager, type QueryRunner } from 'typeorm';
import { type Backoff } from './backoff.js';
import { type Duration } from './duration.js';
import { type JobPriority } from './priority.js';

/** An idempotency key with its own expiry. */
export interface IdempotencyKey {
  key: string;
  /** How long a repeat finds the first job. @defaultValue the module's `idempotencyExpiry`, `'24h'` */
  expiresIn?: Duration | undefined;
}

/** When a job is due: after a delay, or at a time, not both. Neither is now. */
export type EnqueueWhen =
  | {
      /** Counted from the insert, by the database's clock. */ delay?: Duration | undefined;
      runAt?: undefined;
    }
  | { delay?: undefined; /** A time in the past is now. */ runAt?: Date | undefined };

/** What one job may say that its definition does not, or says otherwise. */
export interface EnqueueOverrides {
  /** @defaultValue the definition's */
  priority?: JobPriority | undefined;
  /** @defaultValue the definition's */
  lane?: string | undefined;
  /** At most 20, each 1 to 100 characters. */
  tags?: readonly string[] | undefined;
  /** Failures that are followed by another execution, for this job. @defaultValue the definition's, at the time of the failure */
  maxRetries?: number | undefined;
  /** @defaultValue the definition's, at the time of the failure */
  backoff?: Backoff | undefined;
  /** The longest that one execution may run. @defaultValue the definition's, at the time of the execution */
  timeout?: Duration | undefined;
  /** JSON that travels with the job and that the handler finds in `ctx.metadata`. At most 16 kB. */
  metadata?: unknown;
}

/** Keys that tell jobs apart. Both are global, not per definition. */
export interface EnqueueKeys {
  /** At most one live job holds it. 1 to 200 characters. */
  businessKey?: string | undefined;
  /**
   * What to do when a live job holds the business key: refuse with `BusinessKeyHeldError`, return the holder's handle
   * (`created: false`), or cancel a pending holder and take its place.
   *
   * @defaultValue `'reject'`
   */
  onConflict?: 'reject' | 'return' | 'replace' | undefined;
  /** A repeat within the expiry returns the first job (`created: false`), also after that one ended. 1 to 200 characters. */
  idempotencyKey?: string | IdempotencyKey | undefined;
}

/** The caller's transaction. */
export interface EnqueueTransaction {
  /** The jobs are committed with it, or not at all. It must be active. */
  transaction?: EntityManager | QueryRunner | undefined;
}

/** The options of one job within `enqueueMany`. */
export type EnqueueItemOptions = EnqueueOverrides & EnqueueKeys & EnqueueWhen;

/** The default: the call resolves when the job is committed, or written into the caller's transaction. */
export interface SavedDurability {
  /**
   * `'saved'`: the call resolves when the job is committed. `'buffered'`: it resolves at once, the job is saved a moment later with
   * others, and the handle's `saved` tells what became of that; not with keys or in a transaction.
   *
   * @defaultValue `'saved'`
   */
  durability?: 'saved' | undefined;
}

/** The call resolves at once; `JobHandle.saved` tells the rest. Until then the job is in the memory of this process only. */
export interface BufferedDurability {
  durability: 'buffered';
  transaction?: undefined;
}

/** The options of `enqueue`. */
export type EnqueueOptions = EnqueueItemOptions & EnqueueTransaction & SavedDurability;

/** The options of an `enqueue` that resolves before the job is saved. It takes no key: the answer about a key is worth waiting for. */
export type BufferedEnqueueOptions = EnqueueOverrides &
  EnqueueWhen &
  BufferedDurability & { [Key in keyof EnqueueKeys]?: undefined };

/** The options of `enqueueNamed`: the payload's version is said here, because no definition says it. */
export type EnqueueNamedOptions = (EnqueueOptions | BufferedEnqueueOptions) & {
  /** Of the payload's shape. @defaultValue that of the definition, if this process has it, else `1` */
  version?: number | undefined;
};

/** The options of `ctx.enqueue`: a child is saved while its parent's claim stands, never later. */
export type ChildEnqueueOptions = EnqueueItemOptions & EnqueueTransaction;

/** The options of `enqueueMany` as a whole: defaults for its jobs, and the transaction. */
export type EnqueueManyOptions = EnqueueOverrides & EnqueueWhen & EnqueueTransaction & SavedDurability;

/** The same of an `enqueueMany` that resolves before its jobs are saved; their items have no keys. */
export type BufferedEnqueueManyOptions = EnqueueOverrides & EnqueueWhen & BufferedDurability;

/** What follows the definition in a call of `enqueue`: the payload may be left out when the definition takes none. */
export type EnqueueArgs<In, Options = EnqueueOptions | BufferedEnqueueOptions> = undefined extends In
  ? [payload?: In, options?: Options]
  : [payload: In, options?: Options];

/** One job of `enqueueMany`. */
export interface EnqueueManyItem<In> {
  payload: In;
  options?: EnqueueItemOptions | undefined;
}

/** The options of `JobHandle.result()`. */
export interface ResultOptions {
  /** How long to wait at most. @defaultValue none: it waits until the job has ended, however long that takes */
  timeout?: Duration | undefined;
  /** Its abort ends the wait, not the job. */
  signal?: AbortSignal | undefined;
}

/** What `enqueue` returns. */
export interface JobHandle<Result = unknown> {
  /** UUIDv7. Of the first job when this enqueue was a repeat. */
  readonly id: string;
  /** False: a repeat of an idempotency key, or the holder of a business key under `onConflict: 'return'`. */
  readonly created: boolean;
  /**
   * Resolves when the job is committed. Of interest with `durability: 'buffered'` only: for every other job it is resolved already
   * (within a transaction of yours as well, whose commit is yours to know of). All jobs of one `enqueueMany` are saved together.
   * Nobody has to await it: a job that could not be saved is logged and told as `job.unsaved`.
   *
   * @throws what the enqueue would have thrown without `'buffered'`: the job is not there.
   * @throws EnqueueInDoubtError when nobody can say whether it is.
   * @throws EnqueueAbandonedError when the application stopped first.
   *
   * @example
   * const { saved } = await scheduler.enqueue(TrackClick, { page }, { durability: 'buffered' });
   * await saved; // only where it matters
   */
  readonly saved: Promise<void>;
  /**
   * Waits until the job has ended, wherever it runs. All handles of a process that wait share one question to the database,
   * at most 20 a second.
   *
   * @returns what the handler returned; `undefined` when that was nothing.
   * @throws JobFailedError when it failed for good; until then it waits through retries.
   * @throws ResultNotKeptError when it succeeded, and what the handler returned was too large to be kept, or could not be read.
   * @throws JobCanceledError
   * @throws JobNotFoundError when its transaction was rolled back, it could not be saved, retention has removed it, or it succeeded and its definition
   *   keeps nothing (`history: 'drop'`). Inside a transaction that is still open it waits for the commit.
   * @throws ResultTimeoutError after `timeout`; the job goes on. Without `timeout` there is no limit.
   * @throws ResultAbandonedError when the application closes first.
   * @throws InvalidResultOptionError, ResultOfItselfError, ResultOfUncommittedError; and the reason of `signal`.
   *
   * @example
   * const handle = await scheduler.enqueue(BuildReport, { month: '2026-11' });
   * const { pages } = await handle.result({ timeout: '30s' });
   */
  result(options?: ResultOptions): Promise<Result>;
}
