import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { durationMs, MAX_DURATION_MS } from '../../lib/jobs/duration.js';

describe('durationMs', () => {
  it.each([
    [0, 0],
    [1_500, 1_500],
    ['500ms', 500],
    ['1.5s', 1_500],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
  ])('reads %p', (value, ms) => {
    expect(durationMs(value)).toBe(ms);
  });

  it.each([
    -1,
    Number.NaN,
    Infinity,
    '',
    '5',
    '5 s',
    '5S',
    '-5s',
    '1e3s',
    '5w',
    'abc',
    null,
    undefined,
    {},
    [5],
    true,
    '99999999d',
  ])('refuses %p', (value) => {
    expect(durationMs(value)).toBeUndefined();
  });

  it('answers with whole milliseconds within a hundred years, or not at all', () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.double(), fc.string()), (value) => {
        const ms = durationMs(value);
        expect(ms === undefined || (Number.isInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS)).toBe(true);
      }),
    );
  });
});
