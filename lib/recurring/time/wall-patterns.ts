import { InvalidRecurrenceError } from '../../errors/recurring-errors.js';
import { cronFields, readFields } from './cron-text.js';
import { WallPattern } from './wall-pattern.js';

/** Reading a text takes about 0.1 ms, and thousands of schedules share a few texts. */
const KEPT = 2_000;
const patterns = new Map<string, WallPattern>();

/**
 * The pattern of a cron text, one for all who have the same.
 *
 * @throws InvalidRecurrenceError - it is wrong, or can never occur.
 */
export function wallPattern(text: string, hashSeed: string, owner: string): WallPattern {
  const fields = cronFields(text, owner);
  const written = fields.join(' ');
  // Only an H depends on the seed; that of THU does not.
  const key = /(?<![A-Z])H/i.test(written) ? JSON.stringify([written, hashSeed]) : written;
  const known = patterns.get(key);
  if (known) return known;
  const pattern = new WallPattern(readFields(text, fields, hashSeed, owner));
  if (pattern.from(0) === undefined) {
    throw new InvalidRecurrenceError(owner, text, 'never occurs: no day until the year 9999 matches it');
  }
  if (patterns.size >= KEPT) patterns.clear();
  patterns.set(key, pattern);
  return pattern;
}
