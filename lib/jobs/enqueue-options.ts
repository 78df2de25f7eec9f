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

/** The options of `enqueue`. */
export type EnqueueOptions = EnqueueItemOptions & EnqueueTransaction;

/** The options of `enqueueMany` as a whole: defaults for its jobs, and the transaction. */
export type EnqueueManyOptions = EnqueueOverrides & EnqueueWhen & EnqueueTransaction;

/** What follows the definition in a call of `enqueue`: the payload may be left out when the definition takes none. */
export type EnqueueArgs<In> = undefined extends In
  ? [payload?: In, options?: EnqueueOptions]
  : [payload: In, options?: EnqueueOptions];

/** One job of `enqueueMany`. */
export interface EnqueueManyItem<In> {
  payload: In;
  options?: EnqueueItemOptions | undefined;
}

declare const resultType: unique symbol;

/** What `enqueue` returns. */
export interface JobHandle<Result = unknown> {
  /** UUIDv7. Of the first job when this enqueue was a repeat. */
  readonly id: string;
  /** False: a repeat of an idempotency key, or the holder of a business key under `onConflict: 'return'`. */
  readonly created: boolean;
  /** Never set: carries the type. */
  readonly [resultType]?: Result;
}
