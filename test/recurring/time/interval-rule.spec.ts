import { describe, expect, it } from '@jest/globals';
import { parseRule } from '../../../lib/recurring/time/recurrence-rule.js';

const anchor = new Date('2026-03-08T06:00:00.250Z');
const rule = parseRule({ every: '90m' }, 'America/New_York', { hashSeed: 'test' });
const next = (after: Date) => rule.next(after, anchor)?.toISOString();

describe('an interval', () => {
  it('is due at the anchor and whole intervals, never at the anchor itself', () => {
    expect(next(new Date('2020-01-01T00:00:00Z'))).toBe('2026-03-08T07:30:00.250Z');
    expect(next(new Date(anchor.getTime() - 1))).toBe('2026-03-08T07:30:00.250Z');
    expect(next(anchor)).toBe('2026-03-08T07:30:00.250Z');
    expect(next(new Date('2026-03-08T07:30:00.249Z'))).toBe('2026-03-08T07:30:00.250Z');
    expect(next(new Date('2026-03-08T07:30:00.250Z'))).toBe('2026-03-08T09:00:00.250Z');
  });

  it('is not moved by clock changes', () => {
    let after = anchor;
    for (let k = 1; k <= 20_000; k += 1) {
      after = rule.next(after, anchor)!;
      if (after.getTime() !== anchor.getTime() + k * 5_400_000)
        throw new Error(`${k}: ${after.toISOString()}`);
    }
  });

  it('has an end, and refuses what is no date', () => {
    expect(next(new Date(8.64e15))).toBeUndefined();
    expect(() => rule.next(new Date(Number.NaN), anchor)).toThrow(RangeError);
    expect(() => rule.next(anchor, new Date(Number.NaN))).toThrow(RangeError);
  });
});
