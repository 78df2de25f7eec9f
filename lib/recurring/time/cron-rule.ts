import { millisecondsOf } from './instants.js';
import { type RecurrenceRule } from './recurrence-rule.js';
import { TimeZone, type ZoneSpan } from './time-zone.js';
import { type WallPattern } from './wall-pattern.js';

/**
 * A cron text in a time zone. What the wall clock cannot say when it is changed, this class says:
 *
 * **Fixed hours** (the hour field leaves an hour out): each wall time is one instant, the first at which the clocks show it. One
 * that they jump over runs at the first instant after the gap: 02:30 in New York on 2026-03-08 at 03:00. Several in one gap,
 * and one that matches there anyway, are one run. One that they show twice runs the first time.
 *
 * **Every hour** (`*`, `0-23`): the pattern runs on real time, at each instant whose wall clock matches, in both passes of a repeated hour:
 * `*` + `/15 * * * *` is due every 15 real minutes on all days, `30 * * * *` every real hour. A wall time in a gap is made up,
 * once, at the first instant after it, unless the pattern runs anyway at the very moment at which it would have been due by the
 * old offset. So a gap of whole hours makes up nothing (what was due at 02:30 runs as 03:30), except where the day field
 * forbids the day after the gap: the date of the missing wall time itself counts.
 *
 * Lord Howe Island moves by half an hour. In spring 02:00 to 02:30 are missing: `0 * * * *` runs at 01:00, at the end of the gap (02:30
 * on the wall, an hour later) and at 03:00; `15 * * * *` at 01:15, 02:30 and 03:15; what repeats each half hour or oftener (`15,45`,
 * `*` + `/10`) keeps its real interval and makes up nothing. In autumn 01:30 to 02:00 come twice, and both times count: a pattern that
 * repeats each half hour or oftener keeps its real interval; `45 * * * *` runs twice at 01:45, half an hour apart; `0 * * * *`
 * runs at 01:00 and at 02:00, an hour and a half apart.
 *
 * It must never look at the hour of a run that is over: what is next follows from the instant alone.
 */
export class CronRule implements RecurrenceRule {
  readonly everyMs = undefined;
  private zone: TimeZone | undefined;

  constructor(
    readonly expression: string,
    readonly timeZone: string,
    private readonly pattern: WallPattern,
  ) {}

  next(after: Date): Date | undefined {
    const second = Math.floor(millisecondsOf(after, 'the date to go on after') / 1_000);
    // Made here, not with the rule: a formatter costs memory, and most of 100 000 schedules rest.
    this.zone ??= TimeZone.named(this.timeZone);
    const due = this.pattern.everyHour
      ? this.onRealTime(second + 1, this.zone)
      : this.onWallTime(second, this.zone);
    return due === undefined ? undefined : new Date(due * 1_000);
  }

  private onWallTime(after: number, zone: TimeZone): number | undefined {
    const wall = this.pattern.from(zone.reached(after) + 1);
    return wall === undefined ? undefined : zone.firstReaching(wall);
  }

  private onRealTime(from: number, zone: TimeZone): number | undefined {
    let span = zone.spanAt(from);
    for (let at = from; ; at = span.start) {
      if (at === span.start && this.makesUp(span)) return at;
      const wall = this.pattern.from(at + span.offset);
      if (wall === undefined) return undefined;
      if (wall - span.offset < span.end) return wall - span.offset;
      span = zone.spanAt(span.end);
    }
  }

  /** Whether a wall time in the gap at the start of the span would otherwise be lost. */
  private makesUp({ start, offset, before }: ZoneSpan): boolean {
    const gap = offset - before;
    if (gap <= 0) return false;
    const end = start + offset;
    let wall = this.pattern.from(start + before);
    while (wall !== undefined && wall < end) {
      if (!this.pattern.matches(wall + gap)) return true;
      wall = this.pattern.from(wall + 1);
    }
    return false;
  }
}
