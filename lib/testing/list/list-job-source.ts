import { FAILURE_SUFFIX } from '../../jobs/define-job.js';
import { claimOrder } from '../../jobs/claim-order.js';
import { type HandlerRegistry } from '../../jobs/handler-registry.js';
import {
  type JobView,
  type LateOutcome,
  type NewJob,
  type ProgressReport,
  type Settlement,
} from '../../store/job-store.js';
import { type ScheduleStore } from '../../store/schedule-store.js';
import { type ClaimAnswer, type ClaimRequest, JobSource } from '../job-source.js';
import { failureJob } from './failure-job.js';
import { type JobList } from './job-list.js';
import { type ListedJob } from './listed-job.js';

/** Jobs out of a list, on a clock that stands still until it is moved. */
export class ListJobSource extends JobSource {
  constructor(
    private readonly list: JobList,
    private readonly priorityBoostMs: number,
    private readonly handlers: HandlerRegistry,
    override readonly schedules: ScheduleStore,
  ) {
    super();
  }

  override claim({ lanes, handlers }: ClaimRequest): Promise<ClaimAnswer> {
    const { now } = this.list;
    const versions = new Map(handlers.map(({ name, version }) => [name, version]));
    const runnable = this.list
      .all()
      .filter(({ status, job }) => status === 'pending' && job.version <= (versions.get(job.name) ?? 0));
    for (const lane of lanes) {
      const [first] = this.#inOrder(runnable.filter(({ job }) => job.lane === lane));
      if (first) return Promise.resolve({ job: first.begin(now), nextDueInMs: undefined });
    }
    const waits = runnable
      .filter(({ job }) => lanes.includes(job.lane))
      .map(({ scheduledAt }) => scheduledAt.getTime() - now.getTime());
    return Promise.resolve({
      job: undefined,
      nextDueInMs: waits.length > 0 ? Math.min(...waits) : undefined,
    });
  }

  override settle(settlement: Settlement): Promise<boolean> {
    const job = this.list.job(settlement.id);
    if (!job?.isHeldBy(settlement.claimSeq)) return Promise.resolve(false);
    if (settlement.progress !== undefined) job.progress = settlement.progress;
    this.#apply(job, settlement);
    return Promise.resolve(true);
  }

  override report({ id, claimSeq, value }: ProgressReport): Promise<void> {
    const job = this.list.job(id);
    if (job?.isHeldBy(claimSeq)) job.progress = value;
    return Promise.resolve();
  }

  override late({ jobId, claimSeq, outcome, error }: LateOutcome): Promise<void> {
    const executions = this.list.job(jobId)?.executions ?? [];
    const index = executions.findIndex((one) => one.claimSeq === claimSeq && CUT_OFF.has(one.outcome));
    const closed = executions[index];
    if (closed && closed.lateAt === undefined) {
      executions[index] = { ...closed, lateOutcome: outcome, lateError: error, lateAt: this.list.now };
    }
    return Promise.resolve();
  }

  override jobs(): Promise<readonly JobView[]> {
    return Promise.resolve(this.list.all().map((job) => job.view()));
  }

  /** They are there. */
  override register(): Promise<void> {
    return Promise.resolve();
  }

  override async enqueue(job: NewJob): Promise<void> {
    await this.list.submit(Promise.resolve(job));
  }

  override now(): Promise<Date> {
    return Promise.resolve(this.list.now);
  }

  override until(date: Date): Promise<number> {
    return Promise.resolve(date.getTime() - this.list.now.getTime());
  }

  /** The clock is the list's own, and the tester moves that. */
  override travel(): Promise<void> {
    return Promise.resolve();
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }

  /** Those that are due, first in claim order first. */
  #inOrder(jobs: readonly ListedJob[]): ListedJob[] {
    const nowMs = this.list.now.getTime();
    const level = ({ priority, scheduledAt }: ListedJob): number =>
      claimOrder(priority, nowMs - scheduledAt.getTime(), this.priorityBoostMs);
    return jobs
      .filter(({ scheduledAt }) => scheduledAt.getTime() <= nowMs)
      .sort(
        (one, other) => level(other) - level(one) || one.scheduledAt.getTime() - other.scheduledAt.getTime(),
      );
  }

  #apply(job: ListedJob, { outcome, result, error, delayMs, drop }: Settlement): void {
    const { now } = this.list;
    job.close(outcome, error, now);
    switch (outcome) {
      case 'succeeded':
        if (drop) return this.list.remove(job.id);
        job.end('succeeded', now);
        job.result = result;
        job.error = undefined;
        return;
      case 'failed':
        job.end('failed', now);
        job.failures += 1;
        job.error = error;
        this.#tellFailure(job);
        return;
      case 'retried':
        job.failures += 1;
        job.error = error;
        break;
      case 'released':
        job.claimSeq += 1;
        break;
      case 'snoozed':
    }
    job.giveBack();
    if (delayMs !== undefined) job.scheduledAt = new Date(now.getTime() + delayMs);
  }

  /** As the statement does that moves a job to the dead letter. */
  #tellFailure(job: ListedJob): void {
    const handler = this.handlers.find(job.job.name + FAILURE_SUFFIX);
    if (handler?.failureOf) this.list.spawn(failureJob(job, handler.definition));
  }
}

/** Ends that leave the body running: it may still say something, once. */
const CUT_OFF = new Set<string>(['released', 'canceled']);
