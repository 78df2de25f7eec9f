import { describe, expect, it } from '@jest/globals';
import { RuleCache } from '../../lib/recurring/rule-cache.js';
import { ScheduleTimer } from '../../lib/recurring/schedule-timer.js';
import { SystemClock } from '../../lib/cluster/clock.js';
import { FakeClock } from '../support/fake-clock.js';

const spec = (id: string, expression = '0 6 * * *', timeZone = 'UTC') => ({ id, expression, timeZone });

describe('the rules of schedules', () => {
  it('are parsed once for all schedules that say the same', () => {
    const rules = new RuleCache();
    expect(rules.of(spec('a'))).toBe(rules.of(spec('b')));
    expect(rules.of(spec('a', '0 6 * * *', 'Europe/Lisbon'))).not.toBe(rules.of(spec('a')));
    expect(rules.size).toBe(2);
  });

  it('are drawn from the id where they say so', () => {
    const rules = new RuleCache();
    const from = new Date(Date.UTC(2030, 0, 1));
    const firsts = ['a', 'b', 'c', 'd'].map((id) =>
      rules.of(spec(id, 'H H * * *')).next(from, from)!.getTime(),
    );
    expect(new Set(firsts).size).toBe(4);
    expect(rules.of(spec('a', 'H H * * *')).next(from, from)!.getTime()).toBe(firsts[0]);
  });

  it('are forgotten beyond a bound, those first that were not used for the longest time', () => {
    const rules = new RuleCache();
    const first = rules.of(spec('a', '@every 1s'));
    for (let n = 2; n <= 5_000; n += 1) rules.of(spec('a', `@every ${n}s`));
    expect(rules.of(spec('a', '@every 1s'))).toBe(first);
    rules.of(spec('a', '@every 5001s'));
    expect(rules.size).toBe(5_000);
    expect(rules.of(spec('a', '@every 1s'))).toBe(first);
  });
});

describe('the timer of schedules', () => {
  it('is lowered only', () => {
    const clock = new FakeClock();
    let rings = 0;
    const timer = new ScheduleTimer(clock, () => (rings += 1));
    timer.lower(5_000);
    timer.lower(9_000);
    timer.lower(2_000);
    expect(timer.leftMs).toBe(2_000);
    expect(clock.pending).toBe(1);
    clock.advance(2_001);
    expect([rings, timer.leftMs]).toEqual([1, undefined]);
    clock.advance(60_000);
    expect(rings).toBe(1);
    timer.lower(-5);
    clock.advance(0);
    expect(rings).toBe(2);
    timer.lower(10);
    timer.clear();
    expect(clock.pending).toBe(0);
  });

  it('sleeps for longer than the timers of Node can', async () => {
    let rings = 0;
    const timer = new ScheduleTimer(new SystemClock(), () => (rings += 1));
    timer.lower(2 ** 31 + 1_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(rings).toBe(0);
    expect(timer.leftMs).toBeGreaterThan(2 ** 31);
    timer.clear();
    const far = new FakeClock();
    const year = new ScheduleTimer(far, () => (rings += 1));
    year.lower(366 * 86_400_000);
    far.advance(365 * 86_400_000);
    expect(rings).toBe(0);
    far.advance(86_400_001);
    expect(rings).toBe(1);
  });
});
