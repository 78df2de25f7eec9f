import { type Clock } from '../cluster/clock.js';
import { type EngineEvents } from '../observability/engine-events.js';
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
/** Days of history partitions that exist ahead of time. */
export const PARTITION_DAYS = 14;
/** Fewer than this is worth a warning: settles would soon have to make their own. */
const FEWEST_DAYS = 3;

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
  readonly retention: RetentionRequest;
  readonly maxCrashRedeliveries: number;
  readonly logger: MaintenanceLogger;
  readonly onError: (task: string, error: unknown) => void;
}

/**
 * The housekeeping of the schema, each task on one node at a time: partitions ahead every hour, retention every day, and every
 * minute a look for jobs in lanes that nobody serves, and for claims of buckets that do not exist.
 */
export class Maintenance {
  readonly #tasks: readonly LeasedTask[];
  readonly #parts: MaintenanceParts;
  /** What the role may not do is said once, not every day. */
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
        everyMs: 24 * HOUR_MS,
        work: (signal) => this.#retain(signal),
      }),
      new LeasedTask({
        ...shared,
        name: 'ratchet:lanes',
        everyMs: MINUTE_MS,
        work: async () => unserved.tell(await store.unservedLanes()),
      }),
      new LeasedTask({
        ...shared,
        name: 'ratchet:orphans',
        everyMs: MINUTE_MS,
        work: (signal) => this.#orphans(signal),
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
    if (days >= FEWEST_DAYS) return;
    this.#parts.logger.warn(
      `history partitions exist for ${days} more days only; let the owner of the schema run ratchet.ensure_partitions(${PARTITION_DAYS})`,
    );
  }

  /** No statement of ours removes a bucket that holds jobs, and no other look would ever find them. */
  async #orphans(signal: AbortSignal): Promise<void> {
    const { store, events, logger, maxCrashRedeliveries } = this.#parts;
    const report = await store.rescueOrphans(maxCrashRedeliveries, signal);
    const { buckets, recovered, failed } = report;
    if (recovered + failed === 0) return;
    events.emit('rescued', report);
    logger.error(
      `${recovered + failed} jobs were running in ${buckets} buckets that do not exist: ${recovered} run again, ${failed} were ` +
        'over the crash budget and are in the dead letter; nobody may delete rows of the table "bucket", and if nobody did, please report it',
    );
  }

  async #retain(signal: AbortSignal): Promise<void> {
    const report = await this.#parts.store.retain(this.#parts.retention, signal);
    this.#tell(report);
  }

  #tell({ partitionsDropped, deadLettersDeleted, payloadsDeleted, refused }: RetentionReport): void {
    const { logger } = this.#parts;
    if (partitionsDropped.length + deadLettersDeleted + payloadsDeleted > 0) {
      logger.log(
        `retention: ${partitionsDropped.length} partitions dropped, ${deadLettersDeleted} dead letters and ` +
          `${payloadsDeleted} payloads deleted`,
      );
    }
    const news = refused.filter((sql) => !this.#refused.has(sql));
    for (const sql of news) this.#refused.add(sql);
    if (news.length > 0) {
      logger.warn(`retention needs the owner of the schema; let it run:\n${news.join('\n')}`);
    }
  }
}
