import { type LoggerService, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { JobScheduler, RatchetModule, RatchetRuntime } from 'nestjs-ratchet';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { SystemClock } from '../../lib/cluster/clock.js';
import { HandlerTransactions } from '../../lib/engine/transactions/handler-transactions.js';
import { HandlerRegistry } from '../../lib/jobs/handler-registry.js';
import { DebugPoints } from '../../lib/observability/debug-points.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { JobStore } from '../../lib/store/job-store.js';
import { DataSourceTransactions } from '../../lib/store/postgres/connections/data-source-transactions.js';
import { ended } from '../module/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

export interface TransactionalApp {
  readonly app: TestingModule;
  readonly source: DataSource;
  readonly scheduler: JobScheduler;
  readonly runtime: RatchetRuntime;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  readonly store: JobStore;
  /** The job's end. */
  readonly ended: (id: string) => Promise<unknown>;
}

const silent: LoggerService = { log: () => undefined, warn: () => undefined, error: () => undefined };

/** Apps with a DataSource of their own, on one database with a table of notes. */
export class TransactionalFixture {
  database!: TestDatabase;
  readonly #open: { app: TestingModule; source: DataSource }[] = [];

  async open(): Promise<void> {
    this.database = await createTestDatabase();
    await this.database.query('create table note (text text)');
  }

  async boot(
    handlers: Type | Type[],
    {
      source: sourceOptions = {},
      options = {},
      make = (given) => new DataSource(given),
      url = this.database.url,
      guardMs,
    }: {
      source?: object;
      options?: object;
      make?: (options: DataSourceOptions) => DataSource;
      url?: string;
      /** How long a statement of ours may be without an answer on a connection of the DataSource. */
      guardMs?: number;
    } = {},
  ): Promise<TransactionalApp> {
    const source = make({ type: 'postgres', url, poolSize: 6, applicationName: 'the-app', ...sourceOptions });
    await source.initialize();
    const testing = Test.createTestingModule({
      imports: [
        RatchetModule.forRoot({
          dataSource: source,
          backoff: { type: 'fixed', delay: 5, jitter: 0 },
          maxRetries: 1,
          ...options,
        }),
      ],
      providers: [handlers].flat(),
    }).setLogger(silent);
    if (guardMs !== undefined) {
      testing.overrideProvider(HandlerTransactions).useFactory({
        factory: (store: JobStore, registry: HandlerRegistry, events: EngineEvents, debug: DebugPoints) =>
          new HandlerTransactions({
            store,
            source: new DataSourceTransactions(source, guardMs),
            handlers: registry,
            worker: true,
            clock: new SystemClock(),
            events,
            debug,
          }),
        inject: [JobStore, HandlerRegistry, EngineEvents, DebugPoints],
      });
    }
    const app = await testing.compile();
    this.#open.push({ app, source });
    await app.init();
    return {
      app,
      source,
      scheduler: app.get(JobScheduler),
      runtime: app.get(RatchetRuntime),
      events: app.get(EngineEvents, { strict: false }),
      debug: app.get(DebugPoints, { strict: false }),
      store: app.get(JobStore),
      ended: (id) => ended(app, id),
    };
  }

  async notes(): Promise<string[]> {
    return (await this.database.query<{ text: string }>('select text from note order by text')).map(
      ({ text }) => text,
    );
  }

  async clear(): Promise<void> {
    for (const { app, source } of this.#open.splice(0)) {
      await app.close();
      if (source.isInitialized) await source.destroy();
    }
    await this.database.query('truncate note, ratchet.job');
  }

  async close(): Promise<void> {
    await this.clear();
    await this.database.drop();
  }
}
