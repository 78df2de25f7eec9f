import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type PollSettings, type PollSituation, PollPace, paceOf } from '../../lib/engine/poll-pace.js';

const DEFAULT: PollSettings = {
  burstMs: 500,
  minMs: 2_000,
  maxMs: 10_000,
  deepIdleMs: 60_000,
  deepIdleAfterMs: 300_000,
};
const FREE: PollSituation = { claiming: true, freeSlots: 1, wakeupsExpected: true };

const anySettings: fc.Arbitrary<PollSettings> = fc
  .tuple(
    fc.array(fc.integer({ min: 20, max: 100_000 }), { minLength: 4, maxLength: 4 }),
    fc.integer({ min: 1_000, max: 1_000_000 }),
  )
  .map(([waits, deepIdleAfterMs]) => {
    const [burstMs = 0, minMs = 0, maxMs = 0, deepIdleMs = 0] = waits.sort((a, b) => a - b);
    return { burstMs, minMs, maxMs, deepIdleMs, deepIdleAfterMs };
  });
const anyQuiet = fc.integer({ min: 0, max: 2_000_000 });

/** Looks that find nothing, each when it is due: what was waited before each. */
function idleWaits(pace: PollPace, fromMs: number, looks: number, situation = FREE): number[] {
  let nowMs = fromMs;
  return Array.from({ length: looks }, () => {
    const waitMs = pace.nextInMs(nowMs, situation) as number;
    nowMs += waitMs;
    pace.looked(nowMs, false);
    return Math.round(waitMs);
  });
}

describe('paceOf', () => {
  it('never waits longer than the bound of its state', () => {
    fc.assert(
      fc.property(anySettings, anyQuiet, fc.boolean(), (settings, quietMs, wakeups) => {
        const { state, waitMs = Infinity } = paceOf(settings, quietMs, wakeups);
        const [least, most] = {
          burst: [settings.burstMs, settings.burstMs],
          idle: [settings.minMs, settings.maxMs],
          deep_idle: [settings.maxMs, settings.deepIdleMs],
        }[state as 'burst' | 'idle' | 'deep_idle'];
        expect(waitMs).toBeGreaterThanOrEqual(least as number);
        expect(waitMs).toBeLessThanOrEqual(most as number);
        expect(state === 'deep_idle').toBe(quietMs >= settings.deepIdleAfterMs && wakeups);
      }),
    );
  });

  it('waits no shorter the longer it is quiet', () => {
    fc.assert(
      fc.property(anySettings, anyQuiet, anyQuiet, fc.boolean(), (settings, one, other, wakeups) => {
        const wait = (quietMs: number): number => paceOf(settings, quietMs, wakeups).waitMs as number;
        expect(wait(Math.min(one, other))).toBeLessThanOrEqual(wait(Math.max(one, other)));
      }),
    );
  });
});

describe('PollPace', () => {
  it('looks at once, then goes from burst to idle to deep idle', () => {
    const pace = new PollPace(DEFAULT, () => 0);
    expect(pace.nextInMs(0, FREE)).toBe(0);
    pace.looked(0, false);
    expect(idleWaits(pace, 0, 45)).toEqual([
      ...[500, 500, 500, 2_000, 3_500, 7_000],
      ...Array<number>(30).fill(10_000),
      ...[14_000, 28_000, 56_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000],
    ]);
    expect(pace.now(FREE)).toEqual({ state: 'deep_idle', waitMs: 60_000 });
  });

  it('is not in deep idle while no wakeup can be expected, from the moment that it knows', () => {
    const pace = new PollPace(DEFAULT, () => 0);
    pace.looked(0, false);
    pace.looked(1_000_000, false);
    expect(pace.nextInMs(1_000_000, FREE)).toBe(60_000);
    expect(pace.nextInMs(1_004_000, { ...FREE, wakeupsExpected: false })).toBe(6_000);
    expect(pace.nextInMs(1_020_000, { ...FREE, wakeupsExpected: false })).toBe(0);
  });

  it('is back to burst with a sign of work and with a find, however long it was quiet', () => {
    fc.assert(
      fc.property(
        anySettings,
        anyQuiet,
        fc.boolean(),
        fc.boolean(),
        (settings, quietMs, found, wakeupsExpected) => {
          const pace = new PollPace(settings);
          pace.looked(0, false);
          pace.looked(quietMs, false);
          if (found) pace.looked(quietMs + 1, true);
          else pace.sign();
          expect(pace.now({ ...FREE, wakeupsExpected }).state).toBe('burst');
          expect(pace.nextInMs(quietMs + 1, FREE)).toBeLessThanOrEqual(settings.burstMs);
        },
      ),
    );
  });

  it('does not take saturation for idleness', () => {
    fc.assert(
      fc.property(anySettings, anyQuiet, (settings, fullMs) => {
        const pace = new PollPace(settings);
        pace.looked(0, true);
        const full = { ...FREE, freeSlots: 0 };
        expect(pace.now(full)).toEqual({ state: 'saturated', waitMs: undefined });
        pace.looked(fullMs, false);
        expect(pace.nextInMs(fullMs, full)).toBeUndefined();
        expect(pace.now(FREE)).toEqual({ state: 'burst', waitMs: settings.burstMs });
      }),
    );
  });

  it('does not look while it may not claim', () => {
    const pace = new PollPace(DEFAULT);
    expect(pace.nextInMs(0, { ...FREE, claiming: false })).toBeUndefined();
    expect(pace.now({ ...FREE, claiming: false }).state).toBe('held');
  });

  it('takes up to a tenth off each wait, so that nodes that were woken together do not look together', () => {
    fc.assert(
      fc.property(
        anySettings,
        anyQuiet,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (settings, quietMs, random) => {
          const pace = new PollPace(settings, () => random);
          pace.looked(0, true);
          pace.looked(quietMs, false);
          const { waitMs = 0 } = pace.now(FREE);
          expect(pace.nextInMs(quietMs, FREE)).toBeCloseTo(waitMs * (1 - random / 10), 3);
        },
      ),
    );
    const steps = [0, 0.5, 1].map((random) => {
      const pace = new PollPace(DEFAULT, () => random);
      pace.looked(0, true);
      return idleWaits(pace, 0, 20).reduce((sum, ms) => sum + ms, 0);
    });
    expect(new Set(steps).size).toBe(3);
  });
});
