import { Executor, type ExecutorParts } from '../../lib/engine/executor.js';
import { type RunningExecution } from '../../lib/engine/running-execution.js';
import { DEFAULT_BACKOFF } from '../../lib/jobs/backoff.js';
import { ChildIntake, type ParentClaim } from '../../lib/jobs/child-intake.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { DefaultRetryPolicy } from '../../lib/jobs/default-retry-policy.js';
import { type ChildEnqueueOptions, type JobHandle } from '../../lib/jobs/enqueue-options.js';
import { HandlerRegistry, type RegisteredHandler } from '../../lib/jobs/handler-registry.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import { type ClaimedJob, type ProgressReport } from '../../lib/store/job-store.js';
import { FakeClock } from '../support/fake-clock.js';

type Body = (payload: unknown, context: JobContext) => unknown;

export interface ChildCall {
  readonly parent: ParentClaim;
  readonly name: string;
  readonly payload: unknown;
  readonly options: ChildEnqueueOptions;
}

class Children extends ChildIntake {
  readonly calls: ChildCall[] = [];

  override enqueueChild(
    parent: ParentClaim,
    definition: JobDefinition,
    payload: unknown,
    options: ChildEnqueueOptions,
  ): Promise<JobHandle> {
    this.calls.push({ parent, name: definition.name, payload, options });
    const handle = { id: 'child', created: true, result: () => Promise.resolve(undefined) };
    // As a real handle, which shows nothing of it in JSON.
    return Promise.resolve(Object.defineProperty(handle, 'saved', { value: Promise.resolve() }) as JobHandle);
  }
}

class OneHandler extends HandlerRegistry {
  constructor(private readonly handler: RegisteredHandler) {
    super();
  }
  override find(name: string): RegisteredHandler | undefined {
    return this.handler.definition.name === name ? this.handler : undefined;
  }
  override all(): readonly RegisteredHandler[] {
    return [this.handler];
  }
}

export const Work: JobDefinition = defineJob<unknown>('work', {
  backoff: { type: 'fixed', delay: '10s', jitter: 0 },
});

export function claimed(given: Partial<ClaimedJob> = {}): ClaimedJob {
  return {
    id: '0190b6a4-0000-7000-8000-000000000001',
    name: 'work',
    version: 1,
    lane: 'default',
    priority: 2,
    claimSeq: '9',
    payload: { n: 1 },
    scheduledAt: new Date(0),
    place: '1970-01-01 00:00:00+00',
    createdAt: new Date(0),
    waitedMs: 0,
    executions: 1,
    failures: 0,
    crashes: 0,
    maxRetries: undefined,
    backoff: undefined,
    timeoutMs: undefined,
    businessKey: undefined,
    tags: [],
    metadata: undefined,
    parentId: undefined,
    lastError: undefined,
    begun: true,
    ...given,
  };
}

/** An executor with one handler, on a clock that the test moves. */
export class ExecutorFixture {
  readonly clock = new FakeClock();
  readonly children = new Children();
  readonly reports: ProgressReport[] = [];
  readonly executor: Executor;

  constructor(
    body: Body,
    {
      definition = Work,
      transactional = false,
      ...parts
    }: { definition?: JobDefinition; transactional?: boolean } & Partial<ExecutorParts> = {},
  ) {
    this.executor = new Executor({
      settings: {
        maxRetries: 3,
        backoff: DEFAULT_BACKOFF,
        limits: { payloadBytes: 1_000_000, resultBytes: 1_000, errorBytes: 2_000 },
      },
      handlers: new OneHandler({
        definition,
        owner: 'Works.work',
        ...(transactional ? { transactional: { isolation: undefined } } : {}),
        // As the registry does: the handler's own throw arrives as a rejection or at once.
        invoke: (payload, context) => body(payload, context) as Promise<unknown>,
      }),
      retryPolicy: new DefaultRetryPolicy(() => 0.5),
      clock: this.clock,
      children: this.children,
      hooks: { onProgress: (report) => this.reports.push(report) },
      ...parts,
    });
  }

  start(given: Partial<ClaimedJob> = {}): RunningExecution {
    return this.executor.start(claimed(given));
  }
}
