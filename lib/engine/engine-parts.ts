import { type ClusterCoordinator } from '../cluster/cluster-coordinator.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type Beater } from '../cluster/heartbeat/beater.js';
import { type Clock } from '../cluster/clock.js';
import { type NodeIdentityProvider } from '../cluster/node-identity.js';
import { type Intake } from '../intake/intake.js';
import { type HandlerRegistry } from '../jobs/handler-registry.js';
import { type DebugPoints } from '../observability/debug-points.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type BucketStore } from '../store/bucket-store.js';
import { type JobStore } from '../store/job-store.js';
import { type LockStore } from '../store/lock-store.js';
import { type ScheduleStore } from '../store/schedule-store.js';
import { type EngineSettings } from './engine-settings.js';
import { type ExecutorFactory } from './exchange-loop-parts.js';

/** What {@link RatchetRuntime} is made of. The core module puts it together. */
export interface EngineParts {
  readonly settings: EngineSettings;
  readonly store: JobStore;
  readonly locks: LockStore;
  /** Without it, or with a `MissingScheduleStore`, nothing recurs. */
  readonly schedules?: ScheduleStore;
  /** Without it nobody puts right what lanes say of switched-off priorities. */
  readonly buckets?: Pick<BucketStore, 'agreeOnPriorities'>;
  /** Read at start, when discovery has filled it. */
  readonly handlers: HandlerRegistry;
  readonly executor: ExecutorFactory;
  /** Made at start: what sends the heartbeats. */
  readonly beater: () => Promise<Beater>;
  readonly identity: NodeIdentityProvider;
  readonly messages: ClusterMessages;
  /** Flushed first at a drain. */
  readonly intake?: Pick<Intake, 'flush' | 'abandon' | 'buffered'>;
  readonly coordinator: ClusterCoordinator;
  readonly clock: Clock;
  /** Of this package, for the node's row. */
  readonly version: string;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  /** Closed last, in order, each bounded: what the core module made for the engine. Default: the coordinator, then the store. */
  readonly resources?: readonly { close(): Promise<void> }[];
}
