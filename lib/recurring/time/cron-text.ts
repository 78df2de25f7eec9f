import { CronExpressionParser } from 'cron-parser';
import { describeError } from '../../errors/describe-error.js';
import { nearest } from '../../errors/nearest.js';
import { InvalidRecurrenceError } from '../../errors/recurring-errors.js';
import { escapeControls, showValue } from '../../errors/show-value.js';
import { type WallFields } from './wall-pattern.js';

/**
 * Names for whole cron texts. `@every` is beside them, an interval; `@reboot` is not: what runs once a start is no schedule.
 */
const ALIASES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@weekdays': '0 0 * * 1-5',
  '@weekends': '0 0 * * 0,6',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
  '@minutely': '* * * * *',
  '@secondly': '* * * * * *',
};

/** In the order of six fields; how many values each has. */
const FIELDS = [
  ['second', 60],
  ['minute', 60],
  ['hour', 24],
  ['day of month', 31],
  ['month', 12],
  ['weekday', 8],
] as const;
const DAY_OF_MONTH = 3;
const WEEKDAY = 5;

/**
 * The six fields of a cron text, with aliases and missing seconds filled in, each as cron-parser is to read it.
 *
 * cron-parser itself takes an empty text and one to four fields for "every minute"; a step wider than its field
 * (`*` + `/90` minutes) for its first value; `4#1.5` for a day that never is. A bare `H` as day of month may be the 31st there, which
 * would leave five months out: here it is drawn from 1 to 28.
 */
export function cronFields(text: string, owner: string): string[] {
  const refuse = (problem: string) => new InvalidRecurrenceError(owner, text, problem);
  if (text.startsWith('@') && !Object.hasOwn(ALIASES, text)) {
    const names = [...Object.keys(ALIASES), '@every'];
    const near = nearest(text.slice(0, 50), names);
    throw refuse(
      `is no alias; ${near ? `did you mean ${JSON.stringify(near)}?` : `allowed: ${names.join(', ')} 15s`}`,
    );
  }
  const fields = (ALIASES[text] ?? text).split(/\s+/);
  if (fields.length === 5) fields.unshift('0');
  if (fields.length !== FIELDS.length) {
    throw refuse(
      `has ${fields.length === 1 ? 'one field' : `${fields.length} fields`}; a cron text has 5 (minute, hour, day of month, ` +
        'month, weekday), or 6 with the second before them' +
        (/^\d+(ms|s|m|h|d)$/.test(text) ? `; an interval is { every: ${JSON.stringify(text)} }` : ''),
    );
  }
  for (const [index, [name, size]] of FIELDS.entries()) {
    const field = fields[index] ?? '';
    const step = [...field.matchAll(/\/(\d+)/g)].find(([, width]) => Number(width) > size);
    if (step) {
      throw refuse(
        `has the ${name} ${showValue(field)}: a step of ${step[1]} leaves the first value alone; an interval of any length is { every: "90m" }`,
      );
    }
  }
  if (/#(?![1-5]$)/.test(fields[WEEKDAY] ?? '')) {
    throw refuse(`has the weekday ${showValue(fields[WEEKDAY])}: after # stands which of the month, 1 to 5`);
  }
  fields[DAY_OF_MONTH] = (fields[DAY_OF_MONTH] ?? '').replace(/H(?![(/])/g, 'H(1-28)');
  return fields;
}

/** What the fields allow. `H` is drawn from the seed. */
export function readFields(
  text: string,
  fields: readonly string[],
  hashSeed: string,
  owner: string,
): WallFields {
  try {
    return allowedBy(fields, hashSeed);
  } catch (error) {
    throw new InvalidRecurrenceError(owner, text, reason(fields, hashSeed, error), { cause: error });
  }
}

function allowedBy(fields: readonly string[], hashSeed: string): WallFields {
  const { second, minute, hour, dayOfMonth, month, dayOfWeek } = CronExpressionParser.parse(
    fields.join(' '),
    {
      // An empty seed would be none, and H another time on each node. The date is that of an iterator which is never asked.
      ...{ hashSeed: hashSeed || '-', tz: 'UTC', currentDate: 0 },
    },
  ).fields;
  const numbers = (values: readonly unknown[]) => values.filter((value) => typeof value === 'number');
  const lasts = dayOfWeek.values.map(String).filter((value) => value.endsWith('L'));
  return {
    seconds: numbers(second.values),
    minutes: numbers(minute.values),
    hours: numbers(hour.values),
    months: numbers(month.values),
    daysOfMonth: numbers(dayOfMonth.values),
    lastDayOfMonth: dayOfMonth.hasLastChar,
    weekdays: numbers(dayOfWeek.values).map((value) => value % 7),
    nthWeekday: dayOfWeek.nthDay,
    lastWeekdays: lasts.map((value) => Number.parseInt(value, 10) % 7),
    anyDayOfMonth: dayOfMonth.isWildcard,
    anyWeekday: dayOfWeek.isWildcard,
  };
}

/** cron-parser says what is wrong, not where: each field is tried alone. */
function reason(fields: readonly string[], hashSeed: string, error: unknown): string {
  for (const [index, [name]] of FIELDS.entries()) {
    const alone = FIELDS.map((_, other) => (other === index ? (fields[index] ?? '*') : '*'));
    try {
      allowedBy(alone, hashSeed);
    } catch (own) {
      return `has the ${name} ${showValue(fields[index])}: ${escapeControls(describeError(own).message)}`;
    }
  }
  const { message } = describeError(error);
  return message.includes('day of month')
    ? 'never occurs: none of its months has that day'
    : `is wrong: ${escapeControls(message)}`;
}
