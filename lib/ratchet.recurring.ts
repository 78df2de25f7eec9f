import { type ClusterMessages } from './cluster/cluster-messages.js';
import { type HandlerRegistry } from './jobs/handler-registry.js';
import { type EngineEvents } from './observability/engine-events.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { type JobMaker } from './scheduler/job-maker.js';
import { RecurringScheduler } from './scheduler/recurring/recurring-scheduler.js';
import { type ResultWaiter } from './scheduler/results/result-waiter.js';
import { type ScheduleStore } from './store/schedule-store.js';

/** The `RecurringScheduler` of an application. */
export function recurringScheduler(
  store: ScheduleStore,
  maker: JobMaker,
  messages: ClusterMessages,
  events: EngineEvents,
  handlers: HandlerRegistry,
  results: ResultWaiter,
  { recurringTimeZone: timeZone }: ResolvedOptions,
): RecurringScheduler {
  return new RecurringScheduler({ store, maker, messages, events, handlers, results, timeZone });
}
