import { describe, expect, it } from '@jest/globals';
import { preview } from '../../../lib/recurring/time/preview.js';
import { parseRule } from '../../../lib/recurring/time/recurrence-rule.js';

const from = new Date('2026-01-31T00:00:00Z');
const anchor = from;
const rule = parseRule('0 0 31 * *', 'UTC', { hashSeed: 'test' });

describe('preview', () => {
  it('gives the occurrences after a date', () => {
    expect(preview(rule, { from, count: 2, anchor })).toEqual([
      new Date('2026-03-31T00:00:00Z'),
      new Date('2026-05-31T00:00:00Z'),
    ]);
    expect(preview(rule, { from, count: 1_000, anchor })).toHaveLength(1_000);
  });

  it('gives fewer when there are no more', () => {
    expect(preview(rule, { from: new Date('9999-11-01T00:00:00Z'), count: 5, anchor })).toHaveLength(1);
  });

  it.each([0, -1, 1.5, 1_001, Number.NaN, Infinity])('refuses a count of %d', (count) => {
    expect(() => preview(rule, { from, count, anchor })).toThrow('allowed: a whole number from 1 to 1000');
  });
});
