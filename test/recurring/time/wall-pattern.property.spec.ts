import { describe, expect, it } from '@jest/globals';
import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { calendarDay, dayNumber, monthLength, weekdayOf } from '../../../lib/recurring/time/calendar.js';
import { wallPattern } from '../../../lib/recurring/time/wall-patterns.js';
import { expressionAbout, withSeconds } from './expressions.js';
import { readFields } from './slow-oracle.js';

const SEED = 20_261_130;
const day = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2050, 0) });
const expressionAndTime = day.chain((from) => {
  const about = expressionAbout(new Date(from));
  return fc.tuple(fc.oneof(about, withSeconds(about)), fc.constant(from));
});

describe('the wall times of an expression', () => {
  it('are those of cron-parser, where no clock changes', () => {
    let compared = 0;
    fc.assert(
      fc.property(expressionAndTime, ([expression, from]) => {
        let theirs: ReturnType<typeof CronExpressionParser.parse>;
        try {
          theirs = CronExpressionParser.parse(expression, { tz: 'UTC', currentDate: new Date(from) });
        } catch {
          expect(() => wallPattern(expression, 'seed', 'test')).toThrow('never occurs');
          return;
        }
        const pattern = wallPattern(expression, 'seed', 'test');
        let wall = Math.floor(from / 1_000);
        for (let step = 0; step < 5; step += 1) {
          wall = pattern.from(wall + 1) ?? Number.NaN;
          expect([expression, wall * 1_000]).toEqual([expression, theirs.next().getTime()]);
          compared += 1;
        }
      }),
      { numRuns: 150, seed: SEED },
    );
    expect(compared).toBeGreaterThan(400);
  });

  it('match exactly when the slow matcher says so', () => {
    fc.assert(
      fc.property(
        expressionAndTime,
        fc.integer({ min: -2_000, max: 2_000 }),
        ([expression, from], minutes) => {
          const wall = Math.floor(from / 60_000) * 60 + minutes * 60;
          const slow = readFields(expression);
          fc.pre(!/ (29|3[01]|30-31) 2 /.test(expression));
          const pattern = wallPattern(expression, 'seed', 'test');
          expect(pattern.matches(wall)).toBe(slow.matches(new Date(wall * 1_000)));
          expect(pattern.everyHour).toBe(slow.everyHour);
        },
      ),
      { numRuns: 2_000, seed: SEED },
    );
  });
});

describe('the calendar', () => {
  it('is that of Date', () => {
    fc.assert(
      fc.property(fc.integer({ min: -800_000, max: 3_000_000 }), (number) => {
        const date = new Date(number * 86_400_000);
        const [year, month, dayOfMonth] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
        expect(calendarDay(number)).toEqual({ year, month, day: dayOfMonth });
        expect(dayNumber(year, month, dayOfMonth)).toBe(number);
        expect(weekdayOf(number)).toBe(date.getUTCDay());
        const nextMonth = new Date(0);
        nextMonth.setUTCFullYear(year, month, 0);
        expect(monthLength(year, month)).toBe(nextMonth.getUTCDate());
      }),
      { numRuns: 5_000, seed: SEED },
    );
  });
});
