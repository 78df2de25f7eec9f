import { uuidv7 } from 'uuidv7';
import { NodeDeposedError, TravelRefusedError } from '../../errors/store-errors.js';
import { isUuid } from '../../jobs/job-id.js';
import {
  type BucketRef,
  type BucketStatus,
  type Canceled,
  type ExchangeAnswer,
  type ExchangeRequest,
  type ExecutionView,
  type ForeignRequest,
  type ForeignStream,
  type Inserted,
  JobStore,
  type JobView,
  type LateOutcome,
  type NewJob,
  type NodeRef,
  type NodeRegistration,
  type Notice,
  type ProbeAnswer,
  type ProbeRequest,
  type ReconcileAnswer,
  type ReconcileRequest,
  type Redriven,
  type RescueReport,
  type RetentionReport,
  type RetentionRequest,
  type StoreTransaction,
  type UnservedLane,
} from '../job-store.js';
import { faultKindOf } from '../store-fault.js';
import { JobInserter } from './insert/job-inserter.js';
import { cancel, redrive } from './job-control.js';
import { findById } from './find-by-id.js';
import { type MigrationMode, Migrator } from './migrations/migrator.js';
import { type MakeStatement, PostgresSession, type PostgresSessionOptions } from './postgres-session.js';
import { reconcile } from './reconciler.js';
import { rescueOrphans, rescueOwn } from './rescue.js';
import { Retention } from './retention.js';
import { StartUp, type StartUpOptions } from './start-up.js';
import { deleteBucket, openBucket, setBucketStatus } from './statements/buckets.js';
import { recordLate } from './statements/late-outcome.js';
import { decodeExchange, exchangeParameters, exchangeStatement } from './statements/exchange.js';
import { decodeForeign, foreign, foreignParameters } from './statements/foreign.js';
import { markTransaction } from './statements/joined.js';
import { databaseIdentity } from './statements/database-identity.js';
import { registerNode, removeNode, setNodeState, takeNotices } from './statements/nodes.js';
import { selectNow } from './statements/now.js';
import { ensurePartitions } from './statements/partitions.js';
import { decodeProbe, probe, probeParameters } from './statements/probe.js';
import { decodeUnservedLanes, unservedLanes } from './statements/unserved-lanes.js';
import { decodeExecution, decodeJob, selectExecutions, selectJob } from './statements/views.js';

export interface PostgresJobStoreOptions extends PostgresSessionOptions {
  readonly migrations: MigrationMode;
  readonly startup: StartUpOptions;
  /** Payloads above this many bytes go to a table of their own. */
  readonly inlinePayloadBytes: number;
}

const skippingExchange: MakeStatement = (schema) => exchangeStatement(schema, false);
const waitingExchange: MakeStatement = (schema) => exchangeStatement(schema, true);

/**
 * The job store on PostgreSQL 15 and later. Each statement is a file in `statements/`; what takes several is a class of its
 * own. Exchanges run on connections of their own, what may wait on the service connection, the application's calls on
 * its own connections.
 */
export class PostgresJobStore extends JobStore {
  /** Shared with the lock store. */
  readonly session: PostgresSession;
  readonly #inserter: JobInserter;
  readonly #startUp: StartUp;
  readonly #retention: Retention;

