import { type FactoryProvider, Logger, type Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { RatchetBuckets } from './buckets/ratchet-buckets.js';
import { ClusterCoordinator } from './cluster/cluster-coordinator.js';
import { ClusterMessages } from './cluster/cluster-messages.js';
import { beaterOf } from './cluster/heartbeat/beater-of.js';
import { Clock, SystemClock } from './cluster/clock.js';
import { defaultCoordinator } from './cluster/coordinators/default-coordinator.js';
import { PostgresCoordinator } from './cluster/coordinators/postgres-coordinator.js';
import { DefaultNodeIdentity, NodeIdentityProvider } from './cluster/node-identity.js';
import { LeaseStartupCoordinator } from './cluster/startup-coordinator.js';
import { type EngineParts } from './engine/engine-parts.js';
import { guardedLogger } from './engine/line-logger.js';
import { Executor } from './engine/executor.js';
import { RatchetRuntime } from './engine/runtime.js';
import { HandlerTransactions } from './engine/transactions/handler-transactions.js';
import { InvalidOptionError } from './errors/boot-errors.js';
import { describeError } from './errors/describe-error.js';
import { showValue } from './errors/show-value.js';
import { Intake } from './intake/intake.js';
import { ServedLanes } from './intake/served-lanes.js';
import { ChildIntake } from './jobs/child-intake.js';
import { DefaultRetryPolicy } from './jobs/default-retry-policy.js';
import { HandlerRegistry } from './jobs/handler-registry.js';
import { textFault } from './jobs/limits.js';
import { RetryPolicy } from './jobs/retry-policy.js';
import { DebugPoints } from './observability/debug-points.js';
import { EngineEvents } from './observability/engine-events.js';
import { RatchetEvents } from './observability/ratchet-events.js';
import { RatchetMonitor } from './observability/ratchet-monitor.js';
import { type RatchetDatabaseLink, openDatabase } from './ratchet.database.js';
import { BootReport } from './ratchet.boot-report.js';
import { ratchetEvents } from './ratchet.events.js';
import { ratchetMonitor } from './ratchet.monitor.js';
import { discoveredHandlers, HANDLERS_INJECT } from './ratchet.handlers.js';
import { recurringScheduler } from './ratchet.recurring.js';
import { servedLanes } from './ratchet.served-lanes.js';
import { type RatchetPorts, isMadeHere, portProvider } from './ratchet.ports.js';
import { type ResolvedOptions } from './ratchet.resolve.js';
import { DATABASE, ENGINE_PARTS, NODE_ID, OPEN_STORE, RESOLVED_OPTIONS } from './ratchet.tokens.js';
import { handlerTransactions } from './ratchet.transactions.js';
import { PACKAGE_VERSION } from './ratchet.version.js';
import { JobMaker } from './scheduler/job-maker.js';
import { JobScheduler } from './scheduler/job-scheduler.js';
import { RecurringScheduler } from './scheduler/recurring/recurring-scheduler.js';
import { ResultWaiter } from './scheduler/results/result-waiter.js';
import { SchedulerChildIntake } from './scheduler/scheduler-child-intake.js';
import { BucketStore } from './store/bucket-store.js';
import { JobStore } from './store/job-store.js';
import { LockStore } from './store/lock-store.js';
import { MissingBucketStore } from './store/missing-bucket-store.js';
import { MissingScheduleStore } from './store/missing-schedule-store.js';
import { INLINE_PAYLOAD_BYTES } from './store/postgres/inline-payload.js';
import { PostgresBucketStore } from './store/postgres/postgres-bucket-store.js';
import { PostgresJobStore } from './store/postgres/postgres-job-store.js';
import { PostgresLockStore } from './store/postgres/postgres-lock-store.js';
import { PostgresScheduleStore } from './store/postgres/postgres-schedule-store.js';
import { maxConnections } from './store/postgres/statements/server-limits.js';
import { ScheduleStore } from './store/schedule-store.js';

/** Longest id that the node table takes. */
const NODE_ID_LENGTH = 64;
/** Beside those for exchanges: probes, reconciles, maintenance, whatever may wait. */
const SERVICE_CONNECTIONS = 1;
/** It does nothing but hear. */
const LISTEN_CONNECTIONS = 1;
/** Of a thread of its own. */
const HEARTBEAT_CONNECTIONS = 1;

type Token<T> = symbol | (abstract new (...parameters: never[]) => T);

/** A factory provider whose parameters are checked against what it injects. */
function made<T, Parts extends unknown[]>(
  provide: Token<T>,
  inject: { [Index in keyof Parts]: Token<Parts[Index]> },
  useFactory: (...parts: Parts) => T | Promise<T>,
): FactoryProvider<T> {
  return { provide, inject: [...inject], useFactory };
}

/** The ports, by the user's providers or our own. */
function portProviders(ports: RatchetPorts): Provider[] {
  return [
    portProvider(ports, 'clock', { useFactory: () => new SystemClock() }),
    portProvider(ports, 'coordinator', {
      inject: [RESOLVED_OPTIONS, JobStore, NODE_ID, EngineEvents],
      useFactory: ({ engine }: ResolvedOptions, store: JobStore, nodeId: string, events: EngineEvents) =>
        defaultCoordinator({ store, nodeId, worker: engine.worker !== false, events }),
    }),
    portProvider(ports, 'retryPolicy', { useFactory: () => new DefaultRetryPolicy() }),
    portProvider(ports, 'nodeIdentity', {
      inject: [RESOLVED_OPTIONS],
      useFactory: ({ nodeId }: ResolvedOptions) => new DefaultNodeIdentity(nodeId),
    }),
    portProvider(ports, 'jobStore', {
      inject: [RESOLVED_OPTIONS, DATABASE, NODE_ID],
      useFactory: postgresJobStore,
    }),
    portProvider(ports, 'lockStore', { inject: [JobStore], useFactory: postgresLockStore }),
    portProvider(ports, 'scheduleStore', { inject: [JobStore], useFactory: postgresScheduleStore }),
    portProvider(ports, 'bucketStore', { inject: [JobStore], useFactory: postgresBucketStore }),
    portProvider(ports, 'startupCoordinator', {
      // Also the open store: whoever is asked in a factory of the app's needs the table.
      inject: [LockStore, NODE_ID, OPEN_STORE],
      useFactory: (locks: LockStore, nodeId: string) => new LeaseStartupCoordinator(locks, nodeId),
    }),
  ];
}

function postgresJobStore(options: ResolvedOptions, database: RatchetDatabaseLink, nodeId: string): JobStore {
  return new PostgresJobStore({
    schema: options.schema,
    migrations: options.migrations,
    engine: database.engine,
    client: database.client,
    exchangeConnections: options.pool.exchange,
    nodeLabel: nodeId,
    startup: options.startup,
    inlinePayloadBytes: INLINE_PAYLOAD_BYTES,
  });
}

function postgresLockStore(store: JobStore): LockStore {
  if (store instanceof PostgresJobStore) return new PostgresLockStore(store);
  throw new InvalidOptionError([
    {
      option: 'lockStore',
      problem: 'is not given, and the one for PostgreSQL needs its jobStore; give a lockStore too',
    },
  ]);
}

/** An app with a store of its own may have no recurring schedules: it is told when it needs what is missing. */
function postgresScheduleStore(store: JobStore): ScheduleStore {
  return store instanceof PostgresJobStore ? new PostgresScheduleStore(store) : new MissingScheduleStore();
}

/** The same: one whose people do nothing by hand needs none. */
function postgresBucketStore(store: JobStore): BucketStore {
  return store instanceof PostgresJobStore ? new PostgresBucketStore(store) : new MissingBucketStore();
}

function checkedNodeId(identity: NodeIdentityProvider): string {
  const id: unknown = identity.nodeId();
  const fault = textFault(id, NODE_ID_LENGTH);
  if (fault) {
    throw new InvalidOptionError([
      { option: 'nodeIdentity', problem: `nodeId() returned ${showValue(id)}; allowed: ${fault}` },
    ]);
  }
  return id as string;
}

/** Whatever was opened before the failure is closed: Nest calls no shutdown hook of an app that did not come up. */
async function openStore(store: JobStore, database: RatchetDatabaseLink): Promise<JobStore> {
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close().catch(() => undefined);
    await database.close().catch(() => undefined);
    throw error;
  }
}

