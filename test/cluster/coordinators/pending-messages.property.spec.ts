import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type CoordinatorMessage } from '../../../lib/cluster/coordinators/coordinator-message.js';
import { PendingMessages } from '../../../lib/cluster/coordinators/pending-messages.js';
import { type PriorityRank } from '../../../lib/jobs/priority.js';

type WakeupMessage = Extract<CoordinatorMessage, { kind: 'wakeup' }>;

const wakeup = fc.record(
  {
    kind: fc.constant('wakeup' as const),
    lane: fc.constantFrom('a', 'b', 'c'),
    priority: fc.constantFrom<PriorityRank>(0, 1, 2, 3, 4),
    source: fc.constant('node'),
    dueInMs: fc.integer({ min: 1, max: 10_000 }),
    behind: fc.constant(true),
  },
  { requiredKeys: ['kind', 'lane', 'priority', 'source'] },
);

const signalFor = (n: number): CoordinatorMessage => ({ kind: 'cancel', source: 'node', jobId: `j${n}` });
const wakeupOf = (lane: string): CoordinatorMessage => ({
  kind: 'wakeup',
  lane,
  priority: 2,
  source: 'node',
});

describe('PendingMessages', () => {
  it('keeps one wakeup a lane: the highest priority, the earliest time, behind if one was, told back or not', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(wakeup, fc.boolean()), { minLength: 1, maxLength: 30 }), (given) => {
        const pending = new PendingMessages();
        for (const [message, failsThen] of given) {
          pending.add(message, 100);
          if (failsThen) pending.giveBack(pending.take(100), 100);
        }
        const told = pending.take(100) as WakeupMessage[];
        expect(told.map(({ lane }) => lane).toSorted()).toEqual(
          [...new Set(given.map(([{ lane }]) => lane))].toSorted(),
        );
        for (const one of told) {
          const merged = given.map(([message]) => message).filter(({ lane }) => lane === one.lane);
          expect(one.priority).toBe(Math.max(...merged.map(({ priority }) => priority)));
          expect(one.dueInMs ?? 0).toBe(Math.min(...merged.map(({ dueInMs = 0 }) => dueInMs)));
          expect(one.behind ?? false).toBe(merged.some(({ behind }) => behind));
        }
        expect(pending.size).toBe(0);
      }),
    );
  });

  it('lets time pass for what waits', () => {
    const pending = new PendingMessages();
    pending.add({ kind: 'wakeup', lane: 'a', priority: 2, source: 'n', dueInMs: 500 }, 1_000);
    expect(pending.take(1_200)).toEqual([
      { kind: 'wakeup', lane: 'a', priority: 2, source: 'n', dueInMs: 300 },
    ]);
    pending.add({ kind: 'wakeup', lane: 'a', priority: 2, source: 'n', dueInMs: 500 }, 1_000);
    expect(pending.take(9_000)).toEqual([{ kind: 'wakeup', lane: 'a', priority: 2, source: 'n' }]);
  });

  it('keeps each signal once', () => {
    const pending = new PendingMessages();
    for (let time = 0; time < 3; time += 1) pending.add(signalFor(1), 0);
    pending.add({ ...signalFor(1), kind: 'ended' } as CoordinatorMessage, 0);
    expect(pending.take(0)).toHaveLength(2);
  });

  it('is bounded: the oldest are forgotten, and what could not be told is the oldest', () => {
    const pending = new PendingMessages();
    for (let n = 0; n < 1_500; n += 1) pending.add(signalFor(n), 0);
    const taken = pending.take(0);
    expect(taken).toHaveLength(1_000);
    expect(taken[0]).toMatchObject({ jobId: 'j500' });
    for (let n = 2_000; n < 2_600; n += 1) pending.add(signalFor(n), 0);
    pending.giveBack(taken, 0);
    const left = pending.take(0);
    expect(left).toHaveLength(1_000);
    expect(left[0]).toMatchObject({ jobId: 'j1100' });
    expect(left.at(-1)).toMatchObject({ jobId: 'j2599' });
  });

  it('is bounded in lanes too', () => {
    const pending = new PendingMessages();
    for (let n = 0; n < 1_500; n += 1) pending.add(wakeupOf(`lane-${n}`), 0);
    expect(pending.take(0)).toHaveLength(1_000);
  });
});
