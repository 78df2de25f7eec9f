import { type Clock } from '../cluster/clock.js';
import { describeError } from '../errors/describe-error.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { faultKindOf, type StoreError, type StoreFaultKind } from '../store/store-fault.js';
import { type RatchetSnapshot } from '../observability/ratchet-snapshot.js';
import { mendOf } from './fault-mends.js';
import { type LineLogger } from './line-logger.js';

const LEAST_GAP_MS = 1_000;
/** So many faults that wait for a person, all different, may be told within one gap. */
const MOST_FATAL_LINES = 5;

/**
 * The one place that logs failed statements: at most one line a second for the whole node, however many buckets fail, with
 * a count of what it left out (only a fault that waits for a person is never left out); and one line when statements work
 * again.
 */
export class EngineFaults {
  #lastMs = Number.NEGATIVE_INFINITY;
  #suppressed = 0;
  readonly #fatal = new Set<string>();
  /** Failures in a row, by owner and statement. */
  readonly #failing = new Map<string, Map<string, number>>();
  #last: { readonly where: string; readonly kind: StoreFaultKind; readonly atMs: number } | undefined;
  /** Something failed since the last time that all worked. */
  #down = false;

  constructor(
    private readonly clock: Clock,
    private readonly logger: LineLogger,
    private readonly events: EngineEvents,
  ) {}

  /**
   * Notes a failed statement. With `retryInMs` its owner tries again and says {@link EngineFaults.worked} in the end, or
   * {@link EngineFaults.forget} (`who`: which of several owners); without, it is tried again by its own interval, or at once.
   */
  failed(where: string, error: unknown, retryInMs = 0, who = ''): StoreFaultKind {
    const kind = faultKindOf(error);
    const { message } = describeError(error);
    this.#last = { where, kind, atMs: this.clock.monotonicMs() };
    this.events.emit('fault', { where, kind, message, retryInMs });
    if (retryInMs > 0) this.#note(where, who);
    // One deadlock is not worth a line: it is mended at once. Counted above.
    if (kind !== 'rolled_back' || retryInMs > 0)
      this.#say(where, kind, `${message}; ${mendOf(kind, sourceCodeOf(error))}`);
    return kind;
  }

  report(): RatchetSnapshot['faults'] {
    const standing = new Set([...this.#failing.values()].flatMap((own) => [...own.keys()]));
    if (!this.#last) return { standing: [...standing] };
    const { where, kind, atMs } = this.#last;
    return {
      standing: [...standing],
      last: { where, kind, ageMs: Math.round(this.clock.monotonicMs() - atMs) },
    };
  }

  /** The statement works (again). */
  worked(where: string, who = ''): void {
    if (!this.#down) return;
    const own = this.#failing.get(who);
    const failures = own?.get(where);
    if (own && failures !== undefined) {
      own.delete(where);
      if (own.size === 0) this.#failing.delete(who);
      this.events.emit('recovered', { where, failures });
    }
    if (this.#failing.size > 0) return;
    this.#down = false;
    this.logger.log(
      `the database works again (${where}${failures === undefined ? '' : ` had failed ${failures} times`})`,
    );
  }

  /** This owner is no more: it will not say that its statements work. */
  forget(who: string): void {
    this.#failing.delete(who);
  }

  #note(where: string, who: string): void {
    const own = this.#failing.get(who) ?? new Map<string, number>();
    own.set(where, (own.get(where) ?? 0) + 1);
    this.#failing.set(who, own);
    this.#down = true;
  }

  #say(where: string, kind: StoreFaultKind, message: string): void {
    const line = `${where} failed: ${message}`;
    if (!this.#mayTell(kind, line)) {
      this.#suppressed += 1;
      return;
    }
    const more = this.#suppressed > 0 ? ` (${this.#suppressed} more not shown)` : '';
    this.#suppressed = 0;
    if (kind === 'fatal') this.logger.error(line + more);
    else this.logger.warn(line + more);
  }

  #mayTell(kind: StoreFaultKind, line: string): boolean {
    const nowMs = this.clock.monotonicMs();
    const quiet = nowMs - this.#lastMs >= LEAST_GAP_MS;
    if (quiet) {
      this.#lastMs = nowMs;
      this.#fatal.clear();
    }
    if (kind !== 'fatal') return quiet;
    const news = !this.#fatal.has(line) && this.#fatal.size < MOST_FATAL_LINES;
    if (news) this.#fatal.add(line);
    return news;
  }
}

function sourceCodeOf(error: unknown): unknown {
  return (error as Partial<StoreError> | undefined)?.sourceCode;
}
