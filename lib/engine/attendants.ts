import { type FallbackWatch } from '../buckets/fallback-watch.js';
import { Maintenance } from '../maintenance/maintenance.js';
import { type Recurring } from '../recurring/recurring.js';
import { ScheduleSweep } from '../recurring/schedule-sweep.js';
import { type NodeRef, type Notice } from '../store/job-store.js';
import { type ScheduleStore } from '../store/schedule-store.js';
import { type EngineFaults } from './engine-faults.js';
import { type EngineParts } from './engine-parts.js';
import { daysLeft, type EngineReport } from './engine-snapshot.js';
import { type ExchangeLoop } from './exchange-loop.js';
import { type LineLogger } from './line-logger.js';
import { Messenger } from './messenger.js';

export interface AttendantsParts {
  readonly engine: EngineParts;
  readonly faults: EngineFaults;
  readonly logger: LineLogger;
  readonly loops: () => readonly ExchangeLoop[];
  readonly recurring: Recurring | undefined;
  /** Not where nothing is run. */
  readonly fallback: FallbackWatch | undefined;
  /** Without it the schedules of the cluster are not looked after. */
  readonly schedules: ScheduleStore | undefined;
  readonly beatNow: () => void;
}

/** What acts in the name of a node beside its lanes, for as long as it has that name: messages, housekeeping, recurring schedules, lanes that nobody serves. */
export class Attendants {
  readonly #parts: AttendantsParts;
  #messenger: Messenger | undefined;
  #maintenance: Maintenance | undefined;
  #partitions: { readonly days: number; readonly atMs: number } | undefined;

  constructor(parts: AttendantsParts) {
    this.#parts = parts;
  }

  /** Begins, or begins anew under another name. */
  attend(node: NodeRef): void {
    const { engine, loops, beatNow, recurring, fallback } = this.#parts;
    const { messages, events } = engine;
    this.#messenger?.stop();
    this.#messenger = new Messenger({ messages, events, loops, onCatchUp: beatNow });
    this.#messenger.start();
    void this.#maintenance?.stop();
    this.#maintenance = this.#maintenanceOf(node);
    this.#maintenance.start();
    recurring?.attend(node);
    fallback?.attend(node);
  }

  /** What the database has kept for this node. */
  noticed(notices: readonly Notice[]): void {
    this.#messenger?.noticed(notices);
  }

  report(): Pick<EngineReport, 'partitions'> {
    if (!this.#partitions) return {};
    const { days, atMs } = this.#partitions;
    const ageMs = Math.round(this.#parts.engine.clock.monotonicMs() - atMs);
    return { partitions: { daysAhead: daysLeft(days, ageMs), ageMs } };
  }

  /** Nothing acts by itself any more. Messages are still heard. */
  async stopTimers(): Promise<void> {
    const { recurring, fallback } = this.#parts;
    await Promise.all([this.#maintenance?.stop(), recurring?.stop(), fallback?.stop()]);
  }

  stopListening(): void {
    this.#messenger?.stop();
  }

  #maintenanceOf(node: NodeRef): Maintenance {
    const { engine, faults, logger, schedules } = this.#parts;
    const { store, locks, clock, events, settings } = engine;
    const { historyMs, historyBytes, executionsMs, deadLetterMs } = settings.retention;
    const { convergenceMs } = settings.recurring;
    return new Maintenance({
      node,
      store,
      locks,
      clock,
      events,
      ...(engine.buckets ? { buckets: engine.buckets } : {}),
      ...(schedules
        ? { schedules: new ScheduleSweep({ store: schedules, convergenceMs, historyMs, logger }) }
        : {}),
      retention: { historyMs, historyBytes, executionMs: executionsMs, deadLetterMs },
      maxCrashRedeliveries: settings.maxCrashRedeliveries,
      logger,
      onPartitions: (days) => (this.#partitions = { days, atMs: clock.monotonicMs() }),
      onError: (task, error) => void faults.failed(task, error),
    });
  }
}
