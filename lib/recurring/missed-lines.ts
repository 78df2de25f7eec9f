import { type Clock } from '../cluster/clock.js';
import { counted } from '../errors/counted.js';
import { showValue } from '../errors/show-value.js';
import { type Firing } from '../store/schedule-store.js';

/** However many schedules come late. */
const LINE_EVERY_MS = 10_000;
/** Beyond it their number says more. */
const MOST_IDS = 5;

/** Says that occurrences were missed, which somebody may want to know of: nodes were away, or stood still. */
export class MissedLines {
  #missed = 0;
  readonly #ids = new Set<string>();
  #nextMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    private readonly logger: { warn(message: string): void },
  ) {}

  note({ id, missed }: Pick<Firing, 'id' | 'missed'>): void {
    if (missed.length === 0) return;
    this.#missed += missed.reduce((sum, { count }) => sum + count, 0);
    this.#ids.add(id);
  }

  /** What was noted, at most a line in ten seconds; what is not told now is told with the next. */
  tell(): void {
    const nowMs = this.clock.monotonicMs();
    if (this.#missed === 0 || nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + LINE_EVERY_MS;
    const ids = [...this.#ids];
    const shown = ids.slice(0, MOST_IDS).map((id) => showValue(id));
    const more = ids.length > MOST_IDS ? `, and of ${ids.length - MOST_IDS} more` : '';
    this.logger.warn(
      `${counted(this.#missed, 'occurrence')} of recurring schedules passed while no node saw to them, and have no run of their own ` +
        `(misfire): of ${shown.join(', ')}${more}`,
    );
    this.#missed = 0;
    this.#ids.clear();
  }
}
