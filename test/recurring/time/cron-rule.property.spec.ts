import { describe, expect, it } from '@jest/globals';
import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { occurrencesUntil } from '../../../lib/recurring/time/missed.js';
import { parseRule, type RecurrenceRule } from '../../../lib/recurring/time/recurrence-rule.js';
import { disagreement } from './agreement.js';
import { expressionAbout, withSeconds } from './expressions.js';
import { SlowOracle } from './slow-oracle.js';
import { transitionsOf } from './transitions.js';

const SEED = 20_261_130;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const EPOCH = new Date(0);
const ZONES = Intl.supportedValuesOf('timeZone');
/** One of each kind of change is always there; the others are drawn. `npm run test:zones` takes all. */
const KINDS = [
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Antarctica/Troll',
  'Africa/Casablanca',
];
const DRAWN = 5;

/** What is refused because it never occurs is a rule without occurrences: the oracle must find none either. */
function ruleOf(expression: string, zone: string): Pick<RecurrenceRule, 'next'> {
  try {
    return parseRule(expression, zone, { hashSeed: 'test' });
  } catch (error) {
    if (!(error as Error).message.includes('never occurs')) throw error;
    return { next: () => undefined };
  }
}

function agrees(oracle: SlowOracle, expressions: readonly string[]): void {
  for (const expression of expressions) {
    expect(disagreement(oracle, expression, ruleOf(expression, oracle.zone))).toBeUndefined();
  }
}

/** The newest two changes of a zone: there and back. */
const changesOf = (zone: string) =>
  transitionsOf(zone, 2025, 2027)
    .slice(-2)
    .map(({ at }) => [zone, new Date(at).toISOString()] as const);

const shuffled = fc.sample(fc.shuffledSubarray(ZONES, { minLength: 60, maxLength: 60 }), {
  numRuns: 1,
  seed: SEED,
});
const drawn = shuffled[0]!.filter((zone) => changesOf(zone).length > 0).slice(0, DRAWN);
const changes = [...new Set([...KINDS, ...drawn])].flatMap(changesOf);

describe('next, against the slow oracle', () => {
  it.each(changes)('%s, three days around the change of %s, minute by minute', (zone, change) => {
    const at = Date.parse(change);
    const oracle = new SlowOracle(zone, at - 1.5 * DAY, at + 1.5 * DAY);
    agrees(oracle, fc.sample(expressionAbout(new Date(at)), { numRuns: 30, seed: SEED }));
  });

  it.each(changes.slice(0, 6))('%s, two hours around the change of %s, second by second', (zone, change) => {
    const at = Date.parse(change);
    const oracle = new SlowOracle(zone, at - HOUR, at + HOUR, 1_000);
    agrees(oracle, fc.sample(withSeconds(expressionAbout(new Date(at))), { numRuns: 15, seed: SEED }));
  });

  it('in random weeks of random zones', () => {
    const week = fc.record({
      zone: fc.constantFrom(...ZONES),
      hour: fc.integer({ min: Date.UTC(2021, 0) / HOUR, max: Date.UTC(2031, 0) / HOUR }),
    });
    fc.assert(
      fc.property(week, fc.integer(), ({ zone, hour }, seed) => {
        const oracle = new SlowOracle(zone, hour * HOUR, hour * HOUR + 7 * DAY);
        agrees(oracle, fc.sample(expressionAbout(new Date((hour + 84) * HOUR)), { numRuns: 10, seed }));
      }),
      { numRuns: 12, seed: SEED },
    );
  });

  it('from any instant: later, and the same as in sequence', () => {
    const oracle = new SlowOracle(
      'America/New_York',
      Date.parse('2026-10-31T00:00Z'),
      Date.parse('2026-11-03T00:00Z'),
    );
    const about = new Date('2026-11-01T06:00Z');
    const anywhere = fc.integer({ min: 1, max: 3 * DAY - 1 });
    // The repeated hour has the traps: what is next there was shown before.
    const nearChange = fc.integer({ min: 29 * HOUR, max: 31 * HOUR });
    fc.assert(
      fc.property(expressionAbout(about), fc.oneof(anywhere, nearChange), (expression, passed) => {
        const after = oracle.from + passed;
        const next = ruleOf(expression, oracle.zone).next(new Date(after), EPOCH)?.getTime() ?? Infinity;
        expect(next).toBeGreaterThan(after);
        const expected = oracle.occurrences(expression).find((due) => due > after);
        expect(next <= oracle.until ? next : undefined).toBe(expected);
      }),
      { numRuns: 120, seed: SEED },
    );
  });

  it('misfires are counted as the oracle counts them', async () => {
    for (const [zone, change] of changes.slice(0, 8)) {
      const at = Date.parse(change);
      const oracle = new SlowOracle(zone, at - 1.5 * DAY, at + 1.5 * DAY);
      for (const expression of fc.sample(expressionAbout(new Date(at)), { numRuns: 15, seed: SEED + 1 })) {
        const due = oracle.occurrences(expression);
        if (due.length === 0) continue;
        const rule = parseRule(expression, zone, { hashSeed: 'test' });
        const [first, until] = [new Date(due[0]!), new Date(oracle.until)];
        const missed = await occurrencesUntil(rule, first, until, EPOCH, 7);
        expect([expression, missed.count]).toEqual([expression, due.length]);
        expect(missed.newest.map(Number)).toEqual(due.slice(-7));
        expect(missed.next?.getTime() ?? Infinity).toBeGreaterThan(oracle.until);
      }
    }
  });
});

describe('the oracle finds fault', () => {
  const around = (change: string) =>
    new SlowOracle('America/New_York', Date.parse(change) - DAY, Date.parse(change) + DAY);
  const theirs = (expression: string): Pick<RecurrenceRule, 'next'> => ({
    next: (after) =>
      CronExpressionParser.parse(expression, { tz: 'America/New_York', currentDate: after }).next().toDate(),
  });

  it('with cron-parser alone, which runs 02:30 at 03:30', () => {
    expect(disagreement(around('2026-03-08T07:00Z'), '30 2 * * *', theirs('30 2 * * *'))).toBe(
      '"30 2 * * *" in America/New_York after 2026-03-07T07:30:00.000Z: 2026-03-08T07:30:00.000Z, the oracle says 2026-03-08T07:00:00.000Z',
    );
  });

  it('with a rule that skips an occurrence, or has one too many', () => {
    const oracle = around('2026-11-01T06:00Z');
    const rule = (expression: string) => parseRule(expression, 'America/New_York', { hashSeed: 'test' });
    expect(disagreement(oracle, '30 1 * * *', rule('30 * * * *'))).toContain('the oracle says');
    expect(disagreement(oracle, '30 * * * *', rule('30 0-22 * * *'))).toContain('the oracle says');
    expect(disagreement(oracle, '30 1 * * *', { next: () => undefined })).toContain(
      ': none, the oracle says',
    );
  });
});
