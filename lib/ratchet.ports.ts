import {
  type ClassProvider,
  type ExistingProvider,
  type FactoryProvider,
  type Provider,
  type Type,
  type ValueProvider,
} from '@nestjs/common';
import { ClusterCoordinator } from './cluster/cluster-coordinator.js';
import { Clock } from './cluster/clock.js';
import { NodeIdentityProvider } from './cluster/node-identity.js';
import { StartupCoordinator } from './cluster/startup-coordinator.js';
import { RetryPolicy } from './jobs/retry-policy.js';
import { BucketStore } from './store/bucket-store.js';
import { JobStore } from './store/job-store.js';
import { LockStore } from './store/lock-store.js';
import { ScheduleStore } from './store/schedule-store.js';

/**
 * Another implementation of a port: a class, or a provider without its token. It injects what `imports` and
 * `extraProviders` of the same call offer.
 */
export type PortOverride<T> =
  | Type<T>
  | Omit<ClassProvider<T>, 'provide' | 'scope' | 'durable'>
  | Omit<FactoryProvider<T>, 'provide' | 'scope' | 'durable'>
  | Omit<ExistingProvider<T>, 'provide'>
  | Omit<ValueProvider<T>, 'provide'>;

/** The ports of the engine, each replaceable. All of them work with `overrideProvider` in tests as well. */
export interface RatchetPorts {
  /**
   * Carries wakeups and cancels between nodes; {@link NoCoordinator} carries nothing, and nodes poll.
   *
   * @defaultValue `PostgresCoordinator`: LISTEN and NOTIFY
   */
  coordinator?: PortOverride<ClusterCoordinator> | undefined;
  /** Where jobs are kept. @defaultValue PostgreSQL */
  jobStore?: PortOverride<JobStore> | undefined;
  /** Leases for work that one node does for all. @defaultValue PostgreSQL */
  lockStore?: PortOverride<LockStore> | undefined;
  /** Where recurring schedules are kept. Its jobs go where the `jobStore` finds them. @defaultValue PostgreSQL */
  scheduleStore?: PortOverride<ScheduleStore> | undefined;
  /** What people do by hand with buckets, lanes and nodes, beside the `jobStore`. @defaultValue PostgreSQL */
  bucketStore?: PortOverride<BucketStore> | undefined;
  /** Lets one replica do something at boot for all. @defaultValue by leases of the `lockStore` */
  startupCoordinator?: PortOverride<StartupCoordinator> | undefined;
  /** Who this process is. @defaultValue the option `nodeId`, else `hostname-pid-8hex` */
  nodeIdentity?: PortOverride<NodeIdentityProvider> | undefined;
  /** What follows a failure. @defaultValue the job's `backoff` up to its `maxRetries` */
  retryPolicy?: PortOverride<RetryPolicy> | undefined;
  /** Timers and log stamps. @defaultValue Node's own */
  clock?: PortOverride<Clock> | undefined;
}

/** Option and token of each port. */
export const PORT_TOKENS = {
  coordinator: ClusterCoordinator,
  jobStore: JobStore,
  lockStore: LockStore,
  scheduleStore: ScheduleStore,
  bucketStore: BucketStore,
  startupCoordinator: StartupCoordinator,
  nodeIdentity: NodeIdentityProvider,
  retryPolicy: RetryPolicy,
  clock: Clock,
} as const satisfies Record<keyof RatchetPorts, unknown>;

/** The user's provider of a port, or the module's own. */
export function portProvider<K extends keyof RatchetPorts>(
  ports: RatchetPorts,
  port: K,
  fallback: Omit<FactoryProvider<InstanceType<(typeof PORT_TOKENS)[K] & Type>>, 'provide'>,
): Provider {
  const override = ports[port] ?? fallback;
  const provide = PORT_TOKENS[port];
  return typeof override === 'function'
    ? { provide, useClass: override }
    : ({ ...override, provide } as Provider);
}

/** Whether the module itself made what stands behind a port, and so closes it: the app's own objects are the app's to close. */
export function isMadeHere(override: PortOverride<unknown> | undefined): boolean {
  return (
    override === undefined ||
    typeof override === 'function' ||
    !('useExisting' in override || 'useValue' in override)
  );
}
