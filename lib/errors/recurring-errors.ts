import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** A recurring schedule was given a text or an interval that says no times, or none that ever come. */
export class InvalidRecurrenceError extends RatchetError {
  override readonly code = 'RECURRING_BAD_EXPRESSION';

  constructor(
    /** Whose schedule it is: class and method, or its id. */
    readonly owner: string,
    readonly value: unknown,
    /** What is wrong, and the mend; it follows the value in the message. */
    readonly problem: string,
    options?: { cause?: unknown },
  ) {
    super(`RECURRING_BAD_EXPRESSION: ${owner}: ${showValue(value)} ${problem}`, options);
  }
}

/** A recurring schedule was given a time zone that does not exist, or that names no rules of its own. */
export class InvalidTimeZoneError extends RatchetError {
  override readonly code = 'RECURRING_BAD_TIME_ZONE';

  constructor(
    /** Whose schedule it is: class and method, or its id. */
    readonly owner: string,
    readonly value: unknown,
    /** What is wrong, and the mend; it follows the value in the message. */
    readonly problem: string,
    options?: { cause?: unknown },
  ) {
    super(`RECURRING_BAD_TIME_ZONE: ${owner}: ${showValue(value)} ${problem}`, options);
  }
}
