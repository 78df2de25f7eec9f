import { type ScheduleSpec } from '../jobs/schedule-spec.js';
import { parseRule, type RecurrenceRule } from './time/recurrence-rule.js';

/** Rules are small, and what is parsed again when it is due costs microseconds. */
const MOST = 5_000;

/**
 * The rules of the schedules that were looked at last, parsed. Schedules that say the same share one, unless a part of it is
 * drawn from their ids.
 */
export class RuleCache {
  /** The one that was used last is the last. */
  readonly #rules = new Map<string, RecurrenceRule>();

  /** @throws InvalidRecurrenceError, InvalidTimeZoneError - what is stored is no rule (any more). */
  of({ id, expression, timeZone }: Pick<ScheduleSpec, 'id' | 'expression' | 'timeZone'>): RecurrenceRule {
    // `H` in a cron text is drawn from the id. A name may have one too, as THU does.
    const key = JSON.stringify([expression, timeZone, ...(expression.includes('H') ? [id] : [])]);
    const rule = this.#rules.get(key) ?? parseRule(expression, timeZone, { hashSeed: id });
    this.#rules.delete(key);
    this.#rules.set(key, rule);
    if (this.#rules.size > MOST) this.#rules.delete(this.#rules.keys().next().value as string);
    return rule;
  }

  get size(): number {
    return this.#rules.size;
  }
}
