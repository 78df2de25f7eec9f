import { type OccurrenceReport } from './occurrence-report.js';
import { type RecurringParts } from './recurring-parts.js';
import { ScheduleTimer } from './schedule-timer.js';

/** So many in one statement. */
const LIMIT = 500;
/** After an answer that found none: many jobs of schedules that never wait may be ending. */
const REST_MS = 20;

type PromoterParts = Pick<RecurringParts, 'store' | 'clock' | 'events' | 'faults'> & {
  readonly report: OccurrenceReport;
};

/**
 * Makes jobs of occurrences that waited for a job of their schedule to end (`overlap: 'queue'`). It is woken: by the end of such a
 * job on this node, and by the database, which says when one could be made. One statement at a time; what comes meanwhile is
 * worth one more. After one in vain it rests for a moment, since most jobs of schedules have nobody who waits for their end.
 */
export class OccurrencePromoter {
  readonly #parts: PromoterParts;
  readonly #timer: ScheduleTimer;
  #running: Promise<void> | undefined;
  #again = false;
  #failures = 0;
  #restUntilMs = 0;
  #idle = true;

  constructor(parts: PromoterParts) {
    this.#parts = parts;
    this.#timer = new ScheduleTimer(parts.clock, () => this.wake());
  }

  /** From now on it may be woken. */
  start(): void {
    this.#idle = false;
  }

  /** Nothing more is sent until the next start. Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#idle = true;
    this.#timer.clear();
    await this.#running;
  }

  wake(): void {
    // While the database is away, or it rests, the timer alone looks.
    if (this.#idle || this.#timer.leftMs !== undefined) return;
    const restMs = this.#restUntilMs - this.#parts.clock.monotonicMs();
    if (restMs > 0) {
      this.#timer.lower(restMs);
      return;
    }
    this.#again = true;
    this.#running ??= this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    try {
      while (this.#again && !this.#idle) {
        this.#again = false;
        await this.#once();
        this.#rest();
      }
    } finally {
      // Together with the last look at #again: who wakes it a moment later would find it running, and be lost.
      this.#running = undefined;
    }
  }

  #rest(): void {
    const restMs = this.#restUntilMs - this.#parts.clock.monotonicMs();
    if (!this.#again || restMs <= 0) return;
    this.#again = false;
    this.#timer.lower(restMs);
  }

  async #once(): Promise<void> {
    const { store, clock, events, faults, report } = this.#parts;
    try {
      const jobs = await store.promote(LIMIT);
      this.#restUntilMs = jobs.length === 0 ? clock.monotonicMs() + REST_MS : 0;
      this.#failures = 0;
      faults.worked('promotion of occurrences');
      report.fired(jobs);
      events.emit('schedules_promoted', { jobs: jobs.length });
      if (jobs.length >= LIMIT) this.#again = true;
    } catch (error) {
      this.#failures += 1;
      const delayMs = faults.delayMs(this.#failures);
      faults.failed('promotion of occurrences', error, delayMs);
      this.#again = false;
      // Also when the reply was lost: the jobs are there then, and polls find them.
      if (!this.#idle) this.#timer.lower(delayMs);
    }
  }
}
