import { type Clock } from '../../cluster/clock.js';
import {
  type Canceled,
  type ExecutionView,
  type Inserted,
  type JobView,
  type NewJob,
  type Redriven,
} from '../../store/job-store.js';
import { TestingNeedsDatabaseError } from '../testing-errors.js';
import { judge, type KeyHolder } from './key-book.js';
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

  constructor(private readonly clock: Clock) {}

  get now(): Date {
    return this.clock.now();
  }

  /** In the order of the calls. */
  all(): ListedJob[] {
    return [...this.#jobs.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  find(id: string): ListedJob | undefined {
    return this.#jobs.get(id);
  }

  /** `history: 'drop'`: as if it had never been. */
  remove(id: string): void {
    this.#jobs.delete(id);
  }

  async submit(making: Promise<NewJob>, transaction?: unknown): Promise<Inserted> {
    const jobs = making.then((job) => [job]);
    const [inserted] = await this.submitMany(jobs, transaction);
    if (!inserted) throw new TypeError('One job gives one answer');
    return inserted;
  }

  async submitMany(making: Promise<readonly NewJob[]>, transaction?: unknown): Promise<readonly Inserted[]> {
    const jobs = await making;
    if (transaction !== undefined && transaction !== null) {
      throw new TestingNeedsDatabaseError('enqueue.transaction');
    }
    return this.#insert(jobs);
  }

  get(id: string): Promise<JobView | undefined> {
    return Promise.resolve(this.#jobs.get(normal(id))?.view());
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
    job.status = 'canceled';
    job.endedAt = this.now;
  }
}

/** PostgreSQL takes the digits of a UUID in either case. */
function normal(id: string): string {
  return id.toLowerCase();
}
