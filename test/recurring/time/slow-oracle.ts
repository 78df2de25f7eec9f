/**
 * What the contract of recurring schedules says, in the dumbest way that can be checked by eye: each step of real time is
 * looked at, with the wall clock read from Intl. It shares nothing with lib/, and must not.
 */

const NAMES = [
  ...['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'].map(
    (name, index) => [name, String(index + 1)] as const,
  ),
  ...['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'].map((name, index) => [name, String(index)] as const),
];

/** Numbers, lists, ranges, steps, `*` and `?`. */
function allowed(field: string, min: number, max: number): Set<number> {
  const values = new Set<number>();
  for (const item of field.split(',')) {
    const [range = '', step] = item.split('/');
    const [first = '', last] = /^[*?]$/.test(range) ? [String(min), String(max)] : range.split('-');
    const end = last ?? (step === undefined ? first : String(max));
    for (let value = Number(first); value <= Number(end); value += Number(step ?? 1)) values.add(value);
  }
  return values;
}

interface Fields {
  readonly everyHour: boolean;
  matches(wall: Date): boolean;
}

export function readFields(expression: string): Fields {
  let text = expression;
  for (const [name, number] of NAMES) text = text.replaceAll(name, number);
  const parts = text.split(' ');
  if (parts.length === 5) parts.unshift('0');
  const [second = '', minute = '', hour = '', date = '', month = '', weekday = ''] = parts;
  const [seconds, minutes, hours] = [allowed(second, 0, 59), allowed(minute, 0, 59), allowed(hour, 0, 23)];
  const months = allowed(month, 1, 12);

  const dateMatches = (wall: Date): boolean => {
    const isLast = new Date(wall.getTime() + 86_400_000).getUTCDate() === 1;
    return date
      .split(',')
      .some((item) => (item === 'L' ? isLast : allowed(item, 1, 31).has(wall.getUTCDate())));
  };
  const weekdayMatches = (wall: Date): boolean => {
    const [day, number] = [wall.getUTCDay(), wall.getUTCDate()];
    return weekday.split(',').some((item) => {
      const [which = '', nth] = item.split('#');
      const isLast = new Date(wall.getTime() + 7 * 86_400_000).getUTCDate() <= 7;
      if (which.endsWith('L')) return isLast && Number(which.slice(0, -1)) % 7 === day;
      const days = allowed(which, 0, 7);
      const isDay = days.has(day) || (day === 0 && days.has(7));
      return isDay && (nth === undefined || (number > 7 * (Number(nth) - 1) && number <= 7 * Number(nth)));
    });
  };
  const [anyDate, anyWeekday] = [date === '*' || date === '?', weekday === '*' || weekday === '?'];
  const dayMatches = (wall: Date): boolean => {
    if (!anyDate && !anyWeekday) return dateMatches(wall) || weekdayMatches(wall);
    return (anyDate || dateMatches(wall)) && (anyWeekday || weekdayMatches(wall));
  };
  return {
    everyHour: hours.size === 24,
    matches: (wall) =>
      seconds.has(wall.getUTCSeconds()) &&
      minutes.has(wall.getUTCMinutes()) &&
      hours.has(wall.getUTCHours()) &&
      months.has(wall.getUTCMonth() + 1) &&
      dayMatches(wall),
  };
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** What the clocks of a zone show, as if it were UTC, in milliseconds. */
export function wallClock(zone: string, instant: number): number {
  let clock = clocks.get(zone);
  if (!clock) {
    clock = new Intl.DateTimeFormat('en-GB', {
      ...{ timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
    });
    clocks.set(zone, clock);
  }
  // 08/03/2026, 03:00:00
  const shown = /^(..)\/(..)\/(....), (..):(..):(..)$/.exec(clock.format(instant)) ?? [];
  const [, day = 0, month = 0, year = 0, hour = 0, minute = 0, second = 0] = shown.map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

const MINUTE = 60_000;
/** Longer than any repeated time: a wall time that was shown before the window is not new in it. */
const LOOK_BACK = 26 * 60 * MINUTE;

/** A window of time in one zone: the clock is read once, and any number of expressions are asked. */
export class SlowOracle {
  private readonly clock = new Map<number, number>();
  private readonly reachedBefore: number;

  /**
   * @param from - exclusive, on a whole minute.
   * @param until - inclusive.
   * @param step - a minute for five fields, a second for six.
   */
  constructor(
    readonly zone: string,
    readonly from: number,
    readonly until: number,
    readonly step: number = MINUTE,
  ) {
    let reached = -Infinity;
    for (let instant = from - LOOK_BACK; instant < from; instant += MINUTE) {
      reached = Math.max(reached, wallClock(zone, instant) + MINUTE - step);
    }
    this.reachedBefore = Math.max(reached, this.wall(from));
    for (let instant = from; instant <= until; instant += step) this.wall(instant);
  }

  occurrences(expression: string): number[] {
    const fields = readFields(expression);
    const matches = (wall: number) => fields.matches(new Date(wall));
    const due: number[] = [];
    let reached = this.reachedBefore;
    for (let instant = this.from + this.step; instant <= this.until; instant += this.step) {
      const wall = this.wall(instant);
      const isDue = fields.everyHour
        ? matches(wall) || this.makesUp(instant, matches)
        : this.steps(reached + this.step, wall).some(matches);
      if (isDue) due.push(instant);
      reached = Math.max(reached, wall);
    }
    return due;
  }

  /** A wall time that was jumped over now, and that is not made good by the wall time of its own moment. */
  private makesUp(instant: number, matches: (wall: number) => boolean): boolean {
    const missing = this.wall(instant - this.step) + this.step;
    return this.steps(missing, this.wall(instant) - this.step).some(
      (wall) => matches(wall) && !matches(this.wall(instant + (wall - missing))),
    );
  }

  private steps(first: number, last: number): number[] {
    const walls: number[] = [];
    for (let wall = first; wall <= last; wall += this.step) walls.push(wall);
    return walls;
  }

  private wall(instant: number): number {
    let wall = this.clock.get(instant);
    if (wall === undefined) {
      wall = wallClock(this.zone, instant);
      this.clock.set(instant, wall);
    }
    return wall;
  }
}
