import { counted } from '../errors/counted.js';
import { taken, tellRescued } from '../buckets/rescuer.js';
import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type BucketStore } from '../store/bucket-store.js';
import {
  type JobStore,
  type NodeRef,
  type RetentionReport,
  type RetentionRequest,
} from '../store/job-store.js';
import { type LockStore } from '../store/lock-store.js';
import { LeasedTask } from './leased-task.js';
import { UnservedLanesReport } from './unserved-lanes-report.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Of the minute: when its holder is gone, the next one of another node finds the lease free. */
const SWEEP_KEPT_MS = 0.9 * MINUTE_MS;
/** Days of history partitions that exist ahead of time. */
export const PARTITION_DAYS = 14;
/** Fewer than this is worth a warning: settles would soon have to make their own. */
const FEWEST_DAYS = 3;

/** Longer than the pauses of a service that is deployed, or scaled to nothing over night. */
const FAILURE_HANDLER_AGE_MS = 24 * HOUR_MS;

interface MaintenanceLogger {
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface MaintenanceParts {
  readonly node: NodeRef;
  readonly store: JobStore;
  readonly locks: LockStore;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly buckets?: Pick<BucketStore, 'agreeOnPriorities'>;
  /** Of recurring schedules. */
  readonly schedules?: { run(): Promise<void>; forget(signal: AbortSignal): Promise<void> };
  readonly retention: RetentionRequest;
  readonly maxCrashRedeliveries: number;
  readonly logger: MaintenanceLogger;
  /** History partitions exist for so many days ahead. */
  readonly onPartitions?: (daysAhead: number) => void;
  readonly onError: (task: string, error: unknown) => void;
}

/**
 * The housekeeping of the schema, each task on one node at a time: partitions ahead and retention every hour, and every
 * minute a look for jobs in lanes that nobody serves, for claims of buckets that do not exist, for priorities that the nodes of a lane have
 * switched off, and for recurring schedules that no
 * node has any more.
 */
export class Maintenance {
  readonly #tasks: readonly LeasedTask[];
  readonly #parts: MaintenanceParts;
  /** What the role may not do is said once, not every hour. */
  readonly #refused = new Set<string>();

  constructor(parts: MaintenanceParts) {
    this.#parts = parts;
    const { node, locks, clock, events, onError, store, logger } = parts;
    const unserved = new UnservedLanesReport(logger);
    const shared = { node, locks, clock, events, onError };
    this.#tasks = [
      new LeasedTask({
        ...shared,
        name: 'ratchet:partitions',
        everyMs: HOUR_MS,
        work: () => this.#partitions(),
      }),
      new LeasedTask({
        ...shared,
        name: 'ratchet:retention',
        // Not once a day: a burst may fill what a bound in bytes allows within hours.
        everyMs: HOUR_MS,
        work: async (signal) => {
          await inTurn(
            () => this.#retain(signal),
            async () => parts.schedules?.forget(signal),
          );
        },
      }),
      new LeasedTask({
        ...shared,
        name: 'ratchet:failure-handlers',
        everyMs: HOUR_MS,
        work: () => this.#forgetFailureHandlers(),
      }),
      new LeasedTask({
        ...shared,
        // One lease for them, and one node for all: idle nodes should cost little.
        name: 'ratchet:sweeps',
        everyMs: MINUTE_MS,
        keepMs: SWEEP_KEPT_MS,
        work: async (signal) => {
          await inTurn(
            async () => unserved.tell(await store.unservedLanes()),
            () => this.#orphans(signal),
            async () => parts.buckets?.agreeOnPriorities(),
            async () => parts.schedules?.run(),
          );
        },
      }),
    ];
  }

  start(): void {
    for (const task of this.#tasks) task.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#tasks.map((task) => task.stop()));
  }

  async #partitions(): Promise<void> {
    const days = await this.#parts.store.ensurePartitions(PARTITION_DAYS);
    this.#parts.onPartitions?.(days);
    if (days >= FEWEST_DAYS) return;
    this.#parts.logger.warn(
      `history partitions exist for ${counted(days, 'more day')} only; let the owner of the schema run ratchet.ensure_partitions(${PARTITION_DAYS})`,
    );
  }

  /** Otherwise jobs would pile up that no node can run. */
  async #forgetFailureHandlers(): Promise<void> {
    const forgotten = await this.#parts.store.forgetFailureHandlers(FAILURE_HANDLER_AGE_MS);
    for (const name of forgotten) {
      this.#parts.logger.warn(
        `no node has had an @OnJobFailure handler of "${name}" for a day: failures of it no longer call one, until a node has it again`,
      );
    }
  }

  /** No statement of ours removes a bucket that holds jobs, and no other look would ever find them. */
  async #orphans(signal: AbortSignal): Promise<void> {
    const { store, events, logger, maxCrashRedeliveries } = this.#parts;
    const report = await store.rescueOrphans(maxCrashRedeliveries, signal);
    const { buckets, recovered, failed, unbegun = 0 } = report;
    const found = taken(report);
    if (found === 0) return;
    tellRescued(events, report);
    logger.error(
      `${counted(found, 'job')} found running in ${counted(buckets, 'bucket')} without a row: ${recovered + unbegun} to run again, ${failed} ` +
        'over the crash budget and in the dead letter; nobody may delete rows of the table "bucket", and if nobody did, please report it',
    );
  }

  async #retain(signal: AbortSignal): Promise<void> {
    const report = await this.#parts.store.retain(this.#parts.retention, signal);
    this.#tell(report);
  }

  #tell({
    partitionsDropped,
    droppedForSize,
    deadLettersDeleted,
    payloadsDeleted,
    refused,
  }: RetentionReport): void {
    const { logger } = this.#parts;
    if (partitionsDropped.length + deadLettersDeleted + payloadsDeleted > 0) {
      logger.log(
        `retention: ${partitionsDropped.length} partitions dropped, ${deadLettersDeleted} dead letters and ` +
          `${payloadsDeleted} payloads deleted`,
      );
    }
    if (droppedForSize.length > 0) {
      logger.warn(
        `retention: history was larger than retention.historyBytes (${this.#parts.retention.historyBytes ?? Infinity}): ` +
          `${droppedForSize.join(', ')} went before the time`,
      );
    }
    const news = refused.filter((sql) => !this.#refused.has(sql));
    for (const sql of news) this.#refused.add(sql);
    if (news.length > 0) {
      logger.warn(`retention needs the owner of the schema; let it run:\n${news.join('\n')}`);
    }
  }
}

/** All of them, whatever becomes of one: what the first of those that fail says is thrown in the end. */
async function inTurn(...steps: (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => void failures.push(error));
  if (failures.length > 0) throw failures[0];
}
