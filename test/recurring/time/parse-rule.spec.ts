import { describe, expect, it } from '@jest/globals';
import { CronExpression } from '@nestjs/schedule';
import { parseRule, type RuleSource } from '../../../lib/recurring/time/recurrence-rule.js';

const EPOCH = new Date(0);
const OPTIONS = { hashSeed: 'nightly', owner: 'ReportJobs.daily' };
function parse(source: unknown, ...zone: readonly unknown[]) {
  return parseRule(source as RuleSource, (zone.length > 0 ? zone[0] : 'UTC') as string, OPTIONS);
}
const next = (source: unknown, after = '2026-05-05T12:34:56Z') =>
  parse(source).next(new Date(after), EPOCH)?.toISOString();

function refusal(source: unknown, ...zone: readonly unknown[]): string {
  try {
    parse(source, ...zone);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    expect(message.startsWith(`${code}: ReportJobs.daily: `)).toBe(true);
    return message.slice(`${code}: ReportJobs.daily: `.length);
  }
  return 'accepted';
}

describe('parseRule', () => {
  it('takes every CronExpression of @nestjs/schedule', () => {
    const expressions = Object.values(CronExpression);
    expect(expressions.length).toBeGreaterThan(50);
    for (const expression of expressions) {
      expect(parse(expression).expression).toBe(expression);
      expect(next(expression)).toBeDefined();
    }
  });

  it.each([
    ['@yearly', '2027-01-01T00:00:00.000Z'],
    ['@annually', '2027-01-01T00:00:00.000Z'],
    ['@monthly', '2026-06-01T00:00:00.000Z'],
    ['@weekly', '2026-05-10T00:00:00.000Z'],
    ['@weekdays', '2026-05-06T00:00:00.000Z'],
    ['@weekends', '2026-05-09T00:00:00.000Z'],
    ['@daily', '2026-05-06T00:00:00.000Z'],
    ['@midnight', '2026-05-06T00:00:00.000Z'],
    ['@hourly', '2026-05-05T13:00:00.000Z'],
    ['@minutely', '2026-05-05T12:35:00.000Z'],
    ['@secondly', '2026-05-05T12:34:57.000Z'],
  ])('takes the alias %s', (alias, due) => {
    expect(next(alias)).toBe(due);
    expect(parse(alias).expression).toBe(alias);
  });

  it('keeps the text of the user, and reads it again as the same rule', () => {
    const rule = parse('  0 30  9 * JAN-jun mon-FRI\n');
    expect(rule).toMatchObject({
      expression: '0 30  9 * JAN-jun mon-FRI',
      timeZone: 'UTC',
      everyMs: undefined,
    });
    expect(next(rule.expression)).toBe('2026-05-06T09:30:00.000Z');
  });

  it.each([
    [{ every: '15s' }, '@every 15s', 15_000],
    [{ every: '90m' }, '@every 90m', 5_400_000],
    [{ every: '60s' }, '@every 1m', 60_000],
    [{ every: '1.5h' }, '@every 90m', 5_400_000],
    [{ every: 1_500 }, '@every 1500ms', 1_500],
    [{ every: '24h' }, '@every 1d', 86_400_000],
    [{ every: '3650d' }, '@every 3650d', 315_360_000_000],
    ['@every 15s', '@every 15s', 15_000],
    [' @every  1000ms ', '@every 1s', 1_000],
  ])('takes the interval %j', (source, expression, everyMs) => {
    const rule = parse(source, 'Europe/Lisbon');
    expect(rule).toMatchObject({ expression, everyMs, timeZone: 'Europe/Lisbon' });
    expect(parse(rule.expression).everyMs).toBe(everyMs);
  });

  it('draws H from the seed: equal on all nodes, other for other schedules, in every month', () => {
    const dues = (seed: string) => {
      const rule = parseRule('H H(2-4) H * *', 'UTC', { hashSeed: seed });
      return rule.next(new Date('2026-01-01T00:00:00Z'), EPOCH)?.toISOString();
    };
    const seeds = Array.from({ length: 200 }, (_, index) => `schedule-${index}`);
    expect(seeds.map(dues)).toEqual(seeds.map(dues));
    expect(new Set(seeds.map(dues)).size).toBeGreaterThan(150);
    for (const due of seeds.map(dues)) {
      expect(due).toMatch(/^2026-01-(0[1-9]|1\d|2[0-8])T0[234]:/);
    }
    expect(dues('')).toBe(dues(''));
  });

  it.each([
    ['', 'is empty; give a cron text such as "0 6 * * *", or { every: "15s" }'],
    ['  ', '"  " is empty'],
    ['0 0 * * FRI-MON', 'has the weekday "FRI-MON"'],
    ['0 22-4 * * *', 'has the hour "22-4"'],
    ['0 0 * * a\0\x1b\x7f', 'has the weekday "a\\u0000\\u001b\\u007f"'],
    ['* *', '"* *" has 2 fields; a cron text has 5'],
    ['* * *', '"* * *" has 3 fields; a cron text has 5'],
    ['* * * *', '"* * * *" has 4 fields; a cron text has 5'],
    ['* * * * * * *', '"* * * * * * *" has 7 fields; a cron text has 5'],
    ['15s', 'an interval is { every: "15s" }'],
    ['0 0 31 2 *', '"0 0 31 2 *" never occurs: none of its months has that day'],
    ['0 0 30 2 *', 'never occurs'],
    ['0 0 0 31 4,6,9,11 *', 'never occurs'],
    ['0 0 * * 4#1.5', 'after # stands which of the month, 1 to 5'],
    ['0 0 1 * 4#6', 'after # stands which of the month, 1 to 5'],
    ['60 * * * *', 'has the minute "60": Constraint error, got value 60 expected range 0-59'],
    ['* 24 * * *', 'has the hour "24"'],
    ['* * 0 * *', 'has the day of month "0"'],
    ['* * * 13 *', 'has the month "13"'],
    ['* * * * 8', 'has the weekday "8"'],
    ['61 * * * * *', 'has the second "61"'],
    ['*/0 * * * *', 'has the minute "*/0"'],
    [
      '*/90 * * * *',
      'a step of 90 leaves the first value alone; an interval of any length is { every: "90m" }',
    ],
    ['5-1 * * * *', 'has the minute "5-1"'],
    ['0 0 * * monday', 'has the weekday "monday"'],
    ['0 0 15W * *', 'has the day of month "15W"'],
    ['0 0 * * L', 'has the weekday "L"'],
    ['a b c d e', 'has the minute "a"'],
    ['@dayly', 'is no alias; did you mean "@daily"?'],
    ['@reboot', 'is no alias; allowed: @yearly, '],
    ['@every', 'is no interval; an interval is a duration from 1s to 3650d'],
    ['@every 15', 'is no interval'],
    ['@every 1h30m', 'is no interval'],
    ['@every15s', 'is no alias'],
    ['@every 999ms', 'is too often; an interval is a duration from 1s to 3650d'],
    [{ every: 0 }, 'is too often'],
    [{ every: -5 }, 'is no interval'],
    [{ every: Number.NaN }, '{ every: NaN } is no interval'],
    [{ every: Infinity }, 'is no interval'],
    [{ every: '3651d' }, 'is too rare'],
    [{ every: '15 s' }, 'is no interval'],
    [{ every: undefined }, 'is no interval'],
    [{ every: '15s', cron: '* * * * *' }, 'has "cron" beside "every"'],
    [{ evry: '15s' }, 'is no schedule; allowed: a cron text, or { every: "15s" }'],
    [[], 'is no schedule'],
    [new Date(0), 'is no schedule'],
    [undefined, 'is no schedule'],
    [null, 'is no schedule'],
    [15, 'is no schedule'],
  ])('refuses %j', (source, text) => {
    expect(refusal(source)).toContain(text);
  });

  it.each([
    ['Europe/Lisbom', '"Europe/Lisbom" is no IANA time zone; did you mean "Europe/Lisbon"?'],
    ['lisbon', '"lisbon" is no IANA time zone; did you mean "Europe/Lisbon"?'],
    ['New York', 'did you mean "America/New_York"?'],
    [' Europe/Paris', 'did you mean "Europe/Paris"?'],
    ['Mars/Olympus', '"Mars/Olympus" is no IANA time zone; give a name'],
    ['', '"" is empty; give an IANA time zone such as "Europe/Lisbon", or leave it out'],
    ['+02:00', '"+02:00" is an offset, which knows no daylight saving; give an IANA time zone'],
    ['+02:00', 'or "Etc/GMT-2" for just that offset'],
    ['UTC-5', 'or "Etc/GMT+5" for just that offset'],
    ['+05:30', 'is an offset'],
    ['BST', 'is an abbreviation, which may mean several zones'],
    ['pst', 'is an abbreviation'],
    [undefined, 'undefined is no IANA time zone'],
    [null, 'null is no IANA time zone'],
    [2, '2 is no IANA time zone'],
    [{}, '{} is no IANA time zone'],
  ])('refuses the time zone %j', (zone, text) => {
    expect(refusal('0 6 * * *', zone)).toContain(text);
    expect(refusal({ every: '1h' }, zone)).toContain(text);
  });

  it('corrects the letter case of a time zone, and leaves aliases as they are on all versions of Node', () => {
    const name = (zone: string) => parse('0 6 * * *', zone).timeZone;
    expect(
      ['europe/lisbon', 'utc', 'Asia/Kolkata', 'Asia/Calcutta', 'US/Pacific', 'Etc/GMT-2', 'EST'].map(name),
    ).toEqual(['Europe/Lisbon', 'UTC', 'Asia/Kolkata', 'Asia/Calcutta', 'US/Pacific', 'Etc/GMT-2', 'EST']);
  });

  it('keeps messages short', () => {
    for (const much of ['1,'.repeat(5_000), `${'1,'.repeat(600)}2 * * * *`, '@'.repeat(5_000)]) {
      expect(refusal(much).length).toBeLessThan(400);
    }
    expect(refusal('0 6 * * *', 'x'.repeat(5_000)).length).toBeLessThan(400);
  });
});
