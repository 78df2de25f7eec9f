import { counted } from '../errors/counted.js';
import { showValue } from '../errors/show-value.js';
import { type ScheduleStore } from '../store/schedule-store.js';

/** Beyond it their number says more. */
const MOST_IDS = 10;

export interface ScheduleSweepParts {
  readonly store: Pick<ScheduleStore, 'sweep' | 'forget'>;
  /** An annotated schedule that no node has had for longer is removed. */
  readonly convergenceMs: number;
  /** Occurrences are kept for so long, as the history of jobs is. */
  readonly historyMs: number;
  readonly logger: { warn(message: string): void };
}

/**
 * The upkeep of recurring schedules, which one node of the cluster does at a time. Schedules whose annotation is gone are removed
 * only when no node had them for a while: during a deploy the nodes of the old version live on. It never touches those that were
 * created in code.
 */
export class ScheduleSweep {
  constructor(private readonly parts: ScheduleSweepParts) {}

  async run(): Promise<void> {
    const { store, convergenceMs, logger } = this.parts;
    const removed = await store.sweep(convergenceMs);
    if (removed.length === 0) return;
    const shown = removed.slice(0, MOST_IDS).map((id) => showValue(id));
    logger.warn(
      `${counted(removed.length, 'recurring schedule')} removed, with the jobs of ${removed.length === 1 ? 'it' : 'them'} that wait, since no node has had the annotation for ` +
        `${Math.round(convergenceMs / 1_000)} s: ${shown.join(', ')}${removed.length > MOST_IDS ? ', …' : ''}`,
    );
  }

  async forget(signal?: AbortSignal): Promise<void> {
    await this.parts.store.forget(this.parts.historyMs, signal);
  }
}
