import { type Clock } from '../cluster/clock.js';
import { describeError } from '../errors/describe-error.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { faultKindOf, type StoreError, type StoreFaultKind } from '../store/store-fault.js';
import { mendOf } from './fault-mends.js';

const LEAST_GAP_MS = 1_000;

export interface LineLogger {
  warn(message: string): void;
  error(message: string): void;
  log(message: string): void;
}

/**
 * The one place that logs failed statements: at most one line a second for the whole node, however many buckets fail, with
 * a count of what it left out; and one line when statements work again.
 */
export class EngineFaults {
  #lastMs = Number.NEGATIVE_INFINITY;
  #suppressed = 0;
  readonly #failing = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly logger: LineLogger,
    private readonly events: EngineEvents,
  ) {}

  /**
   * Notes a failed statement. With `retryInMs` its owner tries again and says {@link EngineFaults.worked} in the end
   * (`who`: which of several owners); without, it is tried again by its own interval, or at once.
   */
  failed(where: string, error: unknown, retryInMs = 0, who = ''): StoreFaultKind {
    const kind = faultKindOf(error);
    const { message } = describeError(error);
    this.events.emit('fault', { where, kind, message, retryInMs });
    const key = where + who;
    if (retryInMs > 0) this.#failing.set(key, (this.#failing.get(key) ?? 0) + 1);
    // One deadlock is not worth a line: it is mended at once. Counted above.
    if (kind !== 'rolled_back' || retryInMs > 0)
      this.#say(where, kind, `${message}; ${mendOf(kind, sourceCodeOf(error))}`);
    return kind;
  }

  /** The statement works (again). */
  worked(where: string, who = ''): void {
    if (this.#failing.size === 0) return;
    const key = where + who;
    const failures = this.#failing.get(key);
    if (failures === undefined) return;
    this.#failing.delete(key);
    this.events.emit('recovered', { where, failures });
    if (this.#failing.size === 0)
      this.logger.log(`the database works again (${where} had failed ${failures} times)`);
  }

  #say(where: string, kind: StoreFaultKind, message: string): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.#lastMs < LEAST_GAP_MS) {
      this.#suppressed += 1;
      return;
    }
    this.#lastMs = nowMs;
    const more = this.#suppressed > 0 ? ` (${this.#suppressed} more not shown)` : '';
    this.#suppressed = 0;
    const line = `${where} failed: ${message}${more}`;
    if (kind === 'fatal') this.logger.error(line);
    else this.logger.warn(line);
  }
}

function sourceCodeOf(error: unknown): unknown {
  return (error as Partial<StoreError> | undefined)?.sourceCode;
}
