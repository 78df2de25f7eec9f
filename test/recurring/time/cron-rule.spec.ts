import { describe, expect, it } from '@jest/globals';
import { parseRule } from '../../../lib/recurring/time/recurrence-rule.js';

/** The occurrences after one instant, up to and including another, as `2026-03-08T07:00Z`. */
function due(expression: string, zone: string, after: string, until: string): string[] {
  const rule = parseRule(expression, zone, { hashSeed: 'test' });
  const found: string[] = [];
  let next = rule.next(new Date(after), new Date(0));
  while (next && next.getTime() <= Date.parse(until)) {
    found.push(next.toISOString().replace(/:00\.000Z$/, 'Z'));
    next = rule.next(next, new Date(0));
  }
  return found;
}

/** Name; expression, zone, after and until; when it is due. */
type Row = readonly [string, readonly [string, string, string, string], readonly string[]];

const GAPS: readonly Row[] = [
  [
    'New York, 02:30 on the day without one: at 03:00, and at 02:30 the day after',
    ['30 2 * * *', 'America/New_York', '2026-03-08T05:00Z', '2026-03-09T12:00Z'],
    ['2026-03-08T07:00Z', '2026-03-09T06:30Z'],
  ],
  [
    'New York, three times in one gap: one run',
    ['0,20,40 2 * * *', 'America/New_York', '2026-03-08T05:00Z', '2026-03-08T12:00Z'],
    ['2026-03-08T07:00Z'],
  ],
  [
    'New York, times in the gap and its end itself: one run there',
    ['*/30 2,3 * * *', 'America/New_York', '2026-03-08T05:00Z', '2026-03-08T12:00Z'],
    ['2026-03-08T07:00Z', '2026-03-08T07:30Z'],
  ],
  [
    'Santiago, midnight does not exist: 01:00',
    ['0 0 * * *', 'America/Santiago', '2026-09-05T12:00Z', '2026-09-07T12:00Z'],
    ['2026-09-06T04:00Z', '2026-09-07T03:00Z'],
  ],
  [
    'Santiago, Sunday midnight: the missing time is of Sunday',
    ['0 0 * * 0', 'America/Santiago', '2026-09-05T12:00Z', '2026-09-13T12:00Z'],
    ['2026-09-06T04:00Z', '2026-09-13T03:00Z'],
  ],
  [
    'Santiago, Saturday midnight is not in that gap',
    ['0 0 * * 6', 'America/Santiago', '2026-09-04T12:00Z', '2026-09-08T12:00Z'],
    ['2026-09-05T04:00Z'],
  ],
  [
    'Lord Howe, 02:15 in a gap of half an hour: at its end, 02:30',
    ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', '2026-10-04T15:30Z'],
    ['2026-10-03T15:30Z', '2026-10-04T15:15Z'],
  ],
  [
    'Lord Howe, 02:15 and 02:30: one run',
    ['15,30 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', '2026-10-04T00:00Z'],
    ['2026-10-03T15:30Z'],
  ],
  [
    'São Paulo 2018, midnight does not exist: 01:00',
    ['0 0 * * *', 'America/Sao_Paulo', '2018-11-03T12:00Z', '2018-11-05T12:00Z'],
    ['2018-11-04T03:00Z', '2018-11-05T02:00Z'],
  ],
  [
    'London, 01:30: 02:00',
    ['30 1 * * *', 'Europe/London', '2026-03-28T12:00Z', '2026-03-30T12:00Z'],
    ['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
  ],
  [
    'Lisbon, 01:15: 02:00',
    ['15 1 * * *', 'Europe/Lisbon', '2026-03-28T12:00Z', '2026-03-30T12:00Z'],
    ['2026-03-29T01:00Z', '2026-03-30T00:15Z'],
  ],
  [
    'Casablanca, after Ramadan',
    ['30 2 * * *', 'Africa/Casablanca', '2026-03-21T12:00Z', '2026-03-23T12:00Z'],
    ['2026-03-22T02:00Z', '2026-03-23T01:30Z'],
  ],
  [
    'Cairo, midnight of a Friday',
    ['0 0 * * 5', 'Africa/Cairo', '2026-04-23T12:00Z', '2026-05-01T12:00Z'],
    ['2026-04-23T22:00Z', '2026-04-30T21:00Z'],
  ],
  [
    'Gaza, on a Saturday',
    ['30 2 * * *', 'Asia/Gaza', '2026-03-27T12:00Z', '2026-03-29T12:00Z'],
    ['2026-03-28T00:00Z', '2026-03-28T23:30Z'],
  ],
  [
    'Troll, two hours missing: one run at their end',
    ['30 1,2 * * *', 'Antarctica/Troll', '2026-03-28T12:00Z', '2026-03-29T12:00Z'],
    ['2026-03-29T01:00Z'],
  ],
  [
    'Tehran 2022, midnight does not exist, and in 2023 it does',
    ['0 0 22 3 *', 'Asia/Tehran', '2022-01-01T00:00Z', '2023-12-31T00:00Z'],
    ['2022-03-21T20:30Z', '2023-03-21T20:30Z'],
  ],
  [
    'Apia, a whole day is missing: its noon runs when it is over',
    ['0 12 * * *', 'Pacific/Apia', '2011-12-29T12:00Z', '2011-12-31T12:00Z'],
    ['2011-12-29T22:00Z', '2011-12-30T10:00Z', '2011-12-30T22:00Z'],
  ],
  [
    'Apia, the missing day by its date, several times: one run',
    ['0 */6 30 12 *', 'Pacific/Apia', '2011-12-28T00:00Z', '2012-01-02T00:00Z'],
    ['2011-12-30T10:00Z'],
  ],
  [
    'Caracas 2016, the zone changes its rule by half an hour',
    ['45 2 * * *', 'America/Caracas', '2016-04-30T12:00Z', '2016-05-02T12:00Z'],
    ['2016-05-01T07:00Z', '2016-05-02T06:45Z'],
  ],
  [
    'Pyongyang 2018, half an hour before midnight is missing: midnight',
    ['45 23 4 5 *', 'Asia/Pyongyang', '2018-05-01T00:00Z', '2018-06-01T00:00Z'],
    ['2018-05-04T15:00Z'],
  ],
];

const OVERLAPS: readonly Row[] = [
  [
    'New York, 01:30 twice: the first time',
    ['30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', '2026-11-02T12:00Z'],
    ['2026-11-01T05:30Z', '2026-11-02T06:30Z'],
  ],
  [
    'New York, every quarter of some hours: no second pass',
    ['*/30 0-2 * * *', 'America/New_York', '2026-11-01T03:30Z', '2026-11-01T12:00Z'],
    ['04:00', '04:30', '05:00', '05:30', '07:00', '07:30'].map((time) => `2026-11-01T${time}Z`),
  ],
  [
    'Santiago, the last hour of Saturday comes twice',
    ['30 23 * * 6', 'America/Santiago', '2026-04-03T12:00Z', '2026-04-06T12:00Z'],
    ['2026-04-05T02:30Z'],
  ],
  [
    'Lord Howe, 01:45 twice: the first time',
    ['45 1 * * *', 'Australia/Lord_Howe', '2027-04-03T00:00Z', '2027-04-04T16:00Z'],
    ['2027-04-03T14:45Z', '2027-04-04T15:15Z'],
  ],
  [
    'São Paulo 2019',
    ['30 23 * * *', 'America/Sao_Paulo', '2019-02-16T12:00Z', '2019-02-18T12:00Z'],
    ['2019-02-17T01:30Z', '2019-02-18T02:30Z'],
  ],
  [
    'London',
    ['30 1 * * *', 'Europe/London', '2026-10-24T12:00Z', '2026-10-26T12:00Z'],
    ['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
  ],
  [
    'Casablanca, when Ramadan begins',
    ['30 2 * * *', 'Africa/Casablanca', '2026-02-14T12:00Z', '2026-02-16T12:00Z'],
    ['2026-02-15T01:30Z', '2026-02-16T02:30Z'],
  ],
  [
    'Cairo, the last hour of Thursday',
    ['30 23 * * 4', 'Africa/Cairo', '2026-10-28T12:00Z', '2026-10-30T12:00Z'],
    ['2026-10-29T20:30Z'],
  ],
  [
    'Gaza',
    ['30 1 * * *', 'Asia/Gaza', '2026-10-23T12:00Z', '2026-10-25T12:00Z'],
    ['2026-10-23T22:30Z', '2026-10-24T23:30Z'],
  ],
  [
    'Troll, two hours twice: each time once',
    ['30 1,2 * * *', 'Antarctica/Troll', '2026-10-24T12:00Z', '2026-10-25T12:00Z'],
    ['2026-10-24T23:30Z', '2026-10-25T00:30Z'],
  ],
];

const EVERY_HOUR: readonly Row[] = [
  [
    'New York, `30 * * * *` is every real hour in spring',
    ['30 * * * *', 'America/New_York', '2026-03-08T05:00Z', '2026-03-08T09:00Z'],
    ['05:30', '06:30', '07:30', '08:30'].map((time) => `2026-03-08T${time}Z`),
  ],
  [
    'New York, `30 * * * *` is every real hour in autumn',
    ['30 0-23 * * *', 'America/New_York', '2026-11-01T04:00Z', '2026-11-01T08:00Z'],
    ['04:30', '05:30', '06:30', '07:30'].map((time) => `2026-11-01T${time}Z`),
  ],
  [
    'Santiago, every half hour of a Sunday that begins at 01:00',
    ['*/30 * * * 0', 'America/Santiago', '2026-09-05T12:00Z', '2026-09-06T05:00Z'],
    ['04:00', '04:30', '05:00'].map((time) => `2026-09-06T${time}Z`),
  ],
  [
    'Nuuk, a Saturday loses its last hour: made up once, when Sunday begins',
    ['*/30 * * * 6', 'America/Nuuk', '2026-03-28T23:30Z', '2026-03-29T12:00Z'],
    ['2026-03-29T00:00Z', '2026-03-29T00:30Z', '2026-03-29T01:00Z'],
  ],
  [
    'Apia, every hour of a Friday that does not exist: once',
    ['0 * * * 5', 'Pacific/Apia', '2011-12-24T12:00Z', '2011-12-31T12:00Z'],
    ['2011-12-30T10:00Z'],
  ],
  [
    'Lord Howe, spring, the full hour is in the gap: made up at its end',
    ['0 * * * *', 'Australia/Lord_Howe', '2026-10-03T14:00Z', '2026-10-03T17:00Z'],
    ['14:30', '15:30', '16:00', '17:00'].map((time) => `2026-10-03T${time}Z`),
  ],
  [
    'Lord Howe, spring, a quarter past',
    ['15 * * * *', 'Australia/Lord_Howe', '2026-10-03T14:00Z', '2026-10-03T17:00Z'],
    ['14:45', '15:30', '16:15'].map((time) => `2026-10-03T${time}Z`),
  ],
  [
    'Lord Howe, spring, half past: the end of the gap itself',
    ['30 * * * *', 'Australia/Lord_Howe', '2026-10-03T14:00Z', '2026-10-03T17:00Z'],
    ['15:00', '15:30', '16:30'].map((time) => `2026-10-03T${time}Z`),
  ],
  [
    'Lord Howe, spring, twice an hour: nothing is made up, the interval stays',
    ['15,45 * * * *', 'Australia/Lord_Howe', '2026-10-03T14:30Z', '2026-10-03T16:30Z'],
    ['14:45', '15:15', '15:45', '16:15'].map((time) => `2026-10-03T${time}Z`),
  ],
  [
    'Lord Howe, autumn, a minute that is repeated: both times',
    ['45 * * * *', 'Australia/Lord_Howe', '2027-04-03T13:30Z', '2027-04-03T16:30Z'],
    ['13:45', '14:45', '15:15', '16:15'].map((time) => `2027-04-03T${time}Z`),
  ],
  [
    'Lord Howe, autumn, a minute that is not: an hour and a half between',
    ['0 * * * *', 'Australia/Lord_Howe', '2027-04-03T13:30Z', '2027-04-03T16:30Z'],
    ['14:00', '15:30', '16:30'].map((time) => `2027-04-03T${time}Z`),
  ],
];

const CALENDAR: readonly Row[] = [
  [
    '29 February',
    ['0 0 29 2 *', 'UTC', '2026-01-01T00:00Z', '2033-01-01T00:00Z'],
    ['2028-02-29T00:00Z', '2032-02-29T00:00Z'],
  ],
  [
    '29 February, eight years ahead',
    ['0 0 29 2 *', 'Europe/Paris', '2096-03-01T00:00Z', '2105-01-01T00:00Z'],
    ['2104-02-28T23:00Z'],
  ],
  [
    'each 31st: months without one are left out',
    ['0 0 31 * *', 'UTC', '2026-01-01T00:00Z', '2026-08-01T00:00Z'],
    ['2026-01-31T00:00Z', '2026-03-31T00:00Z', '2026-05-31T00:00Z', '2026-07-31T00:00Z'],
  ],
  [
    'the last day of the month',
    ['0 0 L * *', 'UTC', '2028-01-01T00:00Z', '2028-05-01T00:00Z'],
    ['2028-01-31T00:00Z', '2028-02-29T00:00Z', '2028-03-31T00:00Z', '2028-04-30T00:00Z'],
  ],
  [
    'the last Friday of the month',
    ['0 0 * * 5L', 'UTC', '2026-01-01T00:00Z', '2026-04-01T00:00Z'],
    ['2026-01-30T00:00Z', '2026-02-27T00:00Z', '2026-03-27T00:00Z'],
  ],
  [
    'the second Monday of the month',
    ['0 0 * * MON#2', 'UTC', '2026-01-01T00:00Z', '2026-04-01T00:00Z'],
    ['2026-01-12T00:00Z', '2026-02-09T00:00Z', '2026-03-09T00:00Z'],
  ],
  [
    'day of month and weekday: either',
    ['0 0 13 * FRI', 'UTC', '2026-03-01T00:00Z', '2026-03-31T00:00Z'],
    ['06', '13', '20', '27'].map((day) => `2026-03-${day}T00:00Z`),
  ],
  [
    'a fifth Monday in February, 28 years apart',
    ['0 0 * 2 1#5', 'UTC', '2026-01-01T00:00Z', '2060-01-01T00:00Z'],
    ['2044-02-29T00:00Z'],
  ],
  [
    'seconds',
    ['*/20 59 23 31 12 *', 'UTC', '2026-12-31T00:00Z', '2027-01-01T00:00Z'],
    ['2026-12-31T23:59Z', '2026-12-31T23:59:20.000Z', '2026-12-31T23:59:40.000Z'],
  ],
];

describe('a cron text', () => {
  describe.each([
    ['whose hours are fixed, when a wall time does not exist', GAPS],
    ['whose hours are fixed, when a wall time comes twice', OVERLAPS],
    ['that runs in every hour, when clocks change', EVERY_HOUR],
    ['on the calendar', CALENDAR],
  ])('%s', (_, rows) => {
    it.each(rows)('%s', (_name, asked, expected) => {
      expect(due(...asked)).toEqual(expected);
    });
  });

  it.each([
    ['America/New_York', '2026-03-07T12:00Z', '2026-03-09T12:00Z'],
    ['America/New_York', '2026-10-31T12:00Z', '2026-11-02T12:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T00:00Z', '2026-10-04T12:00Z'],
    ['Australia/Lord_Howe', '2027-04-03T00:00Z', '2027-04-04T12:00Z'],
    ['America/Santiago', '2026-09-05T12:00Z', '2026-09-07T12:00Z'],
    ['Antarctica/Troll', '2026-03-28T12:00Z', '2026-03-30T12:00Z'],
    ['Pacific/Apia', '2011-12-29T12:00Z', '2012-01-01T12:00Z'],
  ])('keeps quarters of an hour, and 15 seconds, real in %s over %s', (zone, after, until) => {
    for (const [expression, interval] of [
      ['*/15 * * * *', 900_000],
      ['*/15 * * * * *', 15_000],
    ] as const) {
      const times = due(expression, zone, after, until).map((text) => Date.parse(text));
      expect(times.length).toBe((Date.parse(until) - Date.parse(after)) / interval);
      expect(new Set(times.slice(1).map((time, index) => time - times[index]!))).toEqual(new Set([interval]));
    }
  });

  it('is due after the instant that is asked, to the millisecond', () => {
    const rule = parseRule('0 6 * * *', 'UTC', { hashSeed: 'test' });
    const next = (after: string) => rule.next(new Date(after), new Date(0))?.toISOString();
    expect(next('2026-01-01T05:59:59.999Z')).toBe('2026-01-01T06:00:00.000Z');
    expect(next('2026-01-01T06:00:00.000Z')).toBe('2026-01-02T06:00:00.000Z');
    expect(next('2026-01-01T06:00:00.001Z')).toBe('2026-01-02T06:00:00.000Z');
  });

  it('is not due again when it is asked while the repeated hour lasts', () => {
    const next = (expression: string) =>
      due(expression, 'America/New_York', '2026-11-01T06:10Z', '2026-11-02T12:00Z');
    expect(next('30 1 * * *')).toEqual(['2026-11-02T06:30Z']);
    expect(next('30 1,2 * * *')).toEqual(['2026-11-01T07:30Z', '2026-11-02T06:30Z', '2026-11-02T07:30Z']);
  });

  it('has an end, and refuses what is no date', () => {
    for (const expression of ['0 6 * * *', '* * * * * *', '* * 29 2 *', '0 0 29 2 *']) {
      const rule = parseRule(expression, 'Europe/Lisbon', { hashSeed: 'test' });
      expect(rule.next(new Date('9999-12-31T23:59:59Z'), new Date(0))).toBeUndefined();
      expect(rule.next(new Date(8.64e15), new Date(0))).toBeUndefined();
      expect(rule.next(new Date(-8.64e15), new Date(0))).toBeInstanceOf(Date);
      expect(() => rule.next(new Date(Number.NaN), new Date(0))).toThrow(RangeError);
    }
  });
});
