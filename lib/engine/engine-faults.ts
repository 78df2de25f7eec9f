import { type Clock } from '../cluster/clock.js';
import { describeError } from '../errors/describe-error.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { faultKindOf, type StoreFaultKind } from '../store/store-fault.js';

const LEAST_GAP_MS = 1_000;

export interface LineLogger {
  warn(message: string): void;
  error(message: string): void;
  log(message: string): void;
}

/** What to do about it, where a person can do something. */
const MENDS: Record<StoreFaultKind, string> = {
  rolled_back: 'it was rolled back and is sent again',
  unknown: 'the reply was lost; claims are compared with the database before going on',
  unavailable: 'the database is away or refuses writes; trying again',
  missing_partition: 'a day partition is missing; making it',
  bad_row: 'one row cannot be recorded; it is being singled out',
  fatal: 'check the grants and the migrations of the schema; trying again',
};

/**
 * The one place that logs failed statements: at most one line a second for the whole node, however many buckets fail, with
 * a count of what it left out; and one line when statements work again.
 */
export class EngineFaults {
  #lastMs = Number.NEGATIVE_INFINITY;
  #suppressed = 0;
  #outage = false;
  readonly #failing = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly logger: LineLogger,
    private readonly events: EngineEvents,
  ) {}

  /** Notes a failed statement; it is tried again in `retryInMs`, or by its own interval. */
  failed(where: string, error: unknown, retryInMs = 0): StoreFaultKind {
    const kind = faultKindOf(error);
    const { message } = describeError(error);
    this.#note(where, kind, message, retryInMs);
    return kind;
  }

  worked(where: string): void {
    if (this.#failing.size === 0) return;
    const failures = this.#failing.get(where);
    if (failures === undefined) return;
    this.#failing.delete(where);
    this.events.emit('recovered', { where, failures });
    if (this.#failing.size > 0 || !this.#outage) return;
    this.#outage = false;
    this.logger.log(`the database works again after ${failures} failed statements of ${where}`);
  }

  #note(where: string, kind: StoreFaultKind, message: string, retryInMs: number): void {
    this.events.emit('fault', { where, kind, message, retryInMs });
    this.#failing.set(where, (this.#failing.get(where) ?? 0) + 1);
    // One deadlock or one missing partition is not worth a line: they are mended at once. Counted above.
    if (kind === 'rolled_back' && retryInMs === 0) return;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.#lastMs < LEAST_GAP_MS) {
      this.#suppressed += 1;
      return;
    }
    this.#lastMs = nowMs;
    const more = this.#suppressed > 0 ? ` (${this.#suppressed} more not shown)` : '';
    this.#suppressed = 0;
    this.#outage = true;
    const line = `${where} failed: ${message}; ${MENDS[kind]}${more}`;
    if (kind === 'fatal') this.logger.error(line);
    else this.logger.warn(line);
  }
}
