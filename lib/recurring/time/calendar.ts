/*
 * The Gregorian calendar in whole days since 1970-01-01. `Date` would do the same with an object for each question, and maps
 * the years 0 to 99 to 1900; the search through months asks thousands of times.
 */

export interface CalendarDay {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
}

/** Days of 400 years, after which the calendar repeats. */
const CYCLE = 146_097;
/** From 0000-03-01, where a calendar year that ends with its leap day begins, to 1970-01-01. */
const EPOCH = 719_468;

/** The date of a day's number. Years are counted from March, so that the leap day is the last of its year. */
export function calendarDay(number: number): CalendarDay {
  const shifted = number + EPOCH;
  const cycle = Math.floor(shifted / CYCLE);
  const inCycle = shifted - cycle * CYCLE;
  const leapDays =
    Math.floor(inCycle / 1_460) - Math.floor(inCycle / 36_524) + Math.floor(inCycle / (CYCLE - 1));
  const yearInCycle = Math.floor((inCycle - leapDays) / 365);
  const inYear = inCycle - (365 * yearInCycle + Math.floor(yearInCycle / 4) - Math.floor(yearInCycle / 100));
  const fromMarch = Math.floor((5 * inYear + 2) / 153);
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  return {
    year: yearInCycle + cycle * 400 + (month <= 2 ? 1 : 0),
    month,
    day: inYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
  };
}

/** The number of a date. */
export function dayNumber(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const cycle = Math.floor(marchYear / 400);
  const yearInCycle = marchYear - cycle * 400;
  const inYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const inCycle = yearInCycle * 365 + Math.floor(yearInCycle / 4) - Math.floor(yearInCycle / 100) + inYear;
  return cycle * CYCLE + inCycle - EPOCH;
}

/** 0 is Sunday, as in cron. */
export function weekdayOf(number: number): number {
  return (((number + 4) % 7) + 7) % 7;
}

export function monthLength(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
