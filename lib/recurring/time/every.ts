import { InvalidRecurrenceError } from '../../errors/recurring-errors.js';
import { durationMs } from '../../jobs/duration.js';

/** Below it a loop in the handler is the better tool: each occurrence is a row. */
export const MIN_EVERY_MS = 1_000;
/** Ten years of 365 days. */
export const MAX_EVERY_MS = 10 * 365 * 86_400_000;

const ALLOWED = 'an interval is a duration from 1s to 3650d: "15s", "90m", or milliseconds';
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/**
 * The milliseconds of `{ every: … }` or of `'@every …'`; undefined when the source is another text.
 *
 * @throws InvalidRecurrenceError - it is neither a text nor an interval, or an interval out of bounds.
 */
export function readEvery(source: unknown, owner: string): number | undefined {
  if (typeof source === 'string') {
    const text = /^@every(?:\s+(.*))?$/s.exec(source.trim());
    return text ? checked(text[1], source, owner) : undefined;
  }
  if (typeof source !== 'object' || source === null || !Object.hasOwn(source, 'every')) {
    throw new InvalidRecurrenceError(
      owner,
      source,
      'is no schedule; allowed: a cron text, or { every: "15s" }',
    );
  }
  const strange = Object.keys(source).find((key) => key !== 'every');
  if (strange !== undefined) {
    throw new InvalidRecurrenceError(
      owner,
      source,
      `has ${JSON.stringify(strange)} beside "every"; an interval is { every: "15s" } and nothing else`,
    );
  }
  return checked((source as { every?: unknown }).every, source, owner);
}

function checked(every: unknown, source: unknown, owner: string): number {
  const ms = durationMs(every);
  if (ms === undefined) throw new InvalidRecurrenceError(owner, source, `is no interval; ${ALLOWED}`);
  if (ms < MIN_EVERY_MS) {
    throw new InvalidRecurrenceError(owner, source, `is too often; ${ALLOWED}`);
  }
  if (ms > MAX_EVERY_MS) throw new InvalidRecurrenceError(owner, source, `is too rare; ${ALLOWED}`);
  return ms;
}

/** The text that is stored: `@every 90m`, in the largest unit that needs no fraction, so that `'60s'` and `'1m'` are one. */
export function everyText(ms: number): string {
  const [unit, size] = UNITS.find((each) => ms % each[1] === 0) ?? ['ms', 1];
  return `@every ${ms / size}${unit}`;
}
