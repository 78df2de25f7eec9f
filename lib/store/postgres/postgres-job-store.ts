import { uuidv7 } from 'uuidv7';
import { type RowHolder } from '../../errors/control-errors.js';
import { NodeCordonedError } from '../../errors/bucket-errors.js';
import { NodeDeposedError, TravelRefusedError } from '../../errors/store-errors.js';
import { isUuid } from '../../jobs/job-id.js';
import { type PriorityRank } from '../../jobs/priority.js';
import {
  type BucketRef,
  type BucketStatus,
  type Canceled,
  type ControlAction,
  type ControlPlace,
  type ControlStep,
  type EndedAnswer,
  type ExchangeAnswer,
  type ExchangeRequest,
  type ExecutionView,
  type FallbackNeed,
  type FallbackNeedRequest,
  type FallbackRequest,
  type StarvingAnswer,
  type StarvingRequest,
  type FoundJobs,
  type ForeignRequest,
  type ForeignStream,
  type Inserted,
  type JobQuery,
  JobStore,
  type JobView,
  type LateOutcome,
  type NewJob,
  type NodeRef,
  type NodeRegistration,
  type PageRequest,
  type ProbeAnswer,
  type ProbeRequest,
  type ReconcileAnswer,
  type ReconcileRequest,
  type Redriven,
  type RescueReport,
  type RetentionReport,
  type RetentionRequest,
  type Settlement,
  type StoreTransaction,
  type UnservedLane,
} from '../job-store.js';
import {
  type BeatAnswer,
  type BeatRequest,
  type LostReport,
  type NodeView,
  type RescueRequest,
} from '../membership.js';
import { type BeatProgram, beatProgram } from './beat-program.js';
import { BucketMoves } from './bucket-moves.js';
import { JobInserter } from './insert/job-inserter.js';
import { agreeOnPriorities } from './agree-on-priorities.js';
import { cancel, holderOf, redrive } from './job-control.js';
import { endedJobs } from './ended-jobs.js';
import { fallbackNeeded, openFallback, starving } from './fallback.js';
import { findById } from './find-by-id.js';
import { type MigrationMode, Migrator } from './migrations/migrator.js';
import { PostgresSession, type PostgresSessionOptions } from './postgres-session.js';
import { JobQueries } from './query/job-query.js';
import { reconcile } from './reconciler.js';
import { Rescue } from './rescue.js';
import { Retention } from './retention.js';
import { fateOf, settleWithin, stands } from './settle-within.js';
import { StartUp, type StartUpOptions } from './start-up.js';
import { deleteEmptyBucketsOf, loseBucketsOf, openBucket } from './statements/buckets.js';
import { recordLate } from './statements/late-outcome.js';
import { decodeExchange } from './statements/exchange/answer.js';
import { type ExchangeStatement, exchangeStatement } from './statements/exchange/exchange.js';
import { exchangeParameters } from './statements/exchange/parameters.js';
import { shapeName, shapeOf } from './statements/exchange/shape.js';
import { decodeForeign, foreign, foreignParameters } from './statements/foreign.js';
import { markTransaction } from './statements/joined.js';
import { beat, beatParameters, decodeBeat, decodeNode, selectNodes } from './statements/heartbeat.js';
import { databaseIdentity } from './statements/database-identity.js';
import {
  registerNode,
  registerParameters,
  removeNode,
  returnNode,
  setNodeState,
} from './statements/nodes.js';
import { forgetFailureHandlers } from './statements/failure-handlers.js';
import { selectNow } from './statements/now.js';
import { ensurePartitions } from './statements/partitions.js';
import { decodeProbe, probe, probeParameters } from './statements/probe.js';
import { decodeUnservedLanes, unservedLanes } from './statements/unserved-lanes.js';
import { decodeExecution, decodeJob, selectExecutions, selectJob } from './statements/views.js';
import { ensureToday, withPartitions } from './with-partitions.js';

export interface PostgresJobStoreOptions extends PostgresSessionOptions {
  readonly migrations: MigrationMode;
  readonly startup: StartUpOptions;
  /** Payloads above this many bytes go to a table of their own. */
  readonly inlinePayloadBytes: number;
}

