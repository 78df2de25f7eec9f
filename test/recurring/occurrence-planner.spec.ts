import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Misfire, type Overlap } from '../../lib/jobs/recurrence.js';
import { jitterOf } from '../../lib/recurring/jitter.js';
import {
  type DueTimes,
  MISFIRE_AFTER_MS,
  occurrencesToKeep,
  planFiring,
} from '../../lib/recurring/occurrence-planner.js';
import { type DueSchedule, type Firing } from '../../lib/store/schedule-store.js';
import { scheduleSpec } from './schedule-fixture.js';

const HOUR_MS = 3_600_000;
const DAY = Date.UTC(2030, 5, 1);
/** `hour(1.5)` is half past one. */
const hour = (n: number): Date => new Date(DAY + n * HOUR_MS);

function dueSchedule(overrides: Partial<DueSchedule>): DueSchedule {
  return {
    ...scheduleSpec({ id: 'report' }),
    revision: '7',
    anchor: new Date(DAY),
    nextAt: hour(1),
    lastAt: undefined,
    untold: 0,
    ...overrides,
  };
}

/** What is due of a schedule for every so many milliseconds. */
function dueTimes({ nextAt, misfire }: DueSchedule, everyMs: number, now: Date): DueTimes {
  const count = Math.floor((now.getTime() - nextAt.getTime()) / everyMs) + 1;
  const at = (index: number): Date => new Date(nextAt.getTime() + index * everyMs);
  const kept = Math.min(count, occurrencesToKeep(misfire));
  const newest = Array.from({ length: kept }, (_, index) => at(count - kept + index));
  return { first: nextAt, count, newest, next: at(count) };
}

function plan(overrides: Partial<DueSchedule>, now: Date, everyMs = HOUR_MS, upMs = 0): Firing {
  const schedule = dueSchedule(overrides);
  let jobs = 0;
  return planFiring(schedule, dueTimes(schedule, everyMs, now), now, () => `job-${(jobs += 1)}`, upMs);
}

const hoursOf = (times: readonly Date[]): number[] => times.map((at) => (at.getTime() - DAY) / HOUR_MS);
const runHours = ({ runs }: Firing): number[] => hoursOf(runs.map(({ at }) => at));
const missedHours = ({ missed }: Firing): number[] => hoursOf(missed.map(({ from }) => from));

describe('occurrences of a node that was there', () => {
  const second = (n: number): Date => new Date(hour(1).getTime() + n * 1_000);
  const seconds = ({ runs }: Firing): number[] =>
    runs.map(({ at }) => (at.getTime() - hour(1).getTime()) / 1_000);

  it('are on time up to ten seconds late, whatever the policy, and wait for each other', () => {
    for (const misfire of ['skip', 'once', { catchUp: 5 }] as const) {
      const firing = plan({ misfire, nextAt: second(0) }, second(3), 1_000, 60_000);
      expect(seconds(firing)).toEqual([0, 1, 2, 3]);
      expect(firing.runs.map(({ ifBusy }) => ifBusy)).toEqual(['follow', 'follow', 'follow', 'follow']);
      expect(firing.missed).toEqual([]);
    }
  });

  it('are missed when it came only after them', () => {
    const firing = plan({ misfire: 'skip', nextAt: second(0) }, second(5), 1_000, 1_500);
    expect(seconds(firing)).toEqual([4, 5]);
    expect(firing.missed).toHaveLength(4);
    expect(firing.runs[0]).toMatchObject({ missed: 4 });
  });

  it('are missed beyond ten seconds, however long it has been there', () => {
    const firing = plan({ misfire: 'once', nextAt: second(0) }, second(30), 1_000, 3_600_000);
    expect(seconds(firing)).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
    expect(firing.runs[0]).toMatchObject({ missed: 20 });
  });
});

