import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type Clock } from '../cluster/clock.js';
import { type DebugPoints } from '../observability/debug-points.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type LockStore } from '../store/lock-store.js';
import { type ScheduleStore } from '../store/schedule-store.js';

/** Who logs failed statements, at most a line a second for the whole node, and says when they work again. */
export interface RecurringFaults {
  /** With `retryInMs` it is tried again then, and {@link RecurringFaults.worked} follows. */
  failed(where: string, error: unknown, retryInMs?: number): void;
  worked(where: string): void;
  /** How long to wait after the n-th failure in a row. */
  delayMs(failures: number): number;
}

export interface RecurringLogger {
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What the running side of recurring schedules is made of. */
export interface RecurringParts {
  readonly store: ScheduleStore;
  readonly locks: LockStore;
  readonly messages: ClusterMessages;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  readonly logger: RecurringLogger;
  readonly faults: RecurringFaults;
}
