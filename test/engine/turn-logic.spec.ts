import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SystemClock } from '../../lib/cluster/clock.js';
import { faultDelayMs } from '../../lib/engine/backoff-delay.js';
import { EngineFaults } from '../../lib/engine/engine-faults.js';
import { respondTo } from '../../lib/engine/fault-response.js';
import { LookTimes } from '../../lib/engine/look-times.js';
import { PASS_OVER_MS, PassOver } from '../../lib/engine/pass-over.js';
import { MOST_CLAIMS, planTurn, type TurnPlan } from '../../lib/engine/turn-plan.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { StoreError, type StoreFaultKind } from '../../lib/store/store-fault.js';
import { FakeClock } from '../support/fake-clock.js';

const KINDS: StoreFaultKind[] = [
  'rolled_back',
  'unknown',
  'unavailable',
  'missing_partition',
  'bad_row',
  'fatal',
];

describe('planTurn', () => {
  const idle = {
    fresh: 0,
    skipped: 0,
    skippedDue: true,
    progress: 0,
    look: false,
    ask: false,
    freeSlots: 10,
    claiming: true,
    buffered: 0,
    bufferSize: 0,
  };
  const claims = (count: number): TurnPlan => ({ want: count, beginNow: count, begin: 0 });
  const full = { ...idle, look: true, freeSlots: 0, buffered: 100, bufferSize: 100 };

  it('sleeps when nothing is to do, and when saturated', () => {
    expect(planTurn(idle)).toBeUndefined();
    expect(planTurn({ ...idle, look: true, freeSlots: 0 })).toBeUndefined();
    expect(planTurn({ ...idle, look: true, claiming: false })).toBeUndefined();
  });

  it('settles at once, and claims by the way what fits', () => {
    expect(planTurn({ ...idle, fresh: 1 })).toEqual(claims(10));
    expect(planTurn({ ...idle, fresh: 1, freeSlots: 0 })).toEqual(claims(0));
    expect(planTurn({ ...idle, fresh: 1, claiming: false })).toEqual(claims(0));
    expect(planTurn({ ...idle, progress: 1 })).toEqual(claims(10));
    expect(planTurn({ ...idle, look: true })).toEqual(claims(10));
  });

  it('claims a bounded number at once, however many slots are free', () => {
    expect(planTurn({ ...idle, look: true, freeSlots: 10_000 })).toEqual(claims(MOST_CLAIMS));
  });

  it('does not spin for what was skipped', () => {
    expect(planTurn({ ...idle, skipped: 1, skippedDue: false })).toBeUndefined();
    expect(planTurn({ ...idle, skipped: 1 })).toEqual(claims(10));
  });

  it('begins what was claimed ahead before it claims for the slots that are left, and for the buffer', () => {
    const some = { ...idle, look: true, buffered: 4, bufferSize: 100 };
    expect(planTurn({ ...some, look: false })).toEqual({ want: 6, beginNow: 6, begin: 4 });
    expect(planTurn(some)).toEqual({ want: 106, beginNow: 6, begin: 4 });
  });

  it('sleeps with full slots and a full buffer, and begins without a claim when slots come free', () => {
    expect(planTurn(full)).toBeUndefined();
    expect(planTurn({ ...full, freeSlots: 3 })).toEqual({ want: 0, beginNow: 0, begin: 3 });
    expect(planTurn({ ...full, freeSlots: 3, look: false })).toEqual({ want: 0, beginNow: 0, begin: 3 });
    expect(planTurn({ ...full, freeSlots: 3, claiming: false })).toBeUndefined();
  });

  it('fills the buffer when it is half empty and a slot comes free', () => {
    expect(planTurn({ ...full, buffered: 51, freeSlots: 1 })).toEqual({ want: 0, beginNow: 0, begin: 1 });
    expect(planTurn({ ...full, buffered: 50 })).toBeUndefined();
    expect(planTurn({ ...full, buffered: 50, freeSlots: 1, look: false })).toEqual({
      want: 0,
      beginNow: 0,
      begin: 1,
    });
  });

  it('makes a turn with nothing in it to hear of a pause or a drain', () => {
    expect(planTurn({ ...full, ask: true })).toEqual({ want: 0, beginNow: 0, begin: 0 });
  });

  it('keeps a slot for the first job of such a claim: one that may be a poison pill never waits in a buffer', () => {
    expect(planTurn({ ...full, buffered: 50, freeSlots: 8 })).toEqual({ want: 58, beginNow: 1, begin: 7 });
    expect(planTurn({ ...full, buffered: 50, freeSlots: 1 })).toEqual({ want: 51, beginNow: 1, begin: 0 });
  });

  it('works off a buffer that it may not have any more', () => {
    expect(planTurn({ ...full, bufferSize: 0, freeSlots: 8 })).toEqual({ want: 0, beginNow: 0, begin: 8 });
    expect(planTurn({ ...full, bufferSize: 0, freeSlots: 120 })).toEqual({
      want: 20,
      beginNow: 20,
      begin: 100,
    });
  });
});

