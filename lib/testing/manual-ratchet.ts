import { type FactoryProvider } from '@nestjs/common';
import { Clock } from '../cluster/clock.js';
import { ClusterCoordinator } from '../cluster/cluster-coordinator.js';
import { ClusterMessages } from '../cluster/cluster-messages.js';
import { NoCoordinator } from '../cluster/no-coordinator.js';
import { type EngineParts } from '../engine/engine-parts.js';
import { RatchetRuntime } from '../engine/runtime.js';
import { HandlerTransactions } from '../engine/transactions/handler-transactions.js';
import { Intake } from '../intake/intake.js';
import { ChildIntake } from '../jobs/child-intake.js';
import { RetryPolicy } from '../jobs/retry-policy.js';
import { EngineEvents } from '../observability/engine-events.js';
import { type RatchetDatabaseLink } from '../ratchet.database.js';
import { type ResolvedOptions } from '../ratchet.resolve.js';
import { DATABASE, ENGINE_PARTS, NODE_ID, OPEN_STORE, RESOLVED_OPTIONS } from '../ratchet.tokens.js';
import { ResultWaiter } from '../scheduler/results/result-waiter.js';
import { type JobStore } from '../store/job-store.js';
import { ScheduleStore } from '../store/schedule-store.js';
import { ManualRuntime } from './manual-runtime.js';
import { RatchetTester } from './ratchet-tester.js';
import { testResults } from './test-results.js';
import { RecordingIntake } from './store/recording-intake.js';
import { StoreJobSource } from './store/store-job-source.js';
import { VirtualClock } from './virtual-clock.js';

/** What is asked of a `TestingModuleBuilder` of @nestjs/testing. */
export interface OverridableBuilder {
  overrideProvider(token: unknown): {
    useFactory(options: { factory: (...parts: never[]) => unknown; inject?: unknown[] }): unknown;
  };
}

/**
 * Switches the engine of an application under test off: everything else stays as it is, the database included, and
 * {@link RatchetTester} runs its jobs, one exchange at a time. Time travel moves the clock of the application's own store.
 *
 * @param builder - of an application that imports `RatchetModule`.
 * @returns the same builder.
 *
 * @example
 * ```ts
 * const app = await manualRatchet(Test.createTestingModule({ imports: [AppModule] })).compile();
 * await app.init();
 * await app.get(OrderDesk).place(order); // commits order and job together
 * await RatchetTester.of(app).drain();
 * ```
 */
export function manualRatchet<Builder extends OverridableBuilder>(builder: Builder): Builder {
  override(builder, ClusterCoordinator, [], () => new NoCoordinator());
  override(builder, Clock, [], () => new VirtualClock(Date.now));
  override(
    builder,
    Intake,
    [OPEN_STORE, ClusterMessages, EngineEvents, DATABASE, RESOLVED_OPTIONS],
    recordingIntake,
  );
  override(
    builder,
    ResultWaiter,
    [OPEN_STORE, Clock, EngineEvents, ClusterMessages, RESOLVED_OPTIONS],
    (
      store: JobStore,
      clock: Clock,
      events: EngineEvents,
      messages: ClusterMessages,
      { engine }: ResolvedOptions,
    ) => testResults({ store, clock, events, messages, settings: engine }),
  );
  override(
    builder,
    RatchetRuntime,
    [ENGINE_PARTS, Intake, NODE_ID, Clock, RetryPolicy, ChildIntake, HandlerTransactions, ScheduleStore],
    manualRuntime,
  );
  return builder;
}

function recordingIntake(
  store: JobStore,
  messages: ClusterMessages,
  events: EngineEvents,
  { dataSource }: RatchetDatabaseLink,
  { transaction: ambient, intake: buffer }: ResolvedOptions,
): RecordingIntake {
  return new RecordingIntake({ store, messages, events, dataSource, ambient, buffer });
}

function manualRuntime(
  parts: EngineParts,
  intake: RecordingIntake,
  nodeId: string,
  clock: VirtualClock,
  retryPolicy: RetryPolicy,
  children: ChildIntake,
  transactions: HandlerTransactions,
  schedules: ScheduleStore,
): ManualRuntime {
  const { store, events, settings, version, handlers, messages } = parts;
  const source = new StoreJobSource({
    store,
    intake,
    events,
    settings,
    nodeId,
    version,
    handlers,
    schedules,
  });
  const tester = new RatchetTester({
    source,
    clock,
    settings,
    handlers,
    retryPolicy,
    children,
    transactions,
    messages,
    events,
    nodeId,
  });
  return new ManualRuntime(parts, tester);
}

function override<Parts extends never[]>(
  builder: OverridableBuilder,
  token: unknown,
  inject: readonly NonNullable<FactoryProvider['inject']>[number][],
  factory: (...parts: Parts) => unknown,
): void {
  builder.overrideProvider(token).useFactory({ factory, inject: [...inject] });
}
