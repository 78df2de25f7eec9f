import { counted } from '../errors/counted.js';
import { describeError } from '../errors/describe-error.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type NewJob } from '../store/job-store.js';

/** What the intake says to people. */
export interface IntakeLogger {
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Between two lines. */
const LINE_EVERY_MS = 1_000;
const OUTAGE_LINE_EVERY_MS = 30_000;
const MOST_NAMES = 5;

/**
 * Says which buffered jobs were not saved, since whoever enqueued them may not look: an event each, and at most one line a
 * second, with names and counts. Says as well, now and then, that buffered jobs wait for the database, and that they no longer do.
 */
export class UnsavedReport {
  /** Not told yet. */
  readonly #counts = new Map<string, number>();
  #last: unknown;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #outageToldAtMs: number | undefined;

  constructor(
    private readonly logger: IntakeLogger,
    private readonly events: EngineEvents | undefined,
  ) {}

  /** They are not there, or nobody can say so. */
  unsaved(jobs: readonly NewJob[], error: unknown): void {
    this.#last = error;
    for (const { name } of jobs) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (this.events?.heard('unsaved')) {
      const text = describeError(error).message;
      for (const { id, name, lane } of jobs)
        this.events.emit('unsaved', { jobId: id, name, lane, error: text });
    }
    if (this.#timer) return;
    const waitMs = this.#toldAtMs + LINE_EVERY_MS - performance.now();
    // Not in this turn: the others of the same insert are about to be refused as well.
    this.#timer = setTimeout(() => this.tell(), Math.max(0, waitMs));
    this.#timer.unref();
  }

  /** Says now what has not been said. */
  tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#counts.size === 0) return;
    const names = [...this.#counts].sort(([, one], [, other]) => other - one);
    const count = names.reduce((sum, [, more]) => sum + more, 0);
    const list = names.slice(0, MOST_NAMES).map(([name, more]) => `${name} (${more})`);
    const rest = names.length > MOST_NAMES ? `, and ${counted(names.length - MOST_NAMES, 'other name')}` : '';
    this.#counts.clear();
    this.#toldAtMs = performance.now();
    this.logger.error(
      `${counted(count, 'buffered job')} could not be saved: ${list.join(', ')}${rest}; ${count > 1 ? 'of the last one: ' : ''}${describeError(this.#last).message}`,
    );
  }

  /** An insert failed, and is tried again. */
  waiting(jobs: number, error: unknown): void {
    const nowMs = performance.now();
    if (this.#outageToldAtMs !== undefined && nowMs - this.#outageToldAtMs < OUTAGE_LINE_EVERY_MS) return;
    this.#outageToldAtMs = nowMs;
    this.logger.warn(
      `${counted(jobs, 'buffered job')} cannot be saved now, and are kept and tried again: ${describeError(error).message}`,
    );
  }

  /** An insert was committed. */
  worked(): void {
    if (this.#outageToldAtMs === undefined) return;
    this.#outageToldAtMs = undefined;
    this.logger.log('buffered jobs are saved again');
  }
}
