import { type ResolvedBackoff } from '../../jobs/backoff.js';
import { type JobStatus, type TerminalJobStatus } from '../../jobs/job-status.js';
import { type PriorityRank } from '../../jobs/priority.js';
import { type ClaimedJob, type ExecutionView, type JobView, type NewJob } from '../../store/job-store.js';

/** What executions of the list call their node. */
export const LIST_NODE = 'testing';

/** A job of the list: one object from enqueue to the end, and on in the dead letter. Values are kept as JSON text, as in a database. */
export class ListedJob {
  readonly id: string;
  readonly createdAt: Date;
  readonly executions: ExecutionView[] = [];
  status: JobStatus = 'pending';
  scheduledAt: Date;
  claimSeq = 0;
  pauseRequested = false;
  begunAt: Date | undefined;
  endedAt: Date | undefined;
  begun = 0;
  failures = 0;
  result: string | undefined;
  error: string | undefined;
  progress: string | undefined;

  constructor(
    readonly job: NewJob,
    now: Date,
  ) {
    this.id = job.id;
    this.createdAt = now;
    this.scheduledAt = job.runAt ?? new Date(now.getTime() + job.delayMs);
  }

  get isLive(): boolean {
    return this.status === 'pending' || this.status === 'running' || this.status === 'paused';
  }

  get priority(): PriorityRank {
    return this.job.priority;
  }

  isHeldBy(claimSeq: string): boolean {
    return this.status === 'running' && String(this.claimSeq) === claimSeq;
  }

  begin(now: Date): ClaimedJob {
    this.status = 'running';
    this.claimSeq += 1;
    this.begun += 1;
    this.begunAt = now;
    const { job } = this;
    return {
      id: job.id,
      name: job.name,
      version: job.version,
      lane: job.lane,
      priority: job.priority,
      begun: true,
      claimSeq: String(this.claimSeq),
      payload: JSON.parse(job.payload) as unknown,
      scheduledAt: this.scheduledAt,
      place: this.scheduledAt.toISOString(),
      createdAt: this.createdAt,
      waitedMs: Math.max(0, now.getTime() - this.scheduledAt.getTime()),
      executions: this.begun,
      failures: this.failures,
      crashes: 0,
      maxRetries: job.maxRetries,
      backoff: copyOf(job.backoff),
      timeoutMs: job.timeoutMs,
      businessKey: job.businessKey,
      tags: job.tags,
      metadata: parsed(job.metadata),
      parentId: job.parent?.id,
      lastError: this.error,
    };
  }

  /** Back from its execution, to be claimed again; paused, if that was asked for meanwhile. */
  giveBack(): void {
    this.status = this.pauseRequested ? 'paused' : 'pending';
    this.begunAt = undefined;
    this.pauseRequested = false;
  }

  /** It has ended for good. */
  end(status: TerminalJobStatus, now: Date): void {
    this.status = status;
    this.endedAt = now;
    this.pauseRequested = false;
  }

  /** Writes down how the running execution ended. */
  close(outcome: ExecutionView['outcome'], error: string | undefined, now: Date): void {
    this.executions.push({ ...this.#execution(outcome), error, endedAt: now });
  }

  /** The last execution included that still runs. */
  allExecutions(): ExecutionView[] {
    return this.status === 'running'
      ? [...this.executions, this.#execution('running')]
      : [...this.executions];
  }

  view(): JobView {
    const { job } = this;
    return {
      id: job.id,
      name: job.name,
      version: job.version,
      status: this.status,
      lane: job.lane,
      priority: job.priority,
      payload: JSON.parse(job.payload) as unknown,
      result: parsed(this.result),
      error: this.error,
      progress: parsed(this.progress),
      scheduledAt: this.scheduledAt,
      createdAt: this.createdAt,
      begunAt: this.begunAt,
      endedAt: this.endedAt,
      node: this.begunAt && LIST_NODE,
      executions: this.begun,
      failures: this.failures,
      crashes: 0,
      claimSeq: String(this.claimSeq),
      maxRetries: job.maxRetries,
      businessKey: job.businessKey,
      tags: job.tags,
      metadata: parsed(job.metadata),
      parentId: job.parent?.id,
      pauseRequested: this.pauseRequested,
    };
  }

  #execution(outcome: ExecutionView['outcome']): ExecutionView {
    return {
      jobId: this.id,
      claimSeq: String(this.claimSeq),
      number: this.begun,
      node: LIST_NODE,
      outcome,
      error: undefined,
      beganAt: this.begunAt,
      endedAt: undefined,
      lateOutcome: undefined,
      lateError: undefined,
      lateAt: undefined,
    };
  }
}

function copyOf(backoff: ResolvedBackoff | undefined): ResolvedBackoff | undefined {
  return backoff && { ...backoff };
}

function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}
