import { SystemClock } from './cluster/clock.js';
import { HandlerTransactions } from './engine/transactions/handler-transactions.js';
import { type HandlerRegistry } from './jobs/handler-registry.js';
import { type DebugPoints } from './observability/debug-points.js';
import { type EngineEvents } from './observability/engine-events.js';
import { type RatchetDatabaseLink } from './ratchet.database.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { type JobStore } from './store/job-store.js';
import { DataSourceTransactions } from './store/postgres/connections/data-source-transactions.js';

/** Factory of the provider. */
export function handlerTransactions(
  { engine }: ResolvedOptions,
  store: JobStore,
  { dataSource }: RatchetDatabaseLink,
  handlers: HandlerRegistry,
  events: EngineEvents,
  debug: DebugPoints,
): HandlerTransactions {
  return new HandlerTransactions({
    store,
    source: dataSource && new DataSourceTransactions(dataSource),
    handlers,
    worker: engine.worker === true,
    // Not the port, which stands still in tests: it waits for a database.
    clock: new SystemClock(),
    events,
    debug,
  });
}