  constructor(options: PostgresJobStoreOptions) {
    super();
    this.session = new PostgresSession(options);
    this.#retention = new Retention(this.session);
    this.#inserter = new JobInserter(this.session, options.inlinePayloadBytes);
    this.#startUp = new StartUp(
      new Migrator(options.client, options.schema, options.migrations),
      options.startup,
    );
  }

  /** @throws DatabaseUnavailableError when the database stays away, and what {@link Migrator.migrate} throws. */
  override open(): Promise<void> {
    return this.#startUp.run();
  }

  override async close(): Promise<void> {
    this.#startUp.stop();
    this.#retention.stop();
    await this.session.close();
  }

  override async registerNode(node: NodeRegistration): Promise<NodeRef> {
    const { id, host, pid, version, lanes, handlers } = node;
    const parameters = [this.session.offsetMs, id, host, pid, version, [...lanes], [...handlers]];
    const [row] = await this.session.service(registerNode, parameters);
    return { id, epoch: row?.['epoch'] as string };
  }

  override async setNodeState(node: NodeRef, state: 'running' | 'draining'): Promise<void> {
    await this.session.service(setNodeState, [node.id, node.epoch, state]);
  }

  override async removeNode(node: NodeRef): Promise<void> {
    await this.session.service(removeNode, [node.id, node.epoch]);
  }

  override async openBucket(node: NodeRef, lane: string): Promise<BucketRef> {
    const id = uuidv7();
    const parameters = [this.session.offsetMs, id, node.id, node.epoch, lane];
    const [row] = await this.session.service(openBucket, parameters);
    if (typeof row?.['epoch'] !== 'number') {
      const by = row && { host: row['host'] as string, pid: row['pid'] as number };
      throw new NodeDeposedError(node.id, by);
    }
    return { id, epoch: row['epoch'], lane, node };
  }

  override async setBucketStatus(bucket: BucketRef, from: BucketStatus, to: BucketStatus): Promise<boolean> {
    const rows = await this.session.service(setBucketStatus, [
      this.session.offsetMs,
      bucket.id,
      bucket.epoch,
      from,
      to,
    ]);
    if (rows.length === 0 || to !== 'ready_to_delete') return rows.length > 0;
    return (await this.session.service(deleteBucket, [bucket.id, bucket.epoch])).length > 0;
  }

  override insert(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<readonly Inserted[]> {
    return this.#withPartitions(() => this.#inserter.insert(jobs, transaction), transaction);
  }

  override async enlist(transaction: StoreTransaction): Promise<void> {
    await this.session.app(markTransaction, [transaction.mark], transaction);
  }

  override async reachedBy(transaction: StoreTransaction): Promise<boolean> {
    const parameters = [this.session.schemaName];
    const [theirs] = await this.session.app(databaseIdentity, parameters, transaction);
    const [ours] = await this.session.app(databaseIdentity, parameters);
    return typeof theirs?.['identity'] === 'string' && theirs['identity'] === ours?.['identity'];
  }

  override async exchange(request: ExchangeRequest): Promise<ExchangeAnswer> {
    const statement = this.session.statement(request.wait ? waitingExchange : skippingExchange);
    const { engine, offsetMs } = this.session;
    const parameters = exchangeParameters(request, offsetMs);
    // One that waits for locked rows must not hold up the turns of the other buckets.
    const rows = await (request.wait
      ? engine.service.query(statement, parameters)
      : engine.exchange(statement, parameters));
    return decodeExchange(request, rows);
  }

  override async probe(request: ProbeRequest): Promise<ProbeAnswer> {
    return decodeProbe(await this.session.service(probe, probeParameters(request)));
  }

  override async foreign(request: ForeignRequest): Promise<readonly ForeignStream[]> {
    return decodeForeign(
      await this.session.service(foreign, foreignParameters(request, this.session.offsetMs)),
    );
  }

  override reconcile(request: ReconcileRequest): Promise<ReconcileAnswer> {
    return reconcile(this.session, request);
  }

  override rescueOwn(node: NodeRef, maxCrashRedeliveries: number): Promise<RescueReport> {
    return this.#withPartitions(() => rescueOwn(this.session, node, maxCrashRedeliveries));
  }

  override rescueOrphans(maxCrashRedeliveries: number, signal?: AbortSignal): Promise<RescueReport> {
    return this.#withPartitions(() => rescueOrphans(this.session, maxCrashRedeliveries, signal));
  }

  override async recordLate(late: LateOutcome): Promise<boolean> {
    const { jobId, claimSeq, outcome, error } = late;
    const { offsetMs } = this.session;
    const rows = await findById(
      jobId,
      offsetMs,
      (bound) => this.session.service(recordLate, [offsetMs, jobId, claimSeq, outcome, error ?? null, bound]),
      ({ length }) => length > 0,
    );
    return rows.length > 0;
  }

  override async takeNotices(node: NodeRef): Promise<readonly Notice[]> {
    const rows = await this.session.service(takeNotices, [node.id, node.epoch]);
    return rows.map((row) => ({
      jobId: row['job_id'] as string,
      claimSeq: row['claim_seq'] as string,
      reason: row['reason'] as Notice['reason'],
    }));
  }

  override async get(id: string): Promise<JobView | undefined> {
    if (!isUuid(id)) return undefined;
    const [row] = await findById(
      id,
      this.session.offsetMs,
      (bound) => this.session.app(selectJob, [id, bound]),
      ({ length }) => length > 0,
    );
    return row && decodeJob(row);
  }

  override async executions(id: string): Promise<readonly ExecutionView[]> {
    if (!isUuid(id)) return [];
    return findById(
      id,
      this.session.offsetMs,
      async (bound) => (await this.session.app(selectExecutions, [id, bound])).map(decodeExecution),
      // What the bound hides are the oldest ones.
      ([first]) => first?.number === 1,
    );
  }

  override cancel(id: string): Promise<Canceled> {
    return this.#withPartitions(() => cancel(this.session, id));
  }

  override redrive(id: string): Promise<Redriven> {
    return redrive(this.session, id);
  }

  override async unservedLanes(): Promise<readonly UnservedLane[]> {
    return decodeUnservedLanes(await this.session.service(unservedLanes, [this.session.offsetMs]));
  }

  override async ensurePartitions(days: number): Promise<number> {
    const [row] = await this.session.service(ensurePartitions, [days, this.session.offsetMs]);
    return row?.['ahead'] as number;
  }

  override retain(request: RetentionRequest, signal?: AbortSignal): Promise<RetentionReport> {
    return this.#retention.retain(request, signal);
  }

  override async now(): Promise<Date> {
    const [row] = await this.session.app(selectNow, [this.session.offsetMs]);
    return new Date(Math.floor(Number(row?.['ms'])));
  }

  override travel(offsetMs: number): void {
    if (process.env['NODE_ENV'] === 'production') throw new TravelRefusedError();
    this.session.offsetMs = offsetMs;
  }
  /** Calls of the application write history too. In its transaction a missing partition must not be met at all. */
  async #withPartitions<T>(work: () => Promise<T>, transaction?: StoreTransaction): Promise<T> {
    if (transaction && this.session.offsetMs !== 0) await this.#ensureToday();
    try {
      return await work();
    } catch (error) {
      if (transaction || faultKindOf(error) !== 'missing_partition') throw error;
      await this.#ensureToday();
      return work();
    }
  }

  async #ensureToday(): Promise<void> {
    await this.session.app(ensurePartitions, [0, this.session.offsetMs]);
  }
}
