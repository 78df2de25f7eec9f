import { abortReason, isAborted } from '../../jobs/abort-signal.js';
import { millisecondsOf } from './instants.js';
import { type RecurrenceRule } from './recurrence-rule.js';

export interface Occurrences {
  readonly count: number;
  /** Oldest first. */
  readonly newest: Date[];
  /** The first after them; undefined: none ever. */
  readonly next: Date | undefined;
}

/** Below the 10 ms that the event loop may be held: one step of a rule that learns its zone may take the rest. */
const SLICE_MS = 8;

/**
 * All occurrences from `first` up to and including `until`: how many, the newest `keep` of them, and the one after. Counts
 * an outage of any length exactly: intervals by arithmetic, cron texts one by one, in slices between which the event loop
 * runs.
 *
 * @param first - an occurrence of the rule, counted. When it is later than `until`, it is the next and nothing is counted.
 * @param signal - throws its reason between two slices.
 */
export async function occurrencesUntil(
  rule: RecurrenceRule,
  first: Date,
  until: Date,
  anchor: Date,
  keep: number,
  signal?: AbortSignal,
): Promise<Occurrences> {
  const limit = millisecondsOf(until, 'the end of the outage');
  if (millisecondsOf(first, 'the first occurrence') > limit) return { count: 0, newest: [], next: first };
  if (rule.everyMs !== undefined) return byArithmetic(rule, rule.everyMs, first, limit, anchor, keep);

  let count = 0;
  /** A ring: the oldest is overwritten. */
  const kept: Date[] = [];
  let next: Date | undefined = first;
  while (next !== undefined && next.getTime() <= limit) {
    if (signal && isAborted(signal)) throw abortReason(signal);
    const sliceEnd = performance.now() + SLICE_MS;
    do {
      if (keep > 0) kept[count % keep] = next;
      count += 1;
      next = rule.next(next, anchor);
    } while (next !== undefined && next.getTime() <= limit && performance.now() < sliceEnd);
    if (next !== undefined && next.getTime() <= limit) await new Promise(setImmediate);
  }
  const oldest = count > keep && keep > 0 ? count % keep : 0;
  return { count, newest: [...kept.slice(oldest), ...kept.slice(0, oldest)], next };
}

function byArithmetic(
  rule: RecurrenceRule,
  every: number,
  first: Date,
  limit: number,
  anchor: Date,
  keep: number,
): Occurrences {
  const second = rule.next(first, anchor)?.getTime() ?? Infinity;
  const more = second > limit ? 0 : Math.floor((limit - second) / every) + 1;
  const newest = Array.from(
    { length: Math.min(keep, more) },
    (_, back) => new Date(second + (more - 1 - back) * every),
  );
  if (newest.length < keep) newest.push(first);
  return { count: more + 1, newest: newest.reverse(), next: rule.next(new Date(limit), anchor) };
}
