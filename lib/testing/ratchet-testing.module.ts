import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModulesContainer } from '@nestjs/core';
import { ClusterCoordinator } from '../cluster/cluster-coordinator.js';
import { ClusterMessages } from '../cluster/cluster-messages.js';
import { Clock } from '../cluster/clock.js';
import { NoCoordinator } from '../cluster/no-coordinator.js';
import { DefaultNodeIdentity, NodeIdentityProvider } from '../cluster/node-identity.js';
import { RatchetRuntime } from '../engine/runtime.js';
import { ChildIntake } from '../jobs/child-intake.js';
import { DefaultRetryPolicy } from '../jobs/default-retry-policy.js';
import { HandlerRegistry } from '../jobs/handler-registry.js';
import { RetryPolicy } from '../jobs/retry-policy.js';
import { EngineEvents } from '../observability/engine-events.js';
import { guardModuleGraph } from '../ratchet.boot-guard.js';
import { PORT_TOKENS, portProvider } from '../ratchet.ports.js';
import { type ResolvedOptions } from '../ratchet.resolve.js';
import { RESOLVED_OPTIONS } from '../ratchet.tokens.js';
import { PACKAGE_VERSION } from '../ratchet.version.js';
import { JobMaker } from '../scheduler/job-maker.js';
import { JobScheduler } from '../scheduler/job-scheduler.js';
import { SchedulerChildIntake } from '../scheduler/scheduler-child-intake.js';
import { JobStore } from '../store/job-store.js';
import { LockStore } from '../store/lock-store.js';
import { lazyHandlers } from './lazy-handlers.js';
import { JobList } from './list/job-list.js';
import { LIST_NODE } from './list/listed-job.js';
import { ListJobSource } from './list/list-job-source.js';
import { ManualRuntime } from './manual-runtime.js';
import { RatchetTester } from './ratchet-tester.js';
import { type RatchetTestingOptions, resolveTestingOptions } from './ratchet-testing.options.js';
import { refusal } from './refusal.js';
import { VirtualClock } from './virtual-clock.js';

/**
 * `RatchetModule` for unit tests: no database, nothing runs by itself, time stands still. Jobs are kept in a list, run by the
 * engine's own executor when {@link RatchetTester} says so, and known to `JobScheduler` as usual: due times, priorities
 * and their ageing, retries, snoozes, timeouts, the dead letter and `redrive`, `cancel`, business and idempotency keys,
 * children, progress.
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
      exports: [JobScheduler, RatchetRuntime, RatchetTester, ...Object.values(PORT_TOKENS)],
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
    { provide: ClusterCoordinator, useClass: NoCoordinator },
    { provide: NodeIdentityProvider, useFactory: () => new DefaultNodeIdentity(LIST_NODE) },
    portProvider({ retryPolicy: options.retryPolicy }, 'retryPolicy', {
      useFactory: () => new DefaultRetryPolicy(),
    }),
    { provide: HandlerRegistry, inject: [DiscoveryService], useFactory: lazyHandlers },
    {
      provide: ClusterMessages,
      inject: [ClusterCoordinator],
      useFactory: (coordinator: ClusterCoordinator) => new ClusterMessages(coordinator, LIST_NODE),
    },
    { provide: JobList, inject: [Clock], useFactory: (clock: Clock) => new JobList(clock) },
    {
      provide: JobMaker,
      inject: [RESOLVED_OPTIONS, HandlerRegistry],
      useFactory: ({ engine, idempotencyExpiryMs }: ResolvedOptions, handlers: HandlerRegistry) =>
        new JobMaker({ payloadBytes: engine.limits.payloadBytes, idempotencyExpiryMs, handlers }),
    },
    {
      provide: JobScheduler,
      inject: [JobList, JobMaker, ClusterMessages],
      useFactory: (list: JobList, maker: JobMaker, messages: ClusterMessages) =>
        new JobScheduler({ intake: list, store: list, maker, messages }),
    },
    {
      provide: ChildIntake,
      inject: [JobList, JobMaker],
      useFactory: (list: JobList, maker: JobMaker) => new SchedulerChildIntake(list, maker),
    },
    {
      provide: RatchetTester,
      inject: [RESOLVED_OPTIONS, JobList, Clock, HandlerRegistry, RetryPolicy, ChildIntake, ClusterMessages],
      useFactory: (
        { engine: settings }: ResolvedOptions,
        list: JobList,
        clock: VirtualClock,
        handlers: HandlerRegistry,
        retryPolicy: RetryPolicy,
        children: ChildIntake,
        messages: ClusterMessages,
      ) => {
        const source = new ListJobSource(list, settings.priorityBoostMs);
        return new RatchetTester({ source, clock, settings, handlers, retryPolicy, children, messages });
      },
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
      ) => {
        const events = new EngineEvents(() => undefined);
        const engine = { settings, store, locks, handlers, identity, messages, coordinator, events };
        return new ManualRuntime({ ...engine, version: PACKAGE_VERSION, resources: [] }, tester);
      },
    },
  ];
}
