import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { RatchetBuckets } from '../buckets/ratchet-buckets.js';
import { ClusterCoordinator } from '../cluster/cluster-coordinator.js';
import { ClusterMessages } from '../cluster/cluster-messages.js';
import { Clock } from '../cluster/clock.js';
import { NoCoordinator } from '../cluster/no-coordinator.js';
import { DefaultNodeIdentity, NodeIdentityProvider } from '../cluster/node-identity.js';
import { LoneStartupCoordinator, StartupCoordinator } from '../cluster/startup-coordinator.js';
import { RatchetRuntime } from '../engine/runtime.js';
import { ChildIntake } from '../jobs/child-intake.js';
import { DefaultRetryPolicy } from '../jobs/default-retry-policy.js';
import { HandlerRegistry } from '../jobs/handler-registry.js';
import { RetryPolicy } from '../jobs/retry-policy.js';
import { EngineEvents } from '../observability/engine-events.js';
import { RatchetEvents } from '../observability/ratchet-events.js';
import { RatchetMonitor } from '../observability/ratchet-monitor.js';
import { guardModuleGraph } from '../ratchet.boot-guard.js';
import { ratchetEvents } from '../ratchet.events.js';
import { HANDLERS_INJECT } from '../ratchet.handlers.js';
import { ratchetMonitor } from '../ratchet.monitor.js';
import { recurringScheduler } from '../ratchet.recurring.js';
import { PORT_TOKENS, portProvider } from '../ratchet.ports.js';
import { type ResolvedOptions } from '../ratchet.resolve.js';
import { RESOLVED_OPTIONS } from '../ratchet.tokens.js';
import { PACKAGE_VERSION } from '../ratchet.version.js';
import { JobMaker } from '../scheduler/job-maker.js';
import { JobScheduler } from '../scheduler/job-scheduler.js';
import { SchedulerChildIntake } from '../scheduler/scheduler-child-intake.js';
import { RecurringScheduler } from '../scheduler/recurring/recurring-scheduler.js';
import { ResultWaiter } from '../scheduler/results/result-waiter.js';
import { JobStore } from '../store/job-store.js';
import { BucketStore } from '../store/bucket-store.js';
import { LockStore } from '../store/lock-store.js';
import { ScheduleStore } from '../store/schedule-store.js';
import { handlersUnderTest } from './handlers-under-test.js';
import { JobList } from './list/job-list.js';
import { LIST_NODE } from './list/listed-job.js';
import { ListJobSource } from './list/list-job-source.js';
import { ManualRuntime } from './manual-runtime.js';
import { RatchetTester } from './ratchet-tester.js';
import { type RatchetTestingOptions, resolveTestingOptions } from './ratchet-testing.options.js';
import { refusal } from './refusal.js';
import { ScheduleList } from './schedules/schedule-list.js';
import { testResults } from './test-results.js';
import { VirtualClock } from './virtual-clock.js';

/**
 * `RatchetModule` for unit tests: no database, nothing runs by itself, time stands still. Jobs are kept in a list, run by the
 * engine's own executor when {@link RatchetTester} says so, and known to `JobScheduler` as usual: due times, priorities
 * and their ageing, retries, snoozes, timeouts, the dead letter and `redrive`, `cancel`, business and idempotency keys,
 * children, progress, recurring schedules (those of `@Recurring` and of `RecurringScheduler`).
 *
 * What needs a database (the `transaction` option) fails with `TESTING_NEEDS_DATABASE`: see {@link manualRatchet}.
 *
 * @example
 * ```ts
 * const app = await Test.createTestingModule({
 *   imports: [RatchetTestingModule.forRoot()],
 *   providers: [InvoiceJobs, { provide: Mailer, useValue: mailer }],
 * }).compile();
 * await app.get(JobScheduler).enqueue(SendInvoice, { orderId: '7' });
 * expect(await RatchetTester.of(app).runNext()).toMatchObject({ outcome: 'succeeded' });
 * ```
 */
@Module({})
export class RatchetTestingModule {
  /**
   * @throws InvalidOptionError (when the module is compiled), TestingNeedsDatabaseError for options about a database.
   */
  static forRoot(options: RatchetTestingOptions = {}): DynamicModule {
    return {
      module: RatchetTestingModule,
      global: options.isGlobal ?? true,
      imports: [DiscoveryModule, ...(options.imports ?? [])],
      providers: [...(options.extraProviders ?? []), ...providers(options)],
      exports: [
        JobScheduler,
        RecurringScheduler,
        RatchetBuckets,
        RatchetEvents,
        RatchetMonitor,
        RatchetRuntime,
        RatchetTester,
        ...Object.values(PORT_TOKENS),
      ],
    };
  }
}

