import { type Clock } from '../cluster/clock.js';
import { counted } from '../errors/counted.js';
import { showValue } from '../errors/show-value.js';

/** However many schedules it is. */
const LINE_EVERY_MS = 60_000;
/** Beyond it their number says more. */
const MOST_IDS = 5;

/** Says that occurrences do not run because every node that serves their lane has switched their priority off: a mistake of the settings. */
export class RefusedLines {
  readonly #counts = new Map<string, number>();
  #nextMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    private readonly logger: { error(message: string): void },
  ) {}

  note(id: string, refused: readonly Date[] = []): void {
    if (refused.length > 0) this.#counts.set(id, (this.#counts.get(id) ?? 0) + refused.length);
  }

  /** What was noted, at most a line a minute; what is not told now is told with the next. */
  tell(): void {
    const nowMs = this.clock.monotonicMs();
    if (this.#counts.size === 0 || nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + LINE_EVERY_MS;
    const ids = [...this.#counts.keys()];
    const count = [...this.#counts.values()].reduce((sum, each) => sum + each, 0);
    const shown = ids.slice(0, MOST_IDS).map((id) => showValue(id));
    const more = ids.length > MOST_IDS ? `, and of ${ids.length - MOST_IDS} more` : '';
    this.#counts.clear();
    this.logger.error(
      `${counted(count, 'occurrence')} of recurring schedules did not become jobs (PRIORITY_DISABLED), of ${shown.join(', ')}${more}: every ` +
        'node that serves the lane has switched the priority off; give it a bucket (option "buckets" of the lane), or the schedule another priority',
    );
  }
}
