import { calendarDay, dayNumber, monthLength, weekdayOf } from './calendar.js';
import { LAST_SECOND } from './instants.js';

/** What a cron text allows, field by field. */
export interface WallFields {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly months: readonly number[];
  readonly daysOfMonth: readonly number[];
  /** `L`: the last day of the month too. */
  readonly lastDayOfMonth: boolean;
  /** 0 to 6, 0 is Sunday. */
  readonly weekdays: readonly number[];
  /** `1#2`: only the second of the month; 0: each. */
  readonly nthWeekday: number;
  /** `5L`: these weekdays when they are the last of the month. */
  readonly lastWeekdays: readonly number[];
  /** `*` or `?`: then the other of the two decides; when both are given, a day that either allows is a match. */
  readonly anyDayOfMonth: boolean;
  readonly anyWeekday: boolean;
}

const DAY = 86_400;
const LAST_DAY = Math.floor(LAST_SECOND / DAY);

/**
 * The wall times that a cron text names, on a calendar without zones: seconds since 1970-01-01 as the clock on the wall shows
 * them. It walks from match to match by tables instead of trying candidates, because misfires are counted one by one. It
 * knows nothing of clock changes, and must not: CronRule says what becomes of the times that they skip or repeat.
 */
export class WallPattern {
  /** The hour field allows every hour: such a pattern runs on real time (see CronRule). */
  readonly everyHour: boolean;
  private readonly nextSecond: Int8Array;
  private readonly nextMinute: Int8Array;
  private readonly nextHour: Int8Array;
  private readonly months: ReadonlySet<number>;
  private readonly daysOfMonth: ReadonlySet<number>;
  private readonly weekdays: ReadonlySet<number>;
  private readonly lastWeekdays: ReadonlySet<number>;
  /** The day that was last found to match: patterns of many times a day ask again and again. */
  private matchedDay = Number.NaN;

  constructor(private readonly fields: WallFields) {
    this.nextSecond = following(fields.seconds, 60);
    this.nextMinute = following(fields.minutes, 60);
    this.nextHour = following(fields.hours, 24);
    this.months = new Set(fields.months);
    this.daysOfMonth = new Set(fields.daysOfMonth);
    this.weekdays = new Set(fields.weekdays);
    this.lastWeekdays = new Set(fields.lastWeekdays);
    this.everyHour = new Set(fields.hours).size === 24;
  }

  matches(wall: number): boolean {
    return this.from(wall) === wall;
  }

  /** The first match at or after `wall`; undefined: none until the year 9999. */
  from(wall: number): number | undefined {
    const day = Math.floor(wall / DAY);
    if (day === this.matchedDay || this.allows(day)) {
      this.matchedDay = day;
      const time = this.timeFrom(wall - day * DAY);
      if (time !== undefined) return day * DAY + time;
    }
    const later = this.dayFrom(day + 1);
    return later === undefined ? undefined : later * DAY + (this.timeFrom(0) ?? 0);
  }

  /** Seconds of the day. */
  private timeFrom(second: number): number | undefined {
    const hour = Math.floor(second / 3_600);
    const minute = Math.floor((second % 3_600) / 60);
    const [allowedHour, firstMinute] = [this.nextHour[hour] ?? -1, this.nextMinute[0] ?? 0];
    if (allowedHour < 0) return undefined;
    const firstSecond = this.nextSecond[0] ?? 0;
    if (allowedHour > hour) return allowedHour * 3_600 + firstMinute * 60 + firstSecond;
    const allowedMinute = this.nextMinute[minute] ?? -1;
    if (allowedMinute === minute) {
      const allowedSecond = this.nextSecond[second % 60] ?? -1;
      if (allowedSecond >= 0) return hour * 3_600 + minute * 60 + allowedSecond;
    }
    const laterMinute = allowedMinute > minute ? allowedMinute : (this.nextMinute[minute + 1] ?? -1);
    if (laterMinute >= 0) return hour * 3_600 + laterMinute * 60 + firstSecond;
    const laterHour = this.nextHour[hour + 1] ?? -1;
    return laterHour < 0 ? undefined : laterHour * 3_600 + firstMinute * 60 + firstSecond;
  }

  private dayFrom(first: number): number | undefined {
    let { year, month, day } = calendarDay(first);
    for (let number = first; number <= LAST_DAY; number = dayNumber(year, month, 1)) {
      if (this.months.has(month)) {
        const length = monthLength(year, month);
        for (; day <= length; day += 1, number += 1) {
          if (this.allowsDay(number, day, length)) return number <= LAST_DAY ? number : undefined;
        }
      }
      day = 1;
      month = (month % 12) + 1;
      if (month === 1) year += 1;
    }
    return undefined;
  }

  private allows(number: number): boolean {
    const { year, month, day } = calendarDay(number);
    return (
      number <= LAST_DAY && this.months.has(month) && this.allowsDay(number, day, monthLength(year, month))
    );
  }

  private allowsDay(number: number, day: number, length: number): boolean {
    const { anyDayOfMonth, anyWeekday } = this.fields;
    if (anyWeekday) return anyDayOfMonth || this.allowsDate(day, length);
    const allowsWeekday = this.allowsWeekday(weekdayOf(number), day, length);
    return anyDayOfMonth ? allowsWeekday : allowsWeekday || this.allowsDate(day, length);
  }

  private allowsDate(day: number, length: number): boolean {
    return this.daysOfMonth.has(day) || (this.fields.lastDayOfMonth && day === length);
  }

  private allowsWeekday(weekday: number, day: number, length: number): boolean {
    const { nthWeekday } = this.fields;
    if (this.weekdays.has(weekday) && (nthWeekday === 0 || Math.ceil(day / 7) === nthWeekday)) return true;
    return day > length - 7 && this.lastWeekdays.has(weekday);
  }
}

/** For each value below `size`, and one more, the first allowed value that is not less; -1 when there is none. */
function following(allowed: readonly number[], size: number): Int8Array {
  const next = new Int8Array(size + 1).fill(-1);
  const set = new Set(allowed);
  for (let value = size - 1; value >= 0; value -= 1) {
    next[value] = set.has(value) ? value : (next[value + 1] ?? -1);
  }
  return next;
}
