import { uuidv7 } from 'uuidv7';
import {
  type BucketRef,
  type ClaimedJob,
  type ExchangeRequest,
  type JobStore,
  type NewJob,
  type NodeRef,
  type Settlement,
  type StoreTransaction,
} from '../../store/job-store.js';
import { type ContractRunner } from './contract-runner.js';

/** An implementation of {@link JobStore} to examine, opened, on a database that nothing else uses. */
export interface JobStoreSubject {
  readonly store: JobStore;
  /** Runs `work` in a transaction of the application: commits when it resolves, rolls back when it rejects. */
  transaction<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T>;
  /** Deletes a bucket behind the store's back, as a careless hand would; what runs in it stays. */
  deleteBucket(id: string): Promise<void>;
  /** Opens the store a second time, on the same data, as another process does. The suite closes what it gets. */
  peer(): Promise<JobStore>;
  /** Called once at the end; closes the store too. */
  close(): Promise<void>;
}

/** Short words for the suite's tests. Every test works in a lane and on a node of its own. */
export class ContractBench {
  constructor(
    readonly runner: ContractRunner,
    private readonly current: () => JobStoreSubject,
  ) {}

  get store(): JobStore {
    return this.current().store;
  }

  transaction<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    return this.current().transaction(work);
  }

  deleteBucket(id: string): Promise<void> {
    return this.current().deleteBucket(id);
  }

  /** For the time of `work`, which may close it itself. */
  async withPeer(work: (peer: JobStore) => Promise<void>): Promise<void> {
    const peer = await this.current().peer();
    try {
      await work(peer);
    } finally {
      await peer.close();
    }
  }

  expect(actual: unknown): ReturnType<ContractRunner['expect']> {
    return this.runner.expect(actual);
  }

  /** A node with one bucket, in a lane that nobody else uses. */
  async node(id = `node-${uuidv7()}`): Promise<ContractNode> {
    return this.nodeIn(`lane-${uuidv7()}`, id);
  }

  async nodeIn(lane: string, id = `node-${uuidv7()}`): Promise<ContractNode> {
    const ref = await this.store.registerNode({
      id,
      host: 'contract',
      pid: 1,
      version: '1',
      lanes: [lane],
      handlers: [],
    });
    return new ContractNode(this.store, ref, await this.store.openBucket(ref, lane));
  }

  /** Moves the store's clock, and those of peers, for the time of `work`. */
  async later<T>(ms: number, work: () => Promise<T>, peers: readonly JobStore[] = []): Promise<T> {
    const stores = [this.store, ...peers];
    for (const store of stores) store.travel(ms);
    try {
      return await work();
    } finally {
      for (const store of stores) store.travel(0);
    }
  }
}

export class ContractNode {
  constructor(
    readonly store: JobStore,
    readonly ref: NodeRef,
    readonly bucket: BucketRef,
  ) {}

  /** A job in the node's lane. */
  job(overrides: Partial<NewJob> = {}): NewJob {
    return {
      id: uuidv7(),
      name: 'contract.job',
      version: 1,
      lane: this.bucket.lane,
      priority: 2,
      payload: '{"contract":true}',
      delayMs: 0,
      tags: [],
      ...overrides,
    };
  }

  async inserted(overrides: Partial<NewJob> = {}): Promise<NewJob> {
    const job = this.job(overrides);
    await this.store.insert([job]);
    return job;
  }

  exchange(overrides: Partial<ExchangeRequest> = {}): ReturnType<JobStore['exchange']> {
    return this.store.exchange({
      bucket: this.bucket,
      settle: [],
      progress: [],
      want: 0,
      handlers: [{ name: 'contract.job', version: 1 }],
      floors: {},
      suspect: true,
      wait: false,
      priorityBoostMs: 0,
      ...overrides,
    });
  }

  async claim(want = 10): Promise<readonly ClaimedJob[]> {
    return (await this.exchange({ want })).claimed;
  }

  async claimOne(overrides: Partial<NewJob> = {}): Promise<ClaimedJob> {
    await this.inserted(overrides);
    const [job] = await this.claim(1);
    if (!job) throw new Error('The job that was just inserted could not be claimed');
    return job;
  }

  settle(
    job: Pick<ClaimedJob, 'id' | 'claimSeq'>,
    rest: Omit<Settlement, 'id' | 'claimSeq'>,
  ): ReturnType<JobStore['exchange']> {
    return this.exchange({ settle: [{ id: job.id, claimSeq: job.claimSeq, ...rest }], wait: true });
  }
}
