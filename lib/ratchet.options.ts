import { type EntityManager, type DataSourceOptions, type DataSource } from 'typeorm';
import { type InjectionToken } from '@nestjs/common';
import { type Backoff } from './jobs/backoff.js';
import { type Duration } from './jobs/duration.js';

/** Settings of one lane on this node. */
export interface LaneOptions {
  /** How many jobs of the lane run at once on this node. @defaultValue `10` */
  concurrency?: number;
}

/** Own connection: any of TypeORM's PostgreSQL connection settings, or a URL. */
export interface RatchetConnectionOptions {
  url?: string;
  host?: string;
  port?: number;
  username?: string;
  password?: string | (() => string | Promise<string>);
  database?: string;
  ssl?: boolean | object;
  /** Passed on to `pg` as it is. */
  extra?: Record<string, unknown>;
}

/** What `RatchetModule.forRoot` takes. Exactly one of `dataSource`, `connection` and `database`. */
export interface RatchetOptions {
  /** The app's DataSource: `'default'`, a name, an injection token, or the instance itself. */
  dataSource?: string | DataSource | InjectionToken;
  connection?: RatchetConnectionOptions | string;
  /** A PostgreSQL server that Ratchet starts itself, for development. Refused under NODE_ENV=production. */
  database?: 'embedded' | { embedded: { dataDir?: string; port?: number } };

  /** `false`: this process only enqueues and asks. @defaultValue `true` */
  worker?: boolean;
  /** @defaultValue `hostname-pid-8hex` */
  nodeId?: string;
  /** @defaultValue `'ratchet'` */
  schema?: string;
  /** @defaultValue `'auto'` */
  migrations?: 'auto' | 'check' | 'off';

  /** Short for `lanes.default.concurrency`. @defaultValue `10` */
  concurrency?: number;
  lanes?: Record<string, LaneOptions>;
  /** @defaultValue `3` */
  maxRetries?: number;
  backoff?: Backoff;
  /** Ageing: an overdue job rises by one priority for each of these; `0` is off. @defaultValue `'15m'` */
  priorityBoost?: Duration;
  /** @defaultValue `'2s'` */
  pollInterval?: Duration;
  /** @defaultValue `3` */
  maxCrashRedeliveries?: number;
  /** How long a drain waits for running jobs. @defaultValue `'25s'` */
  drainTimeout?: Duration;
  /** How long an idempotency key is remembered unless it says otherwise. @defaultValue `'24h'` */
  idempotencyExpiry?: Duration;
  limits?: {
    /** @defaultValue `1_000_000` */
    payloadBytes?: number;
    /** @defaultValue `256_000` */
    resultBytes?: number;
    /** @defaultValue `16_000` */
    errorBytes?: number;
  };
  retention?: {
    /** Successes and cancellations. @defaultValue `'7d'` */
    history?: Duration;
    /** @defaultValue `'30d'` */
    executions?: Duration;
    /** @defaultValue `'30d'` */
    deadLetter?: Duration;
  };
  pool?: {
    /** Connections for exchanges. @defaultValue `1` */
    exchange?: number;
    /** Client pool with `connection` or `embedded`. @defaultValue `4`, with `worker: false` `2` */
    client?: number;
  };
  /** What to do when the database is away at start: wait for it, or fail at once. @defaultValue `'wait'` up to one minute */
  startup?: { onDatabaseDown?: 'wait' | 'fail'; timeout?: Duration };
  /** The ambient transaction of @Transactional users. */
  transaction?: () => EntityManager | undefined;
}

export type { DataSourceOptions };