function providers(options: RatchetTestingOptions): Provider[] {
  const startMs = (options.startAt ?? new Date()).getTime();
  return [
    {
      provide: RESOLVED_OPTIONS,
      inject: [ModulesContainer],
      useFactory: (modules: ModulesContainer) => {
        guardModuleGraph(modules, RatchetTestingModule);
        return resolveTestingOptions(options);
      },
    },
    { provide: Clock, useFactory: () => new VirtualClock(() => startMs) },
    { provide: JobStore, useFactory: () => refusal<JobStore>('JobStore') },
    { provide: LockStore, useFactory: () => refusal<LockStore>('LockStore') },
    { provide: BucketStore, useFactory: () => refusal<BucketStore>('BucketStore') },
    {
      provide: ScheduleStore,
      inject: [JobList, HandlerRegistry],
      useFactory: (list: JobList, handlers: HandlerRegistry) => new ScheduleList(list, handlers),
    },
    { provide: ClusterCoordinator, useClass: NoCoordinator },
    { provide: StartupCoordinator, useClass: LoneStartupCoordinator },
    { provide: NodeIdentityProvider, useFactory: () => new DefaultNodeIdentity(LIST_NODE) },
    portProvider({ retryPolicy: options.retryPolicy }, 'retryPolicy', {
      useFactory: () => new DefaultRetryPolicy(),
    }),
    { provide: HandlerRegistry, inject: [...HANDLERS_INJECT], useFactory: handlersUnderTest },
    {
      provide: ClusterMessages,
      inject: [ClusterCoordinator],
      useFactory: (coordinator: ClusterCoordinator) => new ClusterMessages(coordinator, LIST_NODE),
    },
    { provide: EngineEvents, useFactory: () => new EngineEvents() },
    { provide: RatchetEvents, inject: [EngineEvents], useFactory: ratchetEvents },
    {
      provide: JobList,
      inject: [Clock, EngineEvents],
      useFactory: (clock: Clock, events: EngineEvents) => new JobList(clock, events),
    },
    {
      provide: JobMaker,
      inject: [RESOLVED_OPTIONS, HandlerRegistry],
      useFactory: ({ engine, idempotencyExpiryMs }: ResolvedOptions, handlers: HandlerRegistry) =>
        new JobMaker({ payloadBytes: engine.limits.payloadBytes, idempotencyExpiryMs, handlers }),
    },
    {
      provide: ResultWaiter,
      inject: [JobList, Clock, ClusterMessages, EngineEvents, RESOLVED_OPTIONS],
      useFactory: (
        store: JobList,
        clock: Clock,
        messages: ClusterMessages,
        events: EngineEvents,
        { engine }: ResolvedOptions,
      ) => testResults({ store, clock, messages, events, settings: engine }),
    },
    {
      provide: JobScheduler,
      inject: [JobList, JobMaker, ClusterMessages, EngineEvents, ResultWaiter],
      useFactory: (
        list: JobList,
        maker: JobMaker,
        messages: ClusterMessages,
        events: EngineEvents,
        results: ResultWaiter,
      ) => new JobScheduler({ intake: list, store: list, maker, messages, events, results }),
    },
    {
      provide: RecurringScheduler,
      inject: [
        ScheduleStore,
        JobMaker,
        ClusterMessages,
        EngineEvents,
        HandlerRegistry,
        ResultWaiter,
        RESOLVED_OPTIONS,
      ],
      useFactory: recurringScheduler,
    },
    {
      provide: RatchetBuckets,
      inject: [BucketStore, ClusterMessages, EngineEvents],
      useFactory: (store: BucketStore, messages: ClusterMessages, events: EngineEvents) =>
        new RatchetBuckets({ store, messages, events }),
    },
    {
      provide: ChildIntake,
      inject: [JobList, JobMaker, ResultWaiter],
      useFactory: (list: JobList, maker: JobMaker, results: ResultWaiter) =>
        new SchedulerChildIntake(list, maker, results),
    },
    {
      provide: RatchetTester,
      inject: [
        RESOLVED_OPTIONS,
        JobList,
        Clock,
        HandlerRegistry,
        RetryPolicy,
        ChildIntake,
        ClusterMessages,
        EngineEvents,
        ScheduleStore,
      ],
      useFactory: (
        { engine: settings }: ResolvedOptions,
        list: JobList,
        clock: VirtualClock,
        handlers: HandlerRegistry,
        retryPolicy: RetryPolicy,
        children: ChildIntake,
        messages: ClusterMessages,
        events: EngineEvents,
        schedules: ScheduleStore,
      ) => {
        const source = new ListJobSource(list, settings.priorityBoostMs, handlers, schedules);
        const app = { clock, settings, handlers, retryPolicy, children, messages, events };
        return new RatchetTester({ ...app, source, nodeId: LIST_NODE });
      },
    },
    {
      provide: RatchetMonitor,
      inject: [RatchetRuntime, JobStore, RESOLVED_OPTIONS],
      useFactory: ratchetMonitor,
    },
    {
      provide: RatchetRuntime,
      inject: [
        RESOLVED_OPTIONS,
        RatchetTester,
        JobStore,
        LockStore,
        HandlerRegistry,
        NodeIdentityProvider,
        ClusterMessages,
        ClusterCoordinator,
        EngineEvents,
        ResultWaiter,
      ],
      useFactory: (
        { engine: settings }: ResolvedOptions,
        tester: RatchetTester,
        store: JobStore,
        locks: LockStore,
        handlers: HandlerRegistry,
        identity: NodeIdentityProvider,
        messages: ClusterMessages,
        coordinator: ClusterCoordinator,
        events: EngineEvents,
        results: ResultWaiter,
      ) => {
        const engine = { settings, store, locks, handlers, identity, messages, coordinator, events };
        return new ManualRuntime({ ...engine, version: PACKAGE_VERSION, resources: [results] }, tester);
      },
    },
  ];
}
