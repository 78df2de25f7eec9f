import { uuidv7 } from 'uuidv7';
import { type Inserted, type JobStore, type JobView, type NewJob } from '../../lib/store/job-store.js';
import { StoreError, type StoreFaultKind } from '../../lib/store/store-fault.js';

/** An error of a store. */
export function fault(kind: StoreFaultKind): StoreError {
  return new StoreError(kind, kind, undefined);
}

export function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    id: uuidv7(),
    name: 'test.job',
    version: 1,
    lane: 'default',
    priority: 2,
    payload: '{}',
    delayMs: 0,
    tags: [],
    ...overrides,
  };
}

interface Call {
  readonly jobs: readonly NewJob[];
  /** Lets the statement commit, or end with an error (before or after the commit). */
  answer(outcome?: { error: Error; committed?: boolean }): void;
}

/** The two methods of a store that an insert needs, each call held open until the test answers it. */
export class HeldStore implements Pick<JobStore, 'insert' | 'get'> {
  readonly calls: Call[] = [];
  readonly rows = new Map<string, NewJob>();
  #arrivals: (() => void)[] = [];
  /** Set to answer each call at once. */
  judge: ((jobs: readonly NewJob[]) => { error: Error; committed?: boolean } | undefined) | undefined;

  insert(jobs: readonly NewJob[]): Promise<readonly Inserted[]> {
    return new Promise((resolve, reject) => {
      const answer: Call['answer'] = (outcome) => {
        if (!outcome || outcome.committed) for (const job of jobs) this.rows.set(job.id, job);
        if (outcome) reject(outcome.error);
        else resolve(jobs.map(({ id }) => ({ outcome: 'created', id })));
      };
      this.calls.push({ jobs, answer });
      if (this.judge) answer(this.judge(jobs));
      for (const arrive of this.#arrivals.splice(0)) arrive();
    });
  }

  get(id: string): Promise<JobView | undefined> {
    return Promise.resolve(this.rows.has(id) ? ({ id } as JobView) : undefined);
  }

  /** The nth insert (from 0), as soon as it is called. */
  async call(n: number): Promise<Call> {
    while (this.calls.length <= n) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
    return this.calls[n]!;
  }
}
