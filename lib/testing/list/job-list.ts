import { type Clock } from '../../cluster/clock.js';
import { type Accepted, accepted } from '../../intake/accepted.js';
import { announce } from '../../intake/announce.js';
import { type Buffered } from '../../intake/save-buffer.js';
import { type EngineEvents } from '../../observability/engine-events.js';
import {
  type Canceled,
  type ControlAction,
  type ControlledJob,
  type ControlStep,
  type EndedAnswer,
  type EndedJob,
  type FoundJobs,
  type ExecutionView,
  type Inserted,
  type JobQuery,
  type JobView,
  type NewJob,
  type PageRequest,
  type Redriven,
} from '../../store/job-store.js';
import { TestingNeedsDatabaseError } from '../testing-errors.js';
import { judge, type KeyHolder } from './key-book.js';
import { isControllable, matches } from './list-query.js';
import { ListedJob } from './listed-job.js';

/**
 * The jobs of an application under test without a database: what the scheduler's intake and store are for it. It promises
 * what the engine's promises look like from outside, as far as one process can see them; `test/testing/` runs one table of
 * behaviour against this list and against PostgreSQL.
 *
 * It implements no port: nothing else of the engine runs on it.
 */
export class JobList {
  readonly #jobs = new Map<string, ListedJob>();
  readonly #keys = new Map<string, { readonly id: string; readonly expiresAtMs: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly events: EngineEvents,
  ) {}

  get now(): Date {
    return this.clock.now();
  }

  /** In the order of the calls. */
  all(): ListedJob[] {
    return [...this.#jobs.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  job(id: string): ListedJob | undefined {
    return this.#jobs.get(id);
  }

  /** `history: 'drop'`: as if it had never been. */
  remove(id: string): void {
    this.#jobs.delete(id);
  }

  /** A job that nobody enqueued. */
  spawn(job: NewJob): void {
    this.#jobs.set(job.id, new ListedJob(job, this.now));
  }

  async submit(making: Promise<NewJob>, transaction?: unknown): Promise<Accepted> {
    const jobs = making.then((job) => [job]);
    const [inserted] = await this.submitMany(jobs, transaction);
    if (!inserted) throw new TypeError('One job gives one answer');
    return inserted;
  }

  async submitMany(making: Promise<readonly NewJob[]>, transaction?: unknown): Promise<readonly Accepted[]> {
    const jobs = await making;
    if (transaction !== undefined && transaction !== null) {
      throw new TestingNeedsDatabaseError('enqueue.transaction');
    }
    const inserted = this.#insert(jobs);
    announce(this.events, jobs, inserted, this.now.getTime());
    return accepted(jobs, inserted);
  }

  /** Saved at once: there is nothing to wait for. */
  async submitBuffered(making: Promise<readonly NewJob[]>): Promise<Buffered> {
    await this.submitMany(making);
    return { saved: Promise.resolve() };
  }

  /** The `transaction` option of the module is refused. */
  inTransaction(): boolean {
    return false;
  }

  get(id: string): Promise<JobView | undefined> {
    return Promise.resolve(this.#jobs.get(normal(id))?.view());
  }

  ended(ids: readonly string[]): Promise<EndedAnswer> {
    const jobs = ids.map((id) => this.#jobs.get(id));
    return Promise.resolve({
      ended: jobs.flatMap((job) => (job && !job.isLive ? [endedJob(job.view())] : [])),
      absent: ids.filter((id) => !this.#jobs.has(id)),
      postponed: [],
    });
  }

  executions(id: string): Promise<readonly ExecutionView[]> {
    return Promise.resolve(this.#jobs.get(normal(id))?.allExecutions() ?? []);
  }

  cancel(id: string): Promise<Canceled> {
    const job = this.#jobs.get(normal(id));
    if (!job) return Promise.resolve({ outcome: 'not_found' });
    if (!job.isLive) return Promise.resolve({ outcome: 'ended', status: job.status });
    const { lane, name } = job.job;
    if (job.status !== 'running') {
      this.#cancel(job);
      return Promise.resolve({ outcome: 'canceled', lane, name });
    }
    const claimSeq = String(job.claimSeq);
    job.close('canceled', undefined, this.now);
    job.claimSeq += 1;
    this.#cancel(job);
    return Promise.resolve({ outcome: 'canceled_running', lane, name, claimSeq, node: undefined });
  }

  redrive(id: string): Promise<Redriven> {
    const job = this.#jobs.get(normal(id));
    if (!job) return Promise.resolve({ outcome: 'not_found' });
    if (job.status !== 'failed') return Promise.resolve({ outcome: 'not_failed', status: job.status });
    const { businessKey, lane, priority } = job.job;
    const holder = businessKey === undefined ? undefined : this.#holderOf(businessKey);
    if (businessKey !== undefined && holder) {
      return Promise.resolve({ outcome: 'held', holder: holder.id, businessKey });
    }
    job.status = 'pending';
    job.scheduledAt = this.now;
    job.claimSeq += 1;
    job.failures = 0;
    job.begunAt = undefined;
    job.endedAt = undefined;
    return Promise.resolve({ outcome: 'redriven', lane, priority });
  }

  /** There is one process, and nothing is ever locked. */
  holderOf(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  find(query: JobQuery, { limit, before }: PageRequest): Promise<FoundJobs> {
    const found = this.#matching(query)
      .filter(({ id }) => before === undefined || id < before)
      .reverse();
    const jobs = found.slice(0, limit).map((job) => job.view());
    return Promise.resolve({ jobs, more: found.length > jobs.length });
  }

  count(query: JobQuery): Promise<number> {
    return Promise.resolve(this.#matching(query).length);
  }

  countControllable(action: ControlAction['kind'], query: JobQuery): Promise<number> {
    return Promise.resolve(this.#matching(query).filter((job) => isControllable(job, action)).length);
  }

  /** All in one step: nothing else happens meanwhile. */
  async control(action: ControlAction, query: JobQuery): Promise<ControlStep> {
    const matched = this.#matching(query).filter((job) => isControllable(job, action.kind));
    const changed: ControlledJob[] = [];
    for (const job of matched) {
      const ran = job.status === 'running' ? String(job.claimSeq) : undefined;
      if (!(await this.#change(job, action))) continue;
      const { name, lane, priority } = job.job;
      changed.push({ id: job.id, name, lane, priority, ...(ran === undefined ? {} : { claimSeq: ran }) });
    }
    return { matched: matched.length, changed, next: undefined };
  }

  #matching(query: JobQuery): ListedJob[] {
    return this.all().filter((job) => matches(job.view(), query));
  }

  async #change(job: ListedJob, action: ControlAction): Promise<boolean> {
    switch (action.kind) {
      case 'cancel':
        await this.cancel(job.id);
        return true;
      case 'redrive':
        return (await this.redrive(job.id)).outcome === 'redriven';
      case 'pause':
        if (job.status === 'running') job.pauseRequested = true;
        else job.status = 'paused';
        return true;
      case 'resume':
        if (job.status === 'running') job.pauseRequested = false;
        else job.status = 'pending';
        return true;
      case 'reschedule':
        job.scheduledAt = action.runAt ?? new Date(this.now.getTime() + action.delayMs);
        return true;
    }
  }

  #insert(jobs: readonly NewJob[]): readonly Inserted[] {
    if (jobs.some((job) => job.parent && !this.#jobs.get(job.parent.id)?.isHeldBy(job.parent.claimSeq))) {
      return jobs.map(() => ({ outcome: 'fenced' }));
    }
    const nowMs = this.now.getTime();
    const verdicts = judge(jobs, {
      holderOf: (key) => this.#holderOf(key),
      ownerOf: (key) => {
        const entry = this.#keys.get(key);
        return entry && entry.expiresAtMs > nowMs ? entry.id : undefined;
      },
    });
    if (!verdicts.some(({ outcome }) => outcome === 'held')) {
      jobs.forEach((job, index) => this.#enter(job, verdicts[index]));
    }
    return verdicts;
  }

  #enter(job: NewJob, verdict: Inserted | undefined): void {
    if (!verdict || !('id' in verdict)) return;
    const { now } = this;
    const key = job.idempotencyKey;
    const known = key && this.#keys.get(key.key);
    if (key && !(known && known.expiresAtMs > now.getTime())) {
      this.#keys.set(key.key, { id: verdict.id, expiresAtMs: now.getTime() + key.expiresInMs });
    }
    if (verdict.outcome !== 'created') return;
    const replaced = verdict.replaced === undefined ? undefined : this.#jobs.get(verdict.replaced);
    if (replaced) {
      this.#cancel(replaced);
      replaced.error = `superseded by ${job.id}`;
    }
    this.#jobs.set(job.id, new ListedJob(job, now));
  }

  #holderOf(businessKey: string): KeyHolder | undefined {
    for (const job of this.#jobs.values()) {
      if (job.isLive && job.job.businessKey === businessKey) {
        return { id: job.id, running: job.status === 'running' };
      }
    }
    return undefined;
  }

  #cancel(job: ListedJob): void {
    job.end('canceled', this.now);
  }
}

/** PostgreSQL takes the digits of a UUID in either case. */
function normal(id: string): string {
  return id.toLowerCase();
}

function endedJob(job: JobView): EndedJob {
  const { id, name, status, result, error, executions, failures, crashes } = job;
  return { id, name, status: status as EndedJob['status'], result, error, executions, failures, crashes };
}
