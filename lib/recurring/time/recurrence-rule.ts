import { InvalidRecurrenceError } from '../../errors/recurring-errors.js';
import { type Duration } from '../../jobs/duration.js';
import { CronRule } from './cron-rule.js';
import { readEvery } from './every.js';
import { IntervalRule } from './interval-rule.js';
import { wallPattern } from './wall-patterns.js';
import { zoneName } from './zone-name.js';

/**
 * When a schedule is due, as the user says it: a cron text of 5 or 6 fields, an alias (`@daily`), `'@every 15s'`, or an
 * interval from one second to ten years.
 */
export type RuleSource = string | { readonly every: Duration };

/** A rule as the database keeps it: `parseRule(expression, timeZone, …)` gives the same rule again. */
export interface StoredRule {
  /** The cron text that the user gave, or `@every 15s`. */
  readonly expression: string;
  readonly timeZone: string;
}

/**
 * When a schedule is due: a fixed set of instants, of which `next` finds one after the other. Pure: it knows no clock, and
 * two nodes with the same time zone data always agree.
 */
export interface RecurrenceRule extends StoredRule {
  /** The interval in milliseconds; undefined of cron texts. */
  readonly everyMs: number | undefined;
  /**
   * The first occurrence strictly after `after`, whole seconds for cron texts, milliseconds for intervals; undefined: none
   * until the year 9999. Called with its own results it skips none and repeats none.
   *
   * @param anchor - matters to intervals only: they occur at `anchor + k * every`, `k` from 1.
   * @throws RangeError - a date is none.
   */
  next(after: Date, anchor: Date): Date | undefined;
}

export interface ParseRuleOptions {
  /** What `H` is drawn from: the schedule's id, so that all nodes draw the same. */
  readonly hashSeed: string;
  /** Who is named in errors: class and method. @defaultValue the hash seed */
  readonly owner?: string;
}

/**
 * Reads a rule, and refuses it when it is wrong or can never occur.
 *
 * @throws InvalidRecurrenceError - the expression or the interval.
 * @throws InvalidTimeZoneError - the zone; intervals have one too, though it changes nothing of them.
 */
export function parseRule(source: RuleSource, timeZone: string, options: ParseRuleOptions): RecurrenceRule {
  const owner = options.owner ?? options.hashSeed;
  const every = readEvery(source, owner);
  const zone = zoneName(timeZone, owner);
  if (every !== undefined) return new IntervalRule(every, zone);
  const text = (source as string).trim();
  if (text === '') {
    const problem = 'is empty; give a cron text such as "0 6 * * *", or { every: "15s" }';
    throw new InvalidRecurrenceError(owner, source, problem);
  }
  return new CronRule(text, zone, wallPattern(text, options.hashSeed, owner));
}