async function bootReport(
  options: ResolvedOptions,
  store: JobStore,
  { client }: RatchetDatabaseLink,
  handlers: HandlerRegistry,
  nodeId: string,
  coordinator: ClusterCoordinator,
  transactions: HandlerTransactions,
): Promise<BootReport> {
  // A line in a log is no reason not to boot.
  const max =
    store instanceof PostgresJobStore ? await maxConnections(client).catch(() => undefined) : undefined;
  const listening = coordinator instanceof PostgresCoordinator ? LISTEN_CONNECTIONS : 0;
  const engine = options.engine.worker
    ? options.pool.exchange + SERVICE_CONNECTIONS + HEARTBEAT_CONNECTIONS + listening
    : 0;
  return new BootReport({
    options,
    handlers,
    nodeId,
    coordinator: coordinator.constructor.name,
    transactions,
    connections: max === undefined ? undefined : { engine, max },
  });
}

function engineEvents(): EngineEvents {
  const logger = new Logger('RatchetEvents');
  return new EngineEvents((event, error) => {
    logger.error(
      `a listener of "${event}" threw: ${describeError(error).message}`,
      describeError(error).stack,
    );
  });
}

/** Everything that the core module provides beside the options themselves. */
export function engineProviders(ports: RatchetPorts): Provider[] {
  return [
    ...portProviders(ports),
    made(DATABASE, [RESOLVED_OPTIONS, ModulesContainer], openDatabase),
    made(NODE_ID, [NodeIdentityProvider], checkedNodeId),
    made(OPEN_STORE, [JobStore, DATABASE], openStore),
    made(EngineEvents, [], engineEvents),
    made(RatchetEvents, [EngineEvents], ratchetEvents),
    made(DebugPoints, [], () => new DebugPoints()),
    made(HandlerRegistry, [...HANDLERS_INJECT], discoveredHandlers),
    made(
      ClusterMessages,
      [ClusterCoordinator, NODE_ID],
      (coordinator, nodeId: string) => new ClusterMessages(coordinator, nodeId),
    ),
    made(ServedLanes, [RESOLVED_OPTIONS, OPEN_STORE, HandlerRegistry, Clock], servedLanes),
    made(
      Intake,
      [OPEN_STORE, ClusterMessages, EngineEvents, DATABASE, RESOLVED_OPTIONS, ServedLanes],
      (
        store: JobStore,
        messages,
        events,
        { dataSource }: RatchetDatabaseLink,
        { transaction: ambient, intake: buffer }: ResolvedOptions,
        lanes,
      ) => {
        const logger = guardedLogger(new Logger('RatchetIntake'));
        return new Intake({ store, messages, events, dataSource, ambient, lanes, buffer, logger });
      },
    ),
    made(
      JobMaker,
      [RESOLVED_OPTIONS, HandlerRegistry],
      ({ engine, idempotencyExpiryMs }: ResolvedOptions, handlers) =>
        new JobMaker({ payloadBytes: engine.limits.payloadBytes, idempotencyExpiryMs, handlers }),
    ),
    made(
      ResultWaiter,
      [OPEN_STORE, Clock, EngineEvents, ClusterMessages, RESOLVED_OPTIONS],
      (store: JobStore, clock, events, messages, { engine }: ResolvedOptions) =>
        new ResultWaiter({ store, clock, events, messages, settings: engine }),
    ),
    made(
      JobScheduler,
      [Intake, JobMaker, OPEN_STORE, ClusterMessages, EngineEvents, ResultWaiter],
      (intake, maker, store: JobStore, messages, events, results) =>
        new JobScheduler({ intake, maker, store, messages, events, results }),
    ),
    made(
      RecurringScheduler,
      [
        ScheduleStore,
        JobMaker,
        ClusterMessages,
        EngineEvents,
        HandlerRegistry,
        ResultWaiter,
        RESOLVED_OPTIONS,
      ],
      recurringScheduler,
    ),
    made(
      RatchetBuckets,
      [BucketStore, ClusterMessages, EngineEvents],
      (store, messages, events) => new RatchetBuckets({ store, messages, events }),
    ),
    made(
      ChildIntake,
      [Intake, JobMaker, ResultWaiter],
      (intake, maker, results) => new SchedulerChildIntake(intake, maker, results),
    ),
    made(
      HandlerTransactions,
      [RESOLVED_OPTIONS, OPEN_STORE, DATABASE, HandlerRegistry, EngineEvents, DebugPoints],
      handlerTransactions,
    ),
    made(
      BootReport,
      [
        RESOLVED_OPTIONS,
        OPEN_STORE,
        DATABASE,
        HandlerRegistry,
        NODE_ID,
        ClusterCoordinator,
        HandlerTransactions,
      ],
      bootReport,
    ),
    engineParts(ports),
    made(RatchetRuntime, [ENGINE_PARTS], (parts: EngineParts) => new RatchetRuntime(parts)),
    made(RatchetMonitor, [RatchetRuntime, OPEN_STORE, RESOLVED_OPTIONS], ratchetMonitor),
  ];
}

