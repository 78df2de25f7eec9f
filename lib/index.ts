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
export { OnJobFailure } from './decorators/on-job-failure.decorator.js';
export { type PayloadFor, payloadFor } from './decorators/payload-for.js';
export {
  type GivenPayload,
  Recurring,
  type RecurringDecorator,
  type RecurringHandler,
  type RecurringOptions,
  type RecurringPayloadHandler,
  type RecurringPayloadOptions,
} from './decorators/recurring.decorator.js';
export { type Backoff, type ResolvedBackoff } from './jobs/backoff.js';
export { defineJob } from './jobs/define-job.js';
export { type Duration } from './jobs/duration.js';
export {
  type BufferedDurability,
  type BufferedEnqueueManyOptions,
  type BufferedEnqueueOptions,
  type ChildEnqueueOptions,
  type EnqueueArgs,
  type EnqueueItemOptions,
  type EnqueueManyItem,
  type EnqueueManyOptions,
  type EnqueueNamedOptions,
  type EnqueueOptions,
  type IdempotencyKey,
  type JobHandle,
  type ResultOptions,
  type SavedDurability,
} from './jobs/enqueue-options.js';
export { JobContext, TransactionalJobContext } from './jobs/job-context.js';
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
  type ResultType,
} from './jobs/job-definition.js';
export { resultType } from './jobs/result-type.js';
export {
  type BulkOptions,
  type BulkOutcome,
  type BulkPreview,
  type FindOptions,
  type JobFilter,
  type OneOrMore,
  type MaybePreviewOptions,
  type PreviewOptions,
  type RescheduleWhen,
  type TimeWindow,
} from './jobs/job-filter.js';
export {
  type FailedJob,
  type JobFailure,
  type JobFailureDecorator,
  type JobFailureHandler,
  type JobFailurePolicy,
} from './jobs/job-failure.js';
export {
  type ExecutionOutcome,
  type JobStatus,
  type LiveJobStatus,
  type TerminalJobStatus,
} from './jobs/job-status.js';
export { type JsonPrimitive, type JsonValue } from './jobs/json.js';
export {
  type ContextFor,
  type JobOptions,
  type Transactional,
  type TransactionIsolation,
} from './jobs/transactional.js';
export { JOB_PRIORITIES, type JobPriority, type PriorityRank } from './jobs/priority.js';
export {
  type Misfire,
  type Overlap,
  type Recurrence,
  type RecurringScope,
  recurrenceOf,
} from './jobs/recurrence.js';
export { RecurringContext } from './jobs/recurring-context.js';
export { type ScheduleOptions } from './recurring/schedule-options.js';
export { type RuleSource } from './recurring/time/recurrence-rule.js';

export { type JobPage } from './scheduler/job-finder.js';
export { type JobInfo } from './scheduler/job-info.js';
export { JobScheduler } from './scheduler/job-scheduler.js';
export { RecurringScheduler } from './scheduler/recurring/recurring-scheduler.js';
export {
  type RecurringOccurrence,
  type RecurringScheduleInfo,
  type RecurringSchedulePage,
} from './scheduler/recurring/schedule-info.js';
export {
  type ListSchedulesFilter,
  type ListSchedulesOptions,
  type NewRecurringSchedule,
  type OccurrencesOptions,
  type PreviewScheduleOptions,
  type RecurringSchedulePatch,
  type ScheduleChanges,
  type SchedulePayload,
  type ScheduleTiming,
  type TriggeredOccurrence,
  type TriggerOptions,
} from './scheduler/recurring/schedule-types.js';
export {
  type BucketInfo,
  type LaneInfo,
  type MoveLaneOptions,
  RatchetBuckets,
} from './buckets/ratchet-buckets.js';
export { currentJob } from './engine/async-context.js';
export { type DrainOptions, RatchetRuntime, type RuntimeState } from './engine/runtime.js';

export { RatchetEvents, type RatchetEventListener } from './observability/ratchet-events.js';
export { RatchetMonitor } from './observability/ratchet-monitor.js';
export {
  type EventLoopSnapshot,
  type FaultSnapshot,
  type HeartbeatSnapshot,
  type BucketSnapshot,
  type LaneSnapshot,
  type NodeInfo,
  type RatchetSnapshot,
} from './observability/ratchet-snapshot.js';
export {
  type ExecutionEvent,
  type JobCanceledEvent,
  type JobEnqueuedEvent,
  type JobUnsavedEvent,
  type JobEvent,
  type JobFailedEvent,
  type JobLostEvent,
  type JobReleasedEvent,
  type JobRetryingEvent,
  type JobSnoozedEvent,
  type JobStartedEvent,
  type JobSucceededEvent,
  type OccurrenceEvent,
  type RatchetEventMap,
  type RatchetEventName,
  type ScheduleFiredEvent,
  type ScheduleMissedEvent,
  type ScheduleSkippedEvent,
} from './observability/ratchet-event-map.js';

// Ports, their parts and their defaults: for implementations of one's own.
export { Clock, SystemClock } from './cluster/clock.js';
export {
  ClusterCoordinator,
  type ClusterSignal,
  type CoordinatorHealth,
  type Wakeup,
  type WakeupHint,
} from './cluster/cluster-coordinator.js';
export { BroadcastCoordinator, type BroadcastOptions } from './cluster/coordinators/broadcast-coordinator.js';
export { NoCoordinator } from './cluster/no-coordinator.js';
export { DefaultNodeIdentity, NodeIdentityProvider } from './cluster/node-identity.js';
export { StartupCoordinator } from './cluster/startup-coordinator.js';
export { DefaultRetryPolicy } from './jobs/default-retry-policy.js';
export { type FailedExecution, RetryPolicy } from './jobs/retry-policy.js';
export * from './store/job-store.js';
export * from './store/bucket-store.js';
export { LockStore } from './store/lock-store.js';
export * from './store/schedule-store.js';
export { StoreError, type StoreFaultKind } from './store/store-fault.js';
export { migrationSql } from './store/postgres/migrations/migration-sql.js';

export * from './errors/index.js';