/**
 * The job store on PostgreSQL 15 and later. Each statement is a file in `statements/`; what takes several is a class of its
 * own. Exchanges run on connections of their own, what may wait on the service connection, the application's calls on
 * its own connections.
 */
export class PostgresJobStore extends JobStore {
  /** Shared with the lock store. */
  readonly session: PostgresSession;
  readonly #inserter: JobInserter;
  readonly #queries: JobQueries;
  readonly #rescue: Rescue;
  readonly #startUp: StartUp;
  readonly #moves: BucketMoves;
  readonly #retention: Retention;
  /** By shape, each made once. */
  readonly #exchanges = new Map<string, ExchangeStatement>();

  constructor(options: PostgresJobStoreOptions) {
    super();
    this.session = new PostgresSession(options);
    this.#queries = new JobQueries(this.session);
    this.#rescue = new Rescue(this.session);
    this.#moves = new BucketMoves(this.session);
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
    const [row] = await this.session.service(registerNode, registerParameters(node, this.session.offsetMs));
    await agreeOnPriorities(this.session);
    return { id: node.id, epoch: row?.['epoch'] as string };
  }

  override async returnNode(node: NodeRegistration): Promise<NodeRef | undefined> {
    const [row] = await this.session.service(returnNode, registerParameters(node, this.session.offsetMs));
    await agreeOnPriorities(this.session);
    return row && { id: node.id, epoch: row['epoch'] as string };
  }

  override async beat(request: BeatRequest): Promise<BeatAnswer> {
    const [row] = await this.session.beat(beat, beatParameters(request, this.session.offsetMs));
    return decodeBeat(row);
  }

  /** What a worker thread needs to beat on a connection of its own; undefined where a connection setting cannot be given to one. */
  beatProgram(): Promise<BeatProgram | undefined> {
    return beatProgram(this.session);
  }

  override async nodes(): Promise<readonly NodeView[]> {
    const rows = await this.session.app(selectNodes, [this.session.offsetMs]);
    return rows.map(decodeNode);
  }

  override async setNodeState(node: NodeRef, state: 'running' | 'draining'): Promise<void> {
    await this.session.service(setNodeState, [node.id, node.epoch, state]);
  }

  override async removeNode(node: NodeRef): Promise<void> {
    await this.session.service(removeNode, [node.id, node.epoch]);
    await this.session.service(loseBucketsOf, [this.session.offsetMs, node.id, node.epoch]);
    await this.session.service(deleteEmptyBucketsOf, [node.id, node.epoch]);
    await agreeOnPriorities(this.session);
  }

  override async openBucket(
    node: NodeRef,
    lane: string,
    priority?: PriorityRank,
    id: string = uuidv7(),
  ): Promise<BucketRef> {
    const parameters = [this.session.offsetMs, id, node.id, node.epoch, lane, priority ?? null];
    const [row] = await this.session.service(openBucket, parameters);
    if (typeof row?.['epoch'] !== 'number') {
      if (row?.['cordoned'] === 'true') throw new NodeCordonedError(node.id);
      const by = row && { host: row['host'] as string, pid: row['pid'] as number };
      throw new NodeDeposedError(node.id, by);
    }
    return { id, epoch: row['epoch'], lane, node, ...(priority === undefined ? {} : { priority }) };
  }

  override starving(request: StarvingRequest): Promise<StarvingAnswer> {
    return starving(this.session, request);
  }

  override openFallback(request: FallbackRequest): Promise<BucketRef | undefined> {
    return openFallback(this.session, request);
  }

  override fallbackNeeded(request: FallbackNeedRequest): Promise<FallbackNeed> {
    return fallbackNeeded(this.session, request);
  }

  override setBucketStatus(bucket: BucketRef, from: BucketStatus, to: BucketStatus): Promise<boolean> {
    return this.#moves.move(bucket, from, to);
  }