describe('the plan of what is due', () => {
  it('one occurrence on time runs, and the schedule is due next at the next one', () => {
    expect(plan({}, new Date(hour(1).getTime() + 4))).toEqual({
      id: 'report',
      revision: '7',
      nextAt: hour(1),
      advanceTo: hour(2),
      runs: [{ at: hour(1), jobId: 'job-1', delayMs: 0, missed: 0, ifBusy: 'skip' }],
      missed: [],
    });
  });

  it('is on time for ten seconds, the last millisecond included', () => {
    const at = (ms: number): Date => new Date(hour(1).getTime() + ms);
    expect(runHours(plan({ misfire: 'skip' }, at(MISFIRE_AFTER_MS)))).toEqual([1]);
    expect(runHours(plan({ misfire: 'skip' }, at(MISFIRE_AFTER_MS + 1)))).toEqual([]);
  });

  describe('after an outage from 0:30 to 3:30 over an hourly schedule', () => {
    const now = hour(3.5);

    it('misfire skip: none runs, all three are recorded', () => {
      const firing = plan({ misfire: 'skip' }, now);
      expect([runHours(firing), missedHours(firing)]).toEqual([[], [1, 2, 3]]);
      expect(firing.advanceTo).toEqual(hour(4));
    });

    it('misfire once: the newest stands for all, and is told of the two others', () => {
      const firing = plan({ misfire: 'once' }, now);
      expect(firing.runs).toMatchObject([{ at: hour(3), missed: 2 }]);
      expect(missedHours(firing)).toEqual([1, 2]);
    });

    it.each([
      [1, [3], [1, 2]],
      [2, [2, 3], [1]],
      [3, [1, 2, 3], []],
      [1_000, [1, 2, 3], []],
    ])('misfire catchUp %i: runs %j, oldest first, and the first is told of the rest', (n, runs, missed) => {
      const firing = plan({ misfire: { catchUp: n } }, now);
      expect([runHours(firing), missedHours(firing)]).toEqual([runs, missed]);
      expect(firing.runs.map((run) => run.missed)).toEqual(
        runs.map((_, index) => (index === 0 ? missed.length : 0)),
      );
    });
  });

  describe('after an outage from 0:30 to 3:00:05, so that the last is on time', () => {
    const now = new Date(hour(3).getTime() + 5_000);

    it('misfire skip: that one runs, and is told of the two others', () => {
      const firing = plan({ misfire: 'skip' }, now);
      expect(firing.runs).toMatchObject([{ at: hour(3), missed: 2 }]);
      expect(missedHours(firing)).toEqual([1, 2]);
    });

    it('misfire once: that one stands for all', () => {
      const firing = plan({ misfire: 'once' }, now);
      expect(firing.runs).toMatchObject([{ at: hour(3), missed: 2 }]);
      expect(missedHours(firing)).toEqual([1, 2]);
    });

    it('misfire catchUp: it does not count as one of those', () => {
      const firing = plan({ misfire: { catchUp: 1 } }, now);
      expect([runHours(firing), missedHours(firing)]).toEqual([[2, 3], [1]]);
      expect(firing.runs.map(({ missed }) => missed)).toEqual([1, 0]);
    });
  });

  it('those that were missed before, and of which no run was told, are told to the first run', () => {
    expect(plan({ misfire: 'skip', untold: 3 }, hour(1)).runs).toMatchObject([{ missed: 3 }]);
    expect(plan({ misfire: 'once', untold: 3 }, hour(3.5)).runs).toMatchObject([{ missed: 5 }]);
    expect(plan({ misfire: { catchUp: 2 }, untold: 3 }, hour(3.5)).runs).toMatchObject([
      { missed: 4 },
      { missed: 0 },
    ]);
  });

  it.each<[Overlap, Misfire, string[]]>([
    ['skip', 'once', ['skip']],
    ['queue', 'once', ['wait']],
    ['allow', 'once', ['run']],
    ['skip', { catchUp: 2 }, ['wait', 'wait', 'wait']],
    ['queue', { catchUp: 2 }, ['wait', 'wait', 'wait']],
    ['allow', { catchUp: 2 }, ['run', 'run', 'run']],
  ])('overlap %s with misfire %j', (overlap, misfire, ifBusy) => {
    const { runs } = plan({ overlap, misfire }, hour(3));
    expect(runs.map((run) => run.ifBusy)).toEqual(ifBusy);
  });

  it('with catchUp and nothing missed, overlap skip is what it is without', () => {
    expect(plan({ overlap: 'skip', misfire: { catchUp: 2 } }, hour(1)).runs).toMatchObject([
      { ifBusy: 'skip' },
    ]);
  });

  it('of many missed ones the newest fifty are recorded one by one, the others as one range', () => {
    const firing = plan({ misfire: 'skip' }, hour(1_000.5));
    expect(firing.missed).toHaveLength(51);
    expect(firing.missed[0]).toEqual({ from: hour(1), to: hour(950), count: 950 });
    expect(missedHours(firing).slice(1)).toEqual(Array.from({ length: 50 }, (_, index) => 951 + index));
    expect(plan({ misfire: 'skip' }, hour(50.5)).missed).toHaveLength(50);
    expect(plan({ misfire: 'skip' }, hour(51.5)).missed[0]).toEqual({ from: hour(1), to: hour(1), count: 1 });
  });

  it('a rule that has come to its end is not due again', () => {
    const schedule = dueSchedule({});
    const due: DueTimes = { first: hour(1), count: 1, newest: [hour(1)], next: undefined };
    expect(planFiring(schedule, due, hour(1), () => 'job', 0).advanceTo).toBeUndefined();
  });

  it('a time that the rule no longer has only moves it on', () => {
    const due: DueTimes = { first: undefined, count: 0, newest: [], next: hour(5) };
    expect(planFiring(dueSchedule({ untold: 2 }), due, hour(1), () => 'job', 0)).toMatchObject({
      advanceTo: hour(5),
      runs: [],
      missed: [],
    });
  });

  it('holds for any outage: each due occurrence runs or is recorded, once, in order, and the counts are exact', () => {
    const misfires = fc.oneof<fc.Arbitrary<Misfire>[]>(
      fc.constant('skip'),
      fc.constant('once'),
      fc.integer({ min: 1, max: 1_000 }).map((catchUp) => ({ catchUp })),
    );
    fc.assert(
      fc.property(
        misfires,
        fc.constantFrom<Overlap>('skip', 'queue', 'allow'),
        fc.integer({ min: 1_000, max: 7_200_000 }),
        fc.integer({ min: 0, max: 5_000_000 }),
        fc.integer({ min: 0, max: 4 }),
        (misfire, overlap, everyMs, outage, untold) => {
          // Up to some thousands of occurrences.
          const now = new Date(hour(1).getTime() + Math.floor((outage / 1_000) * everyMs));
          const firing = plan({ misfire, overlap, untold }, now, everyMs);
          const count = Math.floor((now.getTime() - hour(1).getTime()) / everyMs) + 1;
          const newestAt = hour(1).getTime() + (count - 1) * everyMs;
          const onTime = now.getTime() - newestAt <= MISFIRE_AFTER_MS ? 1 : 0;
          const most = misfire === 'skip' ? 0 : misfire === 'once' ? 1 - onTime : misfire.catchUp;
          const lateRuns = Math.min(most, count - onTime);
          expect(firing.runs).toHaveLength(lateRuns + onTime);
          const recorded = firing.missed.reduce((sum, range) => sum + range.count, 0);
          expect(recorded + firing.runs.length).toBe(count);
          expect(firing.missed.length).toBeLessThanOrEqual(51);
          expect(firing.runs.reduce((sum, run) => sum + run.missed, 0)).toBe(
            firing.runs.length > 0 ? untold + recorded : 0,
          );
          // Without a gap: each begins where the one before has ended.
          let at = hour(1).getTime();
          for (const range of firing.missed) {
            expect(range.from.getTime()).toBe(at);
            expect(range.to.getTime() - range.from.getTime()).toBe((range.count - 1) * everyMs);
            at = range.to.getTime() + everyMs;
          }
          for (const run of firing.runs) {
            expect(run.at.getTime()).toBe(at);
            at += everyMs;
          }
          expect(firing.advanceTo?.getTime()).toBe(at);
          expect(at).toBeGreaterThan(now.getTime());
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('jitter', () => {
  it('is within its bounds, both included, and the same for the same occurrence', () => {
    fc.assert(
      fc.property(fc.string(), fc.date({ noInvalidDate: true }), fc.nat(86_400_000), (id, at, most) => {
        const delay = jitterOf(id, at, most);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(most);
        expect(Number.isInteger(delay)).toBe(true);
        expect(jitterOf(id, new Date(at), most)).toBe(delay);
      }),
      { numRuns: 200 },
    );
    expect(new Set(Array.from({ length: 100 }, (_, n) => jitterOf('a', hour(n), 1)))).toEqual(
      new Set([0, 1]),
    );
  });

  it('spreads: of a thousand schedules at one time, and of a thousand times of one schedule, no tenth is empty or full', () => {
    const tenths = (delays: number[]): number[] =>
      delays.reduce<number[]>(
        (counts, delay) => {
          const tenth = Math.floor(delay / 100);
          counts[tenth] = (counts[tenth] ?? 0) + 1;
          return counts;
        },
        Array.from({ length: 10 }, () => 0),
      );
    const some = Array.from({ length: 1_000 }, (_, n) => n);
    for (const counts of [
      tenths(some.map((n) => jitterOf(`schedule-${n}`, hour(0), 999))),
      tenths(some.map((n) => jitterOf('schedule', hour(n), 999))),
    ]) {
      expect(Math.min(...counts)).toBeGreaterThan(60);
      expect(Math.max(...counts)).toBeLessThan(140);
    }
  });
});
