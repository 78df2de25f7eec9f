import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { PostgresScheduleStore } from '../../lib/store/postgres/postgres-schedule-store.js';
import { type ScheduleStore } from '../../lib/store/schedule-store.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { type Node } from '../engine/engine-fixture.js';
import { createStore } from '../support/store.js';
import { annotated, recurringFixture } from './recurring-fixture.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const QUICK_BEATS = { heartbeat: { baseMs: 300, graceMs: 1_500, stallMs: 300_000 } };

describe('recurring schedules in trouble', () => {
  const fixture = recurringFixture();
  const tick = annotated({
    id: 'tick',
    expression: '@every 1s',
    misfire: { catchUp: 1_000 },
    overlap: 'allow',
  });
  beforeEach(() => {
    fixture.runs.length = 0;
  });

  const times = (): number[] => fixture.runs.map(({ scheduledFor }) => scheduledFor.getTime());
  /** Each second once, from the first to the last. */
  function expectEachOnce(): void {
    const sorted = times().sort((a, b) => a - b);
    expect(sorted).toEqual(sorted.map((_, index) => sorted[0]! + index * SECOND_MS));
  }
  const node = (nodeId: string, options: Parameters<typeof fixture.node>[0] = {}): Promise<Node> =>
    fixture.node({ nodeId, handlers: { work: fixture.method() }, schedules: [tick], ...options });

  describe('the clock of a node', () => {
    const WITHOUT_DATE = [
      'hrtime',
      'nextTick',
      'performance',
      'queueMicrotask',
      'setImmediate',
      'clearImmediate',
      'setInterval',
      'clearInterval',
      'setTimeout',
      'clearTimeout',
    ] as const;

    it.each([
      ['an hour fast', HOUR_MS],
      ['an hour slow', -HOUR_MS],
    ])('that is %s changes nothing, nor does setting it right', async (_what, offsetMs) => {
      const real = Date.now();
      const since = performance.now();
      const reallyNow = (): number => Math.round(real + performance.now() - since);
      jest.useFakeTimers({ doNotFake: [...WITHOUT_DATE], now: real + offsetMs });
      try {
        const one = await node('wrong');
        await one.runtime.start();
        await fixture.ran(1);
        jest.setSystemTime(reallyNow() - offsetMs);
        await fixture.ran(3);
        await one.runtime.close();
      } finally {
        jest.useRealTimers();
      }
      expectEachOnce();
      expect(Math.abs(times()[0]! - real)).toBeLessThan(60_000);
    });
  });

  it('a node whose heartbeats are not acknowledged fires nothing, and goes on when they are', async () => {
    const one = await node('cut off', { settings: QUICK_BEATS });
    await one.runtime.start();
    await fixture.ran(1);
    const lost = one.events.next('lease', ({ held }) => !held);
    const restore = one.faults.failAll('unavailable');
    await lost;
    const quiet = one.events.next('lease', ({ held }) => held);
    let firedMeanwhile = 0;
    const off = one.events.on('schedule_fired', () => (firedMeanwhile += 1));
    await one.count('fault', 5, ({ where }) => where === 'heartbeat');
    expect(firedMeanwhile).toBe(0);
    off();
    restore();
    await quiet;
    await fixture.ran(times().length + 1);
    await one.runtime.close();
    expectEachOnce();
  });

  it('a node that others declared dead goes on firing under its next name', async () => {
    const one = await node('zombie', { settings: QUICK_BEATS });
    await one.runtime.start();
    await fixture.ran(1);
    const again = one.events.next('registered');
    await fixture.database.query('with gone as (delete from ratchet.node) delete from ratchet.bucket');
    await again;
    await fixture.ran(times().length + 1);
    await one.runtime.close();
    expectEachOnce();
  });

  it('an outage of the database heals: what passed is caught up on, with a line a second at most', async () => {
    const own = createStore(fixture.database.url);
    await own.open();
    let away: StoreError | undefined;
    const schedules = new Proxy<ScheduleStore>(new PostgresScheduleStore(own), {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]): unknown =>
          away ? Promise.reject(away) : (value as (...all: unknown[]) => unknown).apply(target, given);
      },
    });
    const one = await node('patient', { parts: { schedules } });
    await one.runtime.start();
    await fixture.ran(1);
    away = new StoreError('unavailable', 'STORE_FAULT: the server is starting up', '57P03');
    const since = performance.now();
    await one.count('fault', 6, ({ where }) => where === 'recurring schedules');
    const tookMs = performance.now() - since;
    const lines = fixture.logs.filter(({ line }) => / failed: .*the server is starting up/.test(line));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(Math.ceil(tookMs / 1_000));
    const recovered = one.events.next('recovered', ({ where }) => where === 'recurring schedules');
    away = undefined;
    await recovered;
    await fixture.ran(times().length + 1);
    await one.runtime.close();
    await own.close();
    expectEachOnce();
    // Those that were missed run too (catchUp), and the first of them says so to nobody: none was dropped.
    expect(fixture.runs.every(({ missed }) => missed === 0)).toBe(true);
  });
});
