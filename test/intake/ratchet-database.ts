import { type DataSource } from 'typeorm';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { type Wakeup } from '../../lib/cluster/cluster-coordinator.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { Intake } from '../../lib/intake/intake.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { JobMaker } from '../../lib/scheduler/job-maker.js';
import { JobScheduler } from '../../lib/scheduler/job-scheduler.js';
import { SchedulerChildIntake } from '../../lib/scheduler/scheduler-child-intake.js';
import { connectionConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { DataSourceSqlClient } from '../../lib/store/postgres/connections/data-source-sql-client.js';
import { PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { resultWaiter } from '../support/results.js';
import { TYPEORM_VERSIONS } from './typeorm-versions.js';

/** The way in of an app: its database, its DataSource, the store, the intake and the scheduler over them. */
export async function createRatchetDatabase(
  options: { make?: (url: string) => DataSource; ambient?: () => unknown } = {},
) {
  const database = await createTestDatabase();
  const source = (options.make ?? TYPEORM_VERSIONS[0].make)(database.url);
  await source.initialize();
  const store = new PostgresJobStore({
    schema: 'ratchet',
    migrations: 'auto',
    engine: connectionConfigOf(source),
    client: new DataSourceSqlClient(source),
    exchangeConnections: 1,
    nodeLabel: 'test',
    startup: { onDatabaseDown: 'fail', timeoutMs: 10_000 },
    inlinePayloadBytes: 1_000,
  });
  await store.open();
  const wakeups: Wakeup[] = [];
  const messages = new ClusterMessages(new NoCoordinator(), 'test');
  messages.onWakeup((wakeup) => wakeups.push(wakeup));
  const events = new EngineEvents();
  const intake = new Intake({ store, messages, events, dataSource: source, ambient: options.ambient });
  const maker = new JobMaker({ payloadBytes: 1_000_000, idempotencyExpiryMs: 86_400_000 });
  const results = resultWaiter({ store, messages, events });
  return {
    database,
    source,
    store,
    messages,
    wakeups,
    intake,
    events,
    results,
    children: new SchedulerChildIntake(intake, maker, results),
    scheduler: new JobScheduler({ intake, maker, store, messages, events, results }),
    /** Ids of live jobs with what tells them apart, in order of id. */
    live: () =>
      database.query<{ id: string; name: string; business_key: string | null }>(
        'select id, name, business_key from ratchet.job order by id',
      ),
    async close() {
      await results.close();
      await intake.close();
      await store.close();
      await source.destroy();
      await database.drop();
    },
  };
}

export type RatchetDatabase = Awaited<ReturnType<typeof createRatchetDatabase>>;

/** Resolves when a session of the database waits for a lock. */
export async function somebodyWaitsForALock(database: TestDatabase): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  while ((await database.query(waiting)).length === 0);
}
