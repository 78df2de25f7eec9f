import { hostname } from 'node:os';
import { Logger, type LoggerService } from '@nestjs/common';
import { SystemClock } from '../../lib/cluster/clock.js';
import { MainThreadBeater } from '../../lib/cluster/heartbeat/main-thread-beater.js';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { DefaultNodeIdentity } from '../../lib/cluster/node-identity.js';
import { type LaneSettings } from '../../lib/buckets/lane-settings.js';
import { type EngineSettings } from '../../lib/engine/engine-settings.js';
import { type EngineParts } from '../../lib/engine/engine-parts.js';
import { Executor } from '../../lib/engine/executor.js';
import { RatchetRuntime } from '../../lib/engine/runtime.js';
import { DEFAULT_BACKOFF } from '../../lib/jobs/backoff.js';
import { ChildIntake } from '../../lib/jobs/child-intake.js';
import { DefaultRetryPolicy } from '../../lib/jobs/default-retry-policy.js';
import { makeDefinition } from '../../lib/jobs/define-job.js';
import { HandlerRegistry, type RegisteredHandler } from '../../lib/jobs/handler-registry.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { type AnnotatedSchedule } from '../../lib/jobs/schedule-spec.js';
import { DebugPoints } from '../../lib/observability/debug-points.js';
import {
  EngineEvents,
  type EngineEventMap,
  type EngineEvent,
} from '../../lib/observability/engine-events.js';
import { type JobStore, type NewJob } from '../../lib/store/job-store.js';
import { type LockStore } from '../../lib/store/lock-store.js';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { PostgresScheduleStore } from '../../lib/store/postgres/postgres-schedule-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { faultyStore, type FaultyStore } from './faulty-store.js';
import { createStore, newJob } from './store.js';
import { pollEvery } from './poll.js';

export type TestHandler = (payload: unknown, context: JobContext) => unknown;

export interface TestHandlers {
  readonly [name: string]: TestHandler | { readonly policy: object; readonly run: TestHandler };
}

class TestRegistry extends HandlerRegistry {
  readonly #handlers: Map<string, RegisteredHandler>;

  constructor(
    handlers: TestHandlers,
    private readonly annotated: readonly AnnotatedSchedule[],
  ) {
    super();
    const ofNode = new Set(
      annotated.flatMap(({ spec, jobName }) => (spec.scope === 'node' ? [jobName] : [])),
    );
    this.#handlers = new Map(
      Object.entries(handlers).map(([name, given]) => {
        const { policy, run } = typeof given === 'function' ? { policy: {}, run: given } : given;
        const definition = makeDefinition(name, policy);
        const invoke = async (payload: unknown, context: JobContext): Promise<unknown> =>
          run(payload, context);
        return [name, { definition, owner: `Test.${name}`, ofNode: ofNode.has(name), invoke }];
      }),
    );
  }

  override find(name: string): RegisteredHandler | undefined {
    return this.#handlers.get(name);
  }

  override all(): readonly RegisteredHandler[] {
    return [...this.#handlers.values()].filter(({ ofNode }) => !ofNode);
  }

  override schedules(): readonly AnnotatedSchedule[] {
    return this.annotated;
  }
}

class NoChildren extends ChildIntake {
  override enqueueChild(): Promise<never> {
    return Promise.reject(new Error('these tests enqueue no children'));
  }
}

export const testSettings: EngineSettings = {
  worker: true,
  lanes: new Map(),
  concurrency: 10,
  maxRetries: 3,
  backoff: DEFAULT_BACKOFF,
  priorityBoostMs: 900_000,
  ...pollEvery(60_000),
  heartbeat: { baseMs: 10_000, graceMs: 30_000, stallMs: 300_000 },
  fallbackAfterMs: 150_000,
  maxCrashRedeliveries: 3,
  recurring: { convergenceMs: 300_000 },
  drainTimeoutMs: 5_000,
  limits: { payloadBytes: 1_000_000, resultBytes: 256_000, errorBytes: 16_000 },
  retention: {
    historyMs: 604_800_000,
    historyBytes: 20_000_000_000,
    executionsMs: 2_592_000_000,
    deadLetterMs: 2_592_000_000,
  },
};

