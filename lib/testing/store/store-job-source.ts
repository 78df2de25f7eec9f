import { hostname } from 'node:os';
import { Bucket } from '../../buckets/bucket.js';
import { type EngineSettings } from '../../engine/engine-settings.js';
import { type HandlerRegistry } from '../../jobs/handler-registry.js';
import { failureHandlersOf } from '../../jobs/job-failure.js';
import { type EngineEvents } from '../../observability/engine-events.js';
import { RuleCache } from '../../recurring/rule-cache.js';
import { ScheduleRegistration } from '../../recurring/schedule-registration.js';
import {
  type ExchangeAnswer,
  type ExchangeRequest,
  type HandlerFilter,
  type JobStore,
  type JobView,
  type LateOutcome,
  type NewJob,
  type NodeRef,
  type ProgressReport,
  type Settlement,
} from '../../store/job-store.js';
import { MissingScheduleStore } from '../../store/missing-schedule-store.js';
import { type ScheduleStore } from '../../store/schedule-store.js';
import { type ClaimAnswer, type ClaimRequest, JobSource } from '../job-source.js';
import { type RecordingIntake } from './recording-intake.js';

export interface StoreJobSourceParts {
  readonly store: JobStore;
  readonly intake: RecordingIntake;
  readonly events: EngineEvents;
  readonly settings: EngineSettings;
  readonly nodeId: string;
  readonly version: string;
  readonly handlers: HandlerRegistry;
  readonly schedules: ScheduleStore;
}

/** The day of the settlements, and one more: a test may run over midnight. */
const PARTITION_DAYS = 1;
/** A line for each application of each test would hide the lines of the tests. */
const SILENT = { log: () => {}, warn: () => {}, error: () => {} };

/**
 * Jobs out of the application's real store, by the exchanges of the engine. It registers as a node with the first claim,
 * takes back what earlier starts of that node id left, and has a bucket for each lane that it looked into.
 */
export class StoreJobSource extends JobSource {
  readonly #parts: StoreJobSourceParts;
  readonly #buckets = new Map<string, Bucket>();
  /** Where each claim that still stands belongs. */
  readonly #claims = new Map<string, Bucket>();
  readonly #deaf: () => void;
  #node: NodeRef | undefined;
  #offsetMs = 0;

  constructor(parts: StoreJobSourceParts) {
    super();
    this.#parts = parts;
    // Jobs of schedules, whoever fired them.
    this.#deaf = parts.events.on('schedule_fired', ({ jobId }) => {
      if (jobId !== undefined) parts.intake.note(jobId);
    });
  }

  override get schedules(): ScheduleStore | undefined {
    const { schedules } = this.#parts;
    return schedules instanceof MissingScheduleStore ? undefined : schedules;
  }

  override async register(): Promise<void> {
    const { schedules: store, handlers, events } = this.#parts;
    const rules = new RuleCache();
    const until = <T>(_: string, step: () => Promise<T>): Promise<T> => step();
    await new ScheduleRegistration({ store, rules, events, logger: SILENT, until }).register(
      handlers.schedules(),
    );
  }

  override async enqueue(job: NewJob): Promise<void> {
    await this.#parts.intake.submit(Promise.resolve(job));
  }

  override async claim({ lanes, handlers }: ClaimRequest): Promise<ClaimAnswer> {
    let nextDueInMs: number | undefined;
    for (const lane of lanes) {
      const bucket = await this.#bucketOf(lane, lanes, handlers);
      const answer = await this.#exchange(bucket, { want: 1, handlers });
      const [job] = answer.claimed;
      if (job) {
        this.#claims.set(job.id, bucket);
        return { job, nextDueInMs: undefined };
      }
      nextDueInMs = Math.min(nextDueInMs ?? Infinity, answer.nextDueInMs ?? Infinity);
    }
    return { job: undefined, nextDueInMs };
  }

  override async settle(settlement: Settlement): Promise<boolean> {
    const bucket = this.#claims.get(settlement.id);
    if (!bucket) return false;
    const { recorded } = await this.#exchange(bucket, { settle: [settlement], wait: true });
    return recorded.length > 0;
  }

  override async report(progress: ProgressReport): Promise<void> {
    const bucket = this.#claims.get(progress.id);
    if (bucket) await this.#exchange(bucket, { progress: [progress] });
  }

  override async late(outcome: LateOutcome): Promise<void> {
    await this.#parts.store.recordLate(outcome);
  }

  override async jobs(): Promise<readonly JobView[]> {
    const { store, intake } = this.#parts;
    const jobs: JobView[] = [];
    for (const id of intake.ids) {
      const job = await store.get(id);
      if (job) jobs.push(job);
    }
    return jobs;
  }

  override now(): Promise<Date> {
    return this.#parts.store.now();
  }

  /** A millisecond more: due times in the database have microseconds, and a Date has lost them. */
  override async until(date: Date): Promise<number> {
    const ms = date.getTime() - (await this.now()).getTime();
    return ms < 0 ? ms : ms + 1;
  }

  override async travel(ms: number): Promise<void> {
    const { store } = this.#parts;
    this.#offsetMs += ms;
    store.travel(this.#offsetMs);
    await store.ensurePartitions(PARTITION_DAYS);
  }

  override async close(): Promise<void> {
    this.#deaf();
    let clean = true;
    for (const bucket of this.#buckets.values()) clean = (await bucket.remove()) && clean;
    if (clean && this.#node) await this.#parts.store.removeNode(this.#node);
  }

  async #bucketOf(
    lane: string,
    lanes: readonly string[],
    handlers: readonly HandlerFilter[],
  ): Promise<Bucket> {
    const { store, events } = this.#parts;
    const known = this.#buckets.get(lane);
    if (known) return known;
    this.#node ??= await this.#register(lanes, handlers);
    const bucket = new Bucket(await store.openBucket(this.#node, lane), store, events);
    this.#buckets.set(lane, bucket);
    return bucket;
  }

  async #register(lanes: readonly string[], handlers: readonly HandlerFilter[]): Promise<NodeRef> {
    const { store, nodeId, version, settings, handlers: all } = this.#parts;
    await store.ensurePartitions(PARTITION_DAYS);
    const node = await store.registerNode({
      id: nodeId,
      host: hostname(),
      pid: process.pid,
      version,
      lanes,
      handlers: handlers.map(({ name }) => name),
      failureHandlers: failureHandlersOf(all.all()),
    });
    await store.rescueOwn(node, settings.maxCrashRedeliveries);
    return node;
  }

  #exchange(bucket: Bucket, request: Partial<ExchangeRequest>): Promise<ExchangeAnswer> {
    return this.#parts.store.exchange({
      bucket: bucket.ref,
      settle: [],
      progress: [],
      want: 0,
      handlers: [],
      floors: {},
      wait: false,
      suspect: true,
      priorityBoostMs: this.#parts.settings.priorityBoostMs,
      ...request,
    });
  }
}
