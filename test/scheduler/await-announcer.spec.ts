import { describe, expect, it } from '@jest/globals';
import { AwaitAnnouncer } from '../../lib/scheduler/results/await-announcer.js';
import { FakeClock } from '../support/fake-clock.js';

function setUp() {
  const clock = new FakeClock();
  const told: string[] = [];
  const announcer = new AwaitAnnouncer(clock, {
    signal: (signal) => void told.push(`${signal.kind} ${'jobId' in signal ? signal.jobId : signal.lane}`),
  });
  const add = (count: number): void => {
    for (let n = 0; n < count; n += 1) announcer.add(`j${n}`);
  };
  return { clock, told, announcer, add };
}

describe('telling the cluster what is awaited', () => {
  it('comes once for each job, after 200 ms', () => {
    const { clock, told, announcer } = setUp();
    announcer.add('a');
    clock.advance(100);
    announcer.add('b');
    announcer.add('a');
    clock.advance(99);
    expect(told).toEqual([]);
    clock.advance(1);
    expect(told).toEqual(['awaited a']);
    clock.advance(100);
    announcer.add('a');
    clock.advance(10_000);
    expect(told).toEqual(['awaited a', 'awaited b']);
    expect(clock.pending).toBe(0);
  });

  it('does not come for what ends sooner', () => {
    const { clock, told, announcer } = setUp();
    announcer.add('a');
    announcer.remove('a');
    announcer.add('b');
    announcer.clear();
    expect(clock.pending).toBe(0);
    clock.advance(10_000);
    expect(told).toEqual([]);
  });

  it('does not come while more than a hundred are awaited, and then for those that are left', () => {
    const { clock, told, announcer, add } = setUp();
    add(10_000);
    expect(clock.pending).toBe(0);
    clock.advance(60_000);
    expect(told).toEqual([]);
    for (let n = 100; n < 10_000; n += 1) announcer.remove(`j${n}`);
    clock.advance(0);
    expect(told).toHaveLength(100);
    announcer.add('more');
    clock.advance(60_000);
    expect(told).toHaveLength(100);
  });
});
