import { describe, expect, it } from '@jest/globals';
import { occurrencesUntil } from '../../../lib/recurring/time/missed.js';
import { parseRule, type RuleSource } from '../../../lib/recurring/time/recurrence-rule.js';

const at = (text: string) => new Date(`2026-${text}Z`);
const rule = (source: RuleSource, zone = 'UTC') => parseRule(source, zone, { hashSeed: 'test' });
const HOURLY = rule('0 * * * *');
const anchor = at('01-01T00:00:00');

describe('occurrencesUntil', () => {
  it('counts from the first to the end, both included, and keeps the newest', async () => {
    const missed = await occurrencesUntil(HOURLY, at('05-05T10:00:00'), at('05-05T13:00:00'), anchor, 2);
    expect(missed).toEqual({
      count: 4,
      newest: [at('05-05T12:00:00'), at('05-05T13:00:00')],
      next: at('05-05T14:00:00'),
    });
  });

  it.each([
    [0, []],
    [1, ['12']],
    [3, ['10', '11', '12']],
    [9, ['10', '11', '12']],
  ])('keeps %d', async (keep, hours) => {
    const newest = hours.map((hour) => at(`05-05T${hour}:00:00`));
    for (const source of ['0 * * * *', { every: '1h' }] as const) {
      const missed = await occurrencesUntil(
        rule(source),
        at('05-05T10:00:00'),
        at('05-05T12:59:59'),
        anchor,
        keep,
      );
      expect(missed).toEqual({ count: 3, newest, next: at('05-05T13:00:00') });
    }
  });

  it('counts nothing when the first is yet to come', async () => {
    const [first, until] = [at('05-05T10:00:00'), at('05-05T09:59:59')];
    for (const source of ['0 * * * *', { every: '1h' }] as const) {
      expect(await occurrencesUntil(rule(source), first, until, anchor, 5)).toEqual({
        count: 0,
        newest: [],
        next: first,
      });
    }
  });

  it('counts intervals of years at once', async () => {
    const started = performance.now();
    const [first, until] = [new Date('1990-01-01T00:00:01Z'), new Date('2026-01-01T00:00:00.500Z')];
    const missed = await occurrencesUntil(
      rule({ every: '1s' }),
      first,
      until,
      new Date('1990-01-01T00:00:00Z'),
      2,
    );
    expect(missed).toEqual({
      count: (Date.parse('2026-01-01') - Date.parse('1990-01-01')) / 1_000,
      newest: [new Date('2025-12-31T23:59:59Z'), new Date('2026-01-01T00:00:00Z')],
      next: new Date('2026-01-01T00:00:01Z'),
    });
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it('goes on from a first occurrence that is off the grid of the intervals', async () => {
    const missed = await occurrencesUntil(
      rule({ every: '1h' }),
      at('05-05T10:20:00'),
      at('05-05T12:10:00'),
      anchor,
      9,
    );
    expect(missed).toEqual({
      count: 3,
      newest: [at('05-05T10:20:00'), at('05-05T11:00:00'), at('05-05T12:00:00')],
      next: at('05-05T13:00:00'),
    });
  });

  it('counts a rule of each second over three hours with the event loop running, in well under a second of CPU', async () => {
    const secondly = rule('* * * * * *', 'America/New_York');
    let turns = 0;
    const ticker = setInterval(() => (turns += 1), 1);
    const cpu = process.cpuUsage();
    const missed = await occurrencesUntil(secondly, at('11-01T05:00:00'), at('11-01T07:59:59'), anchor, 3);
    const { user, system } = process.cpuUsage(cpu);
    expect(missed).toMatchObject({ count: 10_800, next: at('11-01T08:00:00') });
    expect((user + system) / 1_000).toBeLessThan(900);

    // A day: long enough to need turns.
    turns = 0;
    const day = await occurrencesUntil(secondly, at('03-08T00:00:00'), at('03-14T23:59:59'), anchor, 0);
    clearInterval(ticker);
    expect(day.count).toBe(7 * 86_400);
    expect(turns).toBeGreaterThan(3);
  });

  it('stops between two slices when its signal says so', async () => {
    const controller = new AbortController();
    const counting = occurrencesUntil(
      ...([
        rule('* * * * * *'),
        new Date('1990-01-01T00:00:00Z'),
        at('01-01T00:00:00'),
        anchor,
        1,
        controller.signal,
      ] as const),
    );
    setImmediate(() => controller.abort(new Error('lease lost')));
    await expect(counting).rejects.toThrow('lease lost');
    await expect(
      occurrencesUntil(
        HOURLY,
        at('05-05T10:00:00'),
        at('05-05T13:00:00'),
        anchor,
        2,
        AbortSignal.abort(new Error('over')),
      ),
    ).rejects.toThrow('over');
  });

  it('refuses dates that are none', async () => {
    const none = new Date(Number.NaN);
    await expect(occurrencesUntil(HOURLY, none, anchor, anchor, 1)).rejects.toThrow(RangeError);
    await expect(occurrencesUntil(HOURLY, anchor, none, anchor, 1)).rejects.toThrow(RangeError);
  });
});
