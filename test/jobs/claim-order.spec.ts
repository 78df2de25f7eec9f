import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { claimOrder, MAX_BOOSTS } from '../../lib/jobs/claim-order.js';
import { type PriorityRank } from '../../lib/jobs/priority.js';

const ranks = fc.constantFrom<PriorityRank>(0, 1, 2, 3, 4);
const overdue = fc.integer({ min: -1e12, max: 1e12 });
const boosts = fc.integer({ min: 1, max: 1e9 });

describe('claimOrder', () => {
  it('lifts by one level for each whole interval', () => {
    const quarter = 900_000;
    expect([0, quarter - 1, quarter, 5 * quarter].map((ms) => claimOrder(0, ms, quarter))).toEqual([
      0, 0, 1, 5,
    ]);
  });

  it('lets the lowest overtake a fresh critical job after five intervals', () => {
    expect(claimOrder(0, 5 * 1_000, 1_000)).toBeGreaterThan(claimOrder(4, 0, 1_000));
    expect(claimOrder(0, 4 * 1_000, 1_000)).toBe(claimOrder(4, 0, 1_000));
  });

  it('is the priority alone without a boost, or before the job is due', () => {
    fc.assert(
      fc.property(ranks, overdue, boosts, (rank, ms, boost) => {
        expect(claimOrder(rank, ms, 0)).toBe(rank);
        expect(claimOrder(rank, -Math.abs(ms), boost)).toBe(rank);
      }),
    );
  });

  it('never sinks with age, and rises by at most the cap', () => {
    fc.assert(
      fc.property(ranks, overdue, fc.nat(1e9), boosts, (rank, ms, more, boost) => {
        const level = claimOrder(rank, ms, boost);
        expect(claimOrder(rank, ms + more, boost)).toBeGreaterThanOrEqual(level);
        expect(level).toBeGreaterThanOrEqual(rank);
        expect(level).toBeLessThanOrEqual(rank + MAX_BOOSTS);
      }),
    );
  });
});
