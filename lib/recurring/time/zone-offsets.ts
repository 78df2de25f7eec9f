import { LAST_SECOND } from './instants.js';

/** 1850-01-01: before it, offsets are those of the sun and never change. */
const FIRST_SECOND = -3_786_825_600;

/**
 * What a time zone's clocks show at an instant, by the data that Node carries. Slow (some microseconds): TimeZone asks it
 * only while it learns.
 */
export class ZoneOffsets {
  private readonly format: Intl.DateTimeFormat;

  constructor(name: string) {
    this.format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  }

  /** Seconds east of UTC at a second of the epoch. */
  at(second: number): number {
    const instant = Math.min(Math.max(second, FIRST_SECOND), LAST_SECOND - 86_400);
    // 03/08/2026, 03:00:00, of one width in all these years.
    const shown = this.format.format(instant * 1_000);
    const part = (from: number, to: number) => Number(shown.slice(from, to));
    const wall = Date.UTC(part(6, 10), part(0, 2) - 1, part(3, 5), part(12, 14), part(15, 17), part(18, 20));
    return wall / 1_000 - instant;
  }
}
