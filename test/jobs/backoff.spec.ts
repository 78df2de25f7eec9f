import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  DEFAULT_BACKOFF,
  isSettingFault,
  nextBackoffMs,
  resolveBackoff,
  type ResolvedBackoff,
} from '../../lib/jobs/backoff.js';

const backoffs = fc
  .record({
    type: fc.constantFrom('none', 'fixed', 'exponential'),
    delayMs: fc.integer({ min: 0, max: 1e9 }),
    extraMs: fc.integer({ min: 0, max: 1e12 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ type, delayMs, extraMs, jitter }): ResolvedBackoff => ({
    type: type,
    delayMs,
    maxDelayMs: delayMs + extraMs,
    jitter,
  }));
const failures = fc.integer({ min: 1, max: 1_000_000 });
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('nextBackoffMs', () => {
  it('is a whole number between nothing and the cap', () => {
    fc.assert(
      fc.property(backoffs, failures, random, (backoff, count, chance) => {
        const ms = nextBackoffMs(backoff, count, chance);
        expect(Number.isInteger(ms)).toBe(true);
        expect(ms).toBeGreaterThanOrEqual(0);
        expect(ms).toBeLessThanOrEqual(backoff.maxDelayMs);
      }),
    );
  });

  it('never falls with more failures when there is no jitter', () => {
    fc.assert(
      fc.property(backoffs, failures, (backoff, count) => {
        const still = { ...backoff, jitter: 0 };
        expect(nextBackoffMs(still, count + 1)).toBeGreaterThanOrEqual(nextBackoffMs(still, count));
      }),
    );
  });

  it('strays from the wait by no more than the jitter', () => {
    fc.assert(
      fc.property(backoffs, failures, random, (backoff, count, chance) => {
        const wait = nextBackoffMs({ ...backoff, jitter: 0 }, count);
        const off = Math.abs(nextBackoffMs(backoff, count, chance) - wait);
        expect(off).toBeLessThanOrEqual(wait * backoff.jitter + 1);
      }),
    );
  });

  it('doubles, repeats, or does not wait', () => {
    const backoff = { delayMs: 1_000, maxDelayMs: 5_000, jitter: 0 };
    const waits = (type: ResolvedBackoff['type']): number[] =>
      [1, 2, 3, 4, 5].map((n) => nextBackoffMs({ ...backoff, type }, n));
    expect(waits('exponential')).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
    expect(waits('fixed')).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
    expect(waits('none')).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('resolveBackoff', () => {
  it('fills in the defaults', () => {
    expect(resolveBackoff({})).toEqual(DEFAULT_BACKOFF);
    expect(resolveBackoff({ type: 'fixed', delay: '10s' })).toEqual({
      type: 'fixed',
      delayMs: 10_000,
      maxDelayMs: 3_600_000,
      jitter: 0.2,
    });
  });

  it('does not cap a delay that is longer than the default cap', () => {
    expect(resolveBackoff({ delay: '2h' })).toMatchObject({ delayMs: 7_200_000, maxDelayMs: 7_200_000 });
  });

  it.each([
    [null, 'backoff'],
    [[], 'backoff'],
    ['fixed', 'backoff'],
    [{ type: 'linear' }, 'backoff.type'],
    [{ delay: '10sec' }, 'backoff.delay'],
    [{ delay: -1 }, 'backoff.delay'],
    [{ delay: Number.NaN }, 'backoff.delay'],
    [{ maxDelay: 'never' }, 'backoff.maxDelay'],
    [{ delay: '2s', maxDelay: '1s' }, 'backoff.maxDelay'],
    [{ jitter: 1.5 }, 'backoff.jitter'],
    [{ jitter: Number.NaN }, 'backoff.jitter'],
    [{ factor: 2 }, 'backoff.factor'],
  ])('refuses %j and says where', (value, key) => {
    const fault = resolveBackoff(value);
    expect(isSettingFault(fault) && fault.key).toBe(key);
  });
});
