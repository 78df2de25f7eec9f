import { type RecurrenceRule } from './recurrence-rule.js';

export const MAX_PREVIEW = 1_000;

/**
 * The occurrences after a date, oldest first: fewer than `count` only when there are no more.
 *
 * @throws RangeError - `count` is no whole number from 1 to 1000.
 */
export function preview(
  rule: RecurrenceRule,
  { from, count, anchor }: { readonly from: Date; readonly count: number; readonly anchor: Date },
): Date[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_PREVIEW) {
    throw new RangeError(`count: ${count} is wrong; allowed: a whole number from 1 to ${MAX_PREVIEW}`);
  }
  const dates: Date[] = [];
  let next = rule.next(from, anchor);
  while (next !== undefined && dates.length < count) {
    dates.push(next);
    next = rule.next(next, anchor);
  }
  return dates;
}