/** What a lane is given, with the defaults of the options. */
export function laneOf(given: Partial<LaneSettings> = {}): LaneSettings {
  return { concurrency: testSettings.concurrency, reserved: 0, buckets: 1, bufferSize: 0, ...given };
}

/** A runtime with all its parts, as the module would build it, and the levers that tests need. */
export interface EngineNode {
  readonly id: string;
  readonly store: JobStore;
  readonly runtime: RatchetRuntime;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  readonly messages: ClusterMessages;
  /** Inserts jobs and tells the node, as the intake does after a commit. */
  enqueue(...jobs: Partial<NewJob>[]): Promise<readonly string[]>;
  /** The n-th event of a kind from now on that is accepted. */
  count<E extends EngineEvent>(
    event: E,
    n: number,
    accept?: (payload: EngineEventMap[E]) => boolean,
  ): Promise<void>;
}

export interface EngineNodeOptions {
  readonly handlers?: TestHandlers;
  /** What its methods are annotated with. */
  readonly schedules?: readonly AnnotatedSchedule[];
  readonly settings?: Partial<EngineSettings>;
  readonly nodeId?: string;
  readonly parts?: Partial<EngineParts>;
}

export function createEngineNode(
  store: JobStore,
  locks: LockStore,
  options: EngineNodeOptions = {},
): EngineNode {
  const settings = { ...testSettings, ...options.settings };
  const handlers = new TestRegistry(options.handlers ?? {}, options.schedules ?? []);
  const clock = options.parts?.clock ?? new SystemClock();
  const events = new EngineEvents();
  const debug = new DebugPoints();
  const identity = new DefaultNodeIdentity(
    options.nodeId ?? `${hostname()}-${Math.random().toString(16).slice(2, 10)}`,
  );
  const coordinator = new NoCoordinator();
  const messages = options.parts?.messages ?? new ClusterMessages(coordinator, identity.nodeId());
  const runtime = new RatchetRuntime({
    settings,
    store,
    locks,
    handlers,
    beater: () => Promise.resolve(new MainThreadBeater(store, clock)),
    executor: (hooks) =>
      new Executor({
        settings,
        handlers,
        retryPolicy: new DefaultRetryPolicy(),
        clock,
        children: new NoChildren(),
        hooks,
      }),
    identity,
    messages,
    coordinator,
    clock,
    version: '0.0.0-test',
    events,
    debug,
    ...options.parts,
  });
  return {
    id: identity.nodeId(),
    store,
    runtime,
    events,
    debug,
    messages,
    async enqueue(...given) {
      const jobs = given.map((job) => newJob({ name: 'work', ...job }));
      const inserted = await store.insert(jobs);
      for (const { lane, priority, delayMs } of jobs) {
        messages.newWork(lane, priority, delayMs > 0 ? { dueInMs: delayMs } : {});
      }
      return inserted.map((one) => ('id' in one ? one.id : ''));
    },
    count(event, n, accept = () => true) {
      let left = n;
      return new Promise((resolve) => {
        const off = events.on(event, (payload) => {
          if (!accept(payload)) return;
          left -= 1;
          if (left > 0) return;
          off();
          resolve();
        });
      });
    },
  };
}

/** Collects what the engine logs, instead of printing it. */
export function captureLogs(): { readonly level: string; readonly line: string }[] {
  const lines: { level: string; line: string }[] = [];
  const at =
    (level: string) =>
    (message: unknown): void =>
      void lines.push({ level, line: String(message) });
  const logger: LoggerService = { log: at('log'), warn: at('warn'), error: at('error'), debug: at('debug') };
  Logger.overrideLogger(logger);
  return lines;
}

/** A node on a database of its own store. */
export async function createPostgresNode(
  url: string,
  options: EngineNodeOptions = {},
): Promise<EngineNode & { readonly real: PostgresJobStore; readonly faults: FaultyStore }> {
  const real = createStore(url);
  await real.open();
  const faults = faultyStore(real);
  const parts = { schedules: new PostgresScheduleStore(real), ...options.parts };
  const node = createEngineNode(faults.store, new PostgresLockStore(real), { ...options, parts });
  return { ...node, real, faults };
}

/** A promise with its ends. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}
