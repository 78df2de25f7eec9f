/**
 * Durable background jobs for NestJS on PostgreSQL. Start at {@link RatchetModule}, {@link defineJob}, {@link Job} and
 * {@link JobScheduler}.
 *
 * @packageDocumentation
 */
export {
  RatchetModule,
  type RatchetModuleAsyncOptions,
  type RatchetModuleOptions,
} from './ratchet.module.js';
export { DEFAULTS } from './ratchet.defaults.js';
export {
  type EmbeddedDatabaseOptions,
  type LaneOptions,
  type RatchetConnectionOptions,
  type RatchetDatabase,
  type RatchetOptions,
  type RatchetOptionsFactory,
  type RatchetSettings,
} from './ratchet.options.js';
export { type RatchetExtras } from './ratchet.extras.js';
export { type PortOverride, type RatchetPorts } from './ratchet.ports.js';

export { Job } from './decorators/job.decorator.js';
export { type Backoff, type ResolvedBackoff } from './jobs/backoff.js';
export { defineJob } from './jobs/define-job.js';
export { type Duration } from './jobs/duration.js';
export {
  type EnqueueArgs,
  type EnqueueItemOptions,
  type EnqueueManyItem,
  type EnqueueManyOptions,
  type EnqueueOptions,
  type IdempotencyKey,
  type JobHandle,
} from './jobs/enqueue-options.js';
export { JobContext } from './jobs/job-context.js';
export {
  type ContextOf,
  type InputOf,
  type JobDecorator,
  type JobDefinition,
  type JobHandler,
  type JobPolicy,
  type JobPolicyWithSchema,
  type PayloadOf,
  type ResultOf,
} from './jobs/job-definition.js';
export {
  type ExecutionOutcome,
  type JobStatus,
  type LiveJobStatus,
  type TerminalJobStatus,
} from './jobs/job-status.js';
export { type JsonPrimitive, type JsonValue } from './jobs/json.js';
export { JOB_PRIORITIES, type JobPriority, type PriorityRank } from './jobs/priority.js';

export { type JobInfo } from './scheduler/job-info.js';
export { type EnqueueNamedOptions, JobScheduler } from './scheduler/job-scheduler.js';
export { currentJob } from './engine/async-context.js';
export { type DrainOptions, RatchetRuntime, type RuntimeState } from './engine/runtime.js';

// Ports, their parts and their defaults: for implementations of one's own.
export { Clock, SystemClock } from './cluster/clock.js';
export {
  ClusterCoordinator,
  type ClusterSignal,
  type Wakeup,
  type WakeupHint,
} from './cluster/cluster-coordinator.js';
export { NoCoordinator } from './cluster/no-coordinator.js';
export { DefaultNodeIdentity, NodeIdentityProvider } from './cluster/node-identity.js';
export { DefaultRetryPolicy } from './jobs/default-retry-policy.js';
export { type FailedExecution, RetryPolicy } from './jobs/retry-policy.js';
export * from './store/job-store.js';
export { LockStore } from './store/lock-store.js';
export { StoreError, type StoreFaultKind } from './store/store-fault.js';
export { migrationSql } from './store/postgres/migrations/migration-sql.js';

export * from './errors/index.js';