describe('LookTimes', () => {
  it('looks when something is due', () => {
    const times = new LookTimes();
    expect(times.nextInMs(0)).toBe(Infinity);
    times.cameShort(0, 300);
    expect(times.nextInMs(0)).toBe(301);
    times.dueIn(0, 100);
    expect(times.nextInMs(0)).toBe(100);
  });

  it('keeps what it was told while a claim was under way, whose answer cannot know it', () => {
    const times = new LookTimes();
    times.dueIn(0, 50);
    times.looking();
    times.dueIn(0, 300);
    times.cameShort(100, undefined);
    expect(times.nextInMs(100)).toBe(200);
    times.looking();
    times.cameShort(400, undefined);
    expect(times.nextInMs(400)).toBe(Infinity);
  });
});

describe('faults', () => {
  it('always come with a wait that ends below five seconds', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (failures, random) => {
          const delayMs = faultDelayMs(failures, () => random);
          expect(delayMs).toBeGreaterThanOrEqual(50);
          expect(delayMs).toBeLessThan(4_000);
        },
      ),
    );
  });

  it('reconcile after an unknown commit and never else; none is retried for ever without a pause', () => {
    for (const kind of KINDS) {
      expect(respondTo(kind, 1).reconcile).toBe(kind === 'unknown');
      expect(respondTo(kind, 1_000).delayMs).toBeGreaterThan(0);
    }
    expect(respondTo('missing_partition', 1)).toMatchObject({ mend: 'partitions', delayMs: 0 });
    expect(respondTo('rolled_back', 3).delayMs).toBe(0);
  });

  it('are one line a second for the whole node, with a count of the rest, and one when it works again', () => {
    const clock = new FakeClock();
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    const faults = new EngineFaults(clock, { log: say, warn: say, error: say }, new EngineEvents());
    const away = new StoreError('unavailable', 'no route', undefined);
    for (let at = 0; at < 2_500; at += 10) {
      faults.failed('exchange', away, 100, 'bucket-a');
      faults.failed('exchange', away, 100, 'bucket-b');
      clock.advance(10);
    }
    expect(lines).toHaveLength(3);
    expect(lines[1]).toMatch(/199 more not shown/);
    faults.worked('exchange', 'bucket-a');
    expect(lines).toHaveLength(3);
    faults.worked('exchange', 'bucket-b');
    expect(lines[3]).toMatch(/works again/);
  });
});

describe('PassOver', () => {
  const stream = {
    priority: 2,
    foreign: 300,
    names: ['other'],
    own: false,
    resumeAt: 'p9',
    hidden: 40,
  } as const;

  it('holds for a while, goes along with the claims, and is cleared by what comes behind', () => {
    const over = new PassOver();
    expect(over.wantsLook(0)).toBe(true);
    over.beginLook(0);
    expect(over.wantsLook(10)).toBe(false);
    expect(over.looked([stream], 10, 5)).toBe(true);
    expect(over.hidden).toBe(40);
    expect(over.places(20)).toEqual({ 2: 'p9' });
    over.claimed({ 1: 'q1', 2: 'q2' });
    expect(over.places(20)).toEqual({ 2: 'q2' });
    expect(over.places(10 + PASS_OVER_MS)).toEqual({});
    expect(over.hidden).toBe(0);
    over.looked([stream], 0, 5);
    expect(over.places(1)).toEqual({ 2: 'p9' });
    over.clear();
    expect(over.places(1)).toEqual({});
    expect(over.wantsLook(1)).toBe(true);
  });

  it('looks again soon while ours stand scattered among theirs, for a twentieth of the time at most', () => {
    const over = new PassOver();
    over.looked([{ ...stream, own: true }], 0, 50);
    expect(over.wantsLook(999)).toBe(false);
    expect(over.wantsLook(1000)).toBe(true);
    over.looked([{ ...stream, own: false }], 0, 50);
    expect(over.wantsLook(PASS_OVER_MS - 1)).toBe(false);
  });
});

describe('Clock', () => {
  it('carries timers beyond the longest timeout of Node', () => {
    const cancel = new SystemClock().timer(2 ** 31 + 5_000, () => {
      throw new Error('rang at once');
    });
    return new Promise<void>((resolve) => setImmediate(resolve)).finally(cancel);
  });
});