function engineParts(ports: RatchetPorts): Provider {
  return made(
    ENGINE_PARTS,
    [
      RESOLVED_OPTIONS,
      OPEN_STORE,
      LockStore,
      HandlerRegistry,
      NodeIdentityProvider,
      RetryPolicy,
      ChildIntake,
      ClusterMessages,
      ClusterCoordinator,
      Clock,
      EngineEvents,
      DebugPoints,
      Intake,
      ResultWaiter,
      HandlerTransactions,
      DATABASE,
      ScheduleStore,
      BucketStore,
    ],
    (
      { engine: settings }: ResolvedOptions,
      store: JobStore,
      locks,
      handlers,
      identity,
      retryPolicy,
      children,
      messages,
      coordinator,
      clock,
      events,
      debug,
      intake,
      results,
      transactions,
      database: RatchetDatabaseLink,
      schedules,
      buckets,
    ): EngineParts => ({
      settings,
      store,
      schedules,
      ...(buckets instanceof MissingBucketStore ? {} : { buckets }),
      locks,
      handlers,
      identity,
      messages,
      intake,
      coordinator,
      clock,
      events,
      debug,
      version: PACKAGE_VERSION,
      beater: () => beaterOf(store, clock, settings.heartbeat.stallMs),
      executor: (hooks) =>
        new Executor({ settings, handlers, retryPolicy, clock, children, transactions, hooks }),
      resources: [
        results,
        transactions,
        intake,
        ...(isMadeHere(ports.coordinator) ? [coordinator] : []),
        store,
        database,
      ],
    }),
  );
}
