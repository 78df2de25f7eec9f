/** 9999-12-31T23:59:59Z: no occurrence is later, since texts of later years differ between programs. */
export const LAST_SECOND = 253_402_300_799;

/**
 * Milliseconds of a date that is one.
 *
 * @throws RangeError - it is invalid: arithmetic with NaN would search for ever.
 */
export function millisecondsOf(date: Date, what: string): number {
  const ms = date.getTime();
  if (Number.isNaN(ms)) throw new RangeError(`${what} is an invalid date`);
  return ms;
}
