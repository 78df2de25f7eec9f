import { everyText } from './every.js';
import { LAST_SECOND, millisecondsOf } from './instants.js';
import { type RecurrenceRule } from './recurrence-rule.js';

/**
 * An interval in real time: `anchor + k * every`. No clock change moves it; the zone is only kept. It must never count from
 * the last run: a late run would push all later ones.
 */
export class IntervalRule implements RecurrenceRule {
  readonly expression: string;

  constructor(
    readonly everyMs: number,
    readonly timeZone: string,
  ) {
    this.expression = everyText(everyMs);
  }

  next(after: Date, anchor: Date): Date | undefined {
    const start = millisecondsOf(anchor, 'the anchor of an interval');
    const passed = Math.floor((millisecondsOf(after, 'the date to go on after') - start) / this.everyMs);
    const due = start + Math.max(1, passed + 1) * this.everyMs;
    return due <= LAST_SECOND * 1_000 ? new Date(due) : undefined;
  }
}
