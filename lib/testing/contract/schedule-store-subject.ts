import { uuidv7 } from 'uuidv7';
import { type BucketRef, type ClaimedJob, type JobStore, type NodeRef } from '../../store/job-store.js';
import {
  type DueSchedule,
  type FiredJob,
  type Firing,
  type FiringOutcome,
  type JobTemplate,
  type PlannedRun,
  type ScheduleRow,
  type ScheduleSpec,
  type ScheduleStore,
} from '../../store/schedule-store.js';
import { type ContractExpectation, type ContractRunner } from './contract-runner.js';

/** An implementation of {@link ScheduleStore} to examine, on a database that nothing else uses. */
export interface ScheduleStoreSubject {
  readonly schedules: ScheduleStore;
  /** Where its jobs go, opened. Its `travel` moves the clock of both. */
  readonly jobs: JobStore;
  /** Called once at the end; closes the stores too. */
  close(): Promise<void>;
}

export const LEASE_MS = 60_000;
/** Who asks what is due: one for all tests, because it has the lease for a minute. */
export const HOLDER: NodeRef = { id: 'contract', epoch: '1' };
const MOST_DUE = 1_000;

/** A spec in the parts that a test is about. */
type PartialSpec = Partial<Omit<ScheduleSpec, 'template'>> & { readonly template?: Partial<JobTemplate> };

/** Tests, each with a lane, a node and schedules of its own, which are deleted when it has ended. */
export class ScheduleBench {
  constructor(
    readonly runner: ContractRunner,
    private readonly current: () => ScheduleStoreSubject,
  ) {}

  it(name: string, body: (each: ScheduleCase) => Promise<void>): void {
    this.runner.it(name, async () => {
      const each = await ScheduleCase.begin(this.runner, this.current());
      try {
        await body(each);
      } finally {
        await each.end();
      }
    });
  }
}

export class ScheduleCase {
  readonly #ids: string[] = [];

  private constructor(
    private readonly runner: ContractRunner,
    private readonly subject: ScheduleStoreSubject,
    readonly node: NodeRef,
    private readonly bucket: BucketRef,
    /** The store's, when the test began. */
    readonly now: Date,
  ) {}

  static async begin(runner: ContractRunner, subject: ScheduleStoreSubject): Promise<ScheduleCase> {
    const lane = `lane-${uuidv7()}`;
    const node = await subject.jobs.registerNode({
      id: `node-${uuidv7()}`,
      host: 'contract',
      pid: 1,
      version: '1',
      lanes: [lane],
      handlers: ['contract.job'],
    });
    const bucket = await subject.jobs.openBucket(node, lane);
    return new ScheduleCase(runner, subject, node, bucket, await subject.schedules.now());
  }

  get store(): ScheduleStore {
    return this.subject.schedules;
  }

  get jobs(): JobStore {
    return this.subject.jobs;
  }

  get lane(): string {
    return this.bucket.lane;
  }

  expect(actual: unknown): ContractExpectation {
    return this.runner.expect(actual);
  }

  /** So many milliseconds from the beginning of the test. */
  at(ms: number): Date {
    return new Date(this.now.getTime() + ms);
  }

  id(): string {
    const id = `schedule-${uuidv7()}`;
    this.#ids.push(id);
    return id;
  }

  spec(overrides: PartialSpec = {}): ScheduleSpec {
    return {
      id: overrides.id ?? this.id(),
      name: 'Contract',
      expression: '* * * * *',
      timeZone: 'UTC',
      origin: 'api',
      owner: undefined,
      misfire: 'once',
      overlap: 'skip',
      jitterMs: 0,
      scope: 'cluster',
      enabled: true,
      businessKey: undefined,
      ...overrides,
      template: {
        name: 'contract.job',
        version: 1,
        lane: this.lane,
        priority: 2,
        payload: '{"contract":true}',
        maxRetries: undefined,
        backoff: undefined,
        timeoutMs: undefined,
        tags: [],
        ...overrides.template,
      },
    };
  }

  /** A schedule that is due since the beginning of the test, unless `nextAt` says something else. */
  async written(overrides: PartialSpec = {}, nextAt: Date | undefined = this.now): Promise<ScheduleRow> {
    const spec = this.spec(overrides);
    await this.store.write([{ spec, revision: undefined, anchor: this.now, nextAt }]);
    return this.row(spec.id);
  }

  async row(id: string): Promise<ScheduleRow> {
    const row = await this.find(id);
    if (!row) throw new Error(`There is no schedule ${id}`);
    return row;
  }

  async find(id: string): Promise<ScheduleRow | undefined> {
    return (await this.store.byIds([id])).schedules[0];
  }

  /** As the holder of the lease. */
  async due(id: string): Promise<DueSchedule | undefined> {
    const answer = await this.store.due({ node: HOLDER, leaseMs: LEASE_MS, limit: MOST_DUE });
    return answer.due.find((schedule) => schedule.id === id);
  }

  run(at: Date, overrides: Partial<PlannedRun> = {}): PlannedRun {
    return { at, jobId: uuidv7(), delayMs: 0, missed: 0, ifBusy: 'skip', ...overrides };
  }

  /** One run at the time that it is due, and due again a minute later. */
  firing(schedule: Pick<ScheduleRow, 'id' | 'revision' | 'nextAt'>, overrides: Partial<Firing> = {}): Firing {
    const nextAt = schedule.nextAt ?? this.now;
    return {
      id: schedule.id,
      revision: schedule.revision,
      nextAt,
      advanceTo: new Date(nextAt.getTime() + 60_000),
      runs: [this.run(nextAt)],
      missed: [],
      ...overrides,
    };
  }

  /** Fires it as it stands. */
  async fire(
    id: string,
    runs: readonly PlannedRun[],
    overrides: Partial<Firing> = {},
  ): Promise<FiringOutcome> {
    const [outcome] = await this.store.fire([this.firing(await this.row(id), { runs, ...overrides })]);
    return outcome as FiringOutcome;
  }

  /** Fires it once; its job is live from now on. */
  async busy(id: string): Promise<FiredJob> {
    const outcome = await this.fire(id, [this.run((await this.row(id)).nextAt ?? this.now)]);
    const [job] = outcome.outcome === 'fired' ? outcome.jobs : [];
    if (!job) throw new Error(`The schedule ${id} made no job`);
    return job;
  }

  /** Jobs of the test's lane, running from now on. */
  async claim(want = 100): Promise<readonly ClaimedJob[]> {
    return (await this.#exchange(want, [])).claimed;
  }

  async succeed(jobs: readonly ClaimedJob[]): Promise<void> {
    await this.#exchange(0, jobs);
  }

  /** Moves the clock for the time of `work`. */
  async later<T>(ms: number, work: () => Promise<T>): Promise<T> {
    this.jobs.travel(ms);
    try {
      return await work();
    } finally {
      this.jobs.travel(0);
    }
  }

  async end(): Promise<void> {
    await this.store.delete(this.#ids);
    await this.jobs.removeNode(this.node);
  }

  #exchange(want: number, ended: readonly ClaimedJob[]): ReturnType<JobStore['exchange']> {
    return this.jobs.exchange({
      bucket: this.bucket,
      settle: ended.map(({ id, claimSeq }) => ({ id, claimSeq, outcome: 'succeeded', result: 'null' })),
      progress: [],
      want,
      handlers: [{ name: 'contract.job', version: 1 }],
      floors: {},
      suspect: true,
      wait: true,
      priorityBoostMs: 0,
    });
  }
}