  override insert(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<readonly Inserted[]> {
    return this.#withPartitions(() => this.#inserter.insert(jobs, transaction), transaction);
  }

  override async enlist(transaction: StoreTransaction): Promise<{ readonly isolation: string }> {
    const [row] = await this.session.app(markTransaction, [transaction.mark], transaction);
    return { isolation: row?.['isolation'] as string };
  }

  override async reachedBy(transaction: StoreTransaction): Promise<boolean> {
    const parameters = [this.session.schemaName];
    const [theirs] = await this.session.app(databaseIdentity, parameters, transaction);
    const [ours] = await this.session.app(databaseIdentity, parameters);
    return typeof theirs?.['identity'] === 'string' && theirs['identity'] === ours?.['identity'];
  }

  override async exchange(request: ExchangeRequest): Promise<ExchangeAnswer> {
    const { engine, offsetMs, schema } = this.session;
    const shape = shapeOf(request);
    const name = shapeName(shape);
    const statement = this.#exchanges.get(name) ?? exchangeStatement(schema, shape);
    this.#exchanges.set(name, statement);
    const parameters = exchangeParameters(request, offsetMs, statement);
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
    return this.#rescue.own(node, maxCrashRedeliveries);
  }

  override rescueOrphans(maxCrashRedeliveries: number, signal?: AbortSignal): Promise<RescueReport> {
    return this.#rescue.orphans(maxCrashRedeliveries, signal);
  }

  override rescueLost(request: RescueRequest, signal?: AbortSignal): Promise<LostReport> {
    return this.#rescue.lost(request, signal);
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

  override async get(id: string): Promise<JobView | undefined> {
    if (!isUuid(id)) return undefined;
    const [row] = await findById(
      id,
      this.session.offsetMs,
      (bound) => this.session.read(selectJob, [id, bound]),
      ({ length }) => length > 0,
    );
    return row && decodeJob(row);
  }

  override async executions(id: string): Promise<readonly ExecutionView[]> {
    if (!isUuid(id)) return [];
    return findById(
      id,
      this.session.offsetMs,
      async (bound) => (await this.session.read(selectExecutions, [id, bound])).map(decodeExecution),
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

  override holderOf(id: string): Promise<RowHolder | undefined> {
    return holderOf(this.session, id);
  }

  override find(query: JobQuery, page: PageRequest): Promise<FoundJobs> {
    return this.#queries.find(query, page);
  }

  override count(query: JobQuery): Promise<number> {
    return this.#queries.count(query);
  }

  override countControllable(action: ControlAction['kind'], query: JobQuery): Promise<number> {
    return this.#queries.countControllable(action, query);
  }

  override control(action: ControlAction, query: JobQuery, place?: ControlPlace): Promise<ControlStep> {
    return this.#withPartitions(() => this.#queries.control(action, query, place));
  }

  override ended(ids: readonly string[], everywhere = false): Promise<EndedAnswer> {
    return endedJobs(this.session, ids, everywhere);
  }

  override stands(
    claim: { readonly id: string; readonly claimSeq: string },
    connection: StoreTransaction,
  ): Promise<boolean> {
    return stands(this.session, claim, connection);
  }

  override settleWithin(
    transaction: StoreTransaction,
    settlement: Settlement & { readonly outcome: 'succeeded' | 'snoozed' },
  ): Promise<boolean> {
    return this.#withPartitions(() => settleWithin(this.session, transaction, settlement), transaction);
  }

  override fateOf(claim: { id: string; claimSeq: string; drop?: boolean }): ReturnType<JobStore['fateOf']> {
    return fateOf(this.session, claim);
  }

  override async unservedLanes(): Promise<readonly UnservedLane[]> {
    return decodeUnservedLanes(await this.session.service(unservedLanes, [this.session.offsetMs]));
  }

  override async forgetFailureHandlers(ageMs: number): Promise<readonly string[]> {
    const rows = await this.session.service(forgetFailureHandlers, [this.session.offsetMs, ageMs]);
    return rows.map((row) => row['job_name'] as string);
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
    if (!transaction) return withPartitions(this.session, work);
    if (this.session.offsetMs !== 0) await ensureToday(this.session);
    return work();
  }
}
