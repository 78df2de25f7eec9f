import { uuidv7 } from 'uuidv7';
import { type BucketStore, type BucketView, type LaneView } from '../../store/bucket-store.js';
import {
  type BucketRef,
  type ExchangeAnswer,
  type ExchangeRequest,
  type JobStore,
  type NewJob,
  type NodeRef,
  type NodeRegistration,
} from '../../store/job-store.js';
import { type ContractExpectation, type ContractRunner } from './contract-runner.js';

/** An implementation of {@link BucketStore} to examine, on a database that nothing else uses. */
export interface BucketStoreSubject {
  readonly buckets: BucketStore;
  /** Whose buckets they are, opened. Its `travel` moves the clock of both. */
  readonly jobs: JobStore;
  /** Called once at the end; closes the stores too. */
  close(): Promise<void>;
}

/** Short words for the suite's tests. Every test works in lanes and on nodes of its own. */
export class BucketBench {
  constructor(
    readonly runner: ContractRunner,
    private readonly current: () => BucketStoreSubject,
  ) {}

  get store(): BucketStore {
    return this.current().buckets;
  }

  get jobs(): JobStore {
    return this.current().jobs;
  }

  it(name: string, body: () => Promise<void>): void {
    this.runner.it(name, body);
  }

  expect(actual: unknown): ContractExpectation {
    return this.runner.expect(actual);
  }

  lane(): string {
    return `lane-${uuidv7()}`;
  }

  node(
    lanes: readonly string[],
    disabled?: NodeRegistration['disabled'],
    id = `node-${uuidv7()}`,
  ): Promise<NodeRef> {
    const row = { id, host: 'contract', pid: 1, version: '1', lanes, handlers: ['contract.job'] };
    return this.jobs.registerNode(disabled === undefined ? row : { ...row, disabled });
  }

  newJob(lane: string, job: Partial<NewJob> = {}): NewJob {
    return {
      id: uuidv7(),
      name: 'contract.job',
      version: 1,
      lane,
      priority: 2,
      payload: '{}',
      delayMs: 0,
      tags: [],
      ...job,
    };
  }

  async insert(lane: string, count = 1, job: Partial<NewJob> = {}): Promise<readonly string[]> {
    const jobs = Array.from({ length: count }, () => this.newJob(lane, job));
    await this.jobs.insert(jobs);
    return jobs.map(({ id }) => id);
  }

  claim(bucket: BucketRef, want: number, more: Partial<ExchangeRequest> = {}): Promise<ExchangeAnswer> {
    return this.jobs.exchange({
      bucket,
      settle: [],
      progress: [],
      want,
      handlers: [{ name: 'contract.job', version: 1 }],
      floors: {},
      suspect: true,
      wait: false,
      priorityBoostMs: 0,
      ...more,
    });
  }

  async bucketsOf(lane: string): Promise<readonly BucketView[]> {
    return (await this.store.buckets()).filter((bucket) => bucket.lane === lane);
  }

  async laneOf(name: string): Promise<LaneView | undefined> {
    return (await this.store.lanes()).find((lane) => lane.name === name);
  }
}
