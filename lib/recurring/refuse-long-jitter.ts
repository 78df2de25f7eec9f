import { InvalidRecurringOptionError } from '../errors/recurring-scheduler-errors.js';
import { everyText } from './time/every.js';
import { type RecurrenceRule } from './time/recurrence-rule.js';

/**
 * A run that waits for its jitter counts as live: one as long as the interval makes the schedule skip its own occurrences. Cron texts
 * have no one interval, so they are not judged.
 *
 * @param owner - `ReportJobs.daily`, `create("digest")`.
 * @throws InvalidRecurringOptionError
 */
export function refuseLongJitter(owner: string, jitterMs: number | undefined, rule: RecurrenceRule): void {
  const { everyMs } = rule;
  if (!jitterMs || everyMs === undefined || jitterMs < everyMs) return;
  const interval = everyText(everyMs).slice('@every '.length);
  const allowed = `a duration below the interval (${interval}), in milliseconds: a run that waits for its jitter is live`;
  throw new InvalidRecurringOptionError(owner, 'jitter', jitterMs, allowed);
}
