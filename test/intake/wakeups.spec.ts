import { describe, expect, it } from '@jest/globals';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { type Wakeup } from '../../lib/cluster/cluster-coordinator.js';
import { Wakeups } from '../../lib/intake/wakeups.js';
import { type NewJob } from '../../lib/store/job-store.js';
import { newJob } from './support.js';

const HOUR = 3_600_000;

function sent(jobs: NewJob[], insertedAgoMs = 0): Omit<Wakeup, 'source'>[] {
  const messages = new ClusterMessages(new NoCoordinator(), 'n');
  const heard: Omit<Wakeup, 'source'>[] = [];
  messages.onWakeup(({ source, ...wakeup }) => {
    expect(source).toBe('n');
    heard.push(wakeup);
  });
  new Wakeups(jobs, performance.now() - insertedAgoMs).send(messages);
  return heard;
}

describe('Wakeups', () => {
  it('sends one for each stream, whatever the number of jobs', () => {
    const jobs = [newJob(), newJob(), newJob({ lane: 'mail' }), newJob({ priority: 4 }), newJob()];
    expect(sent(jobs)).toEqual([
      { lane: 'default', priority: 2 },
      { lane: 'mail', priority: 2 },
      { lane: 'default', priority: 4 },
    ]);
    expect(sent([])).toEqual([]);
  });

  it('tells when the earliest job of the stream is due, counted from now', () => {
    const [wakeup] = sent([newJob({ delayMs: 9 * HOUR }), newJob({ delayMs: HOUR })], HOUR / 2);
    expect(wakeup?.behind).toBeUndefined();
    expect(wakeup?.dueInMs).toBeGreaterThan(HOUR / 2 - 1_000);
    expect(wakeup?.dueInMs).toBeLessThanOrEqual(HOUR / 2);
    expect(sent([newJob({ delayMs: HOUR }), newJob()])).toEqual([{ lane: 'default', priority: 2 }]);
  });

  it('looks behind when the commit came late: claims may have gone beyond the job', () => {
    expect(sent([newJob()], 50)).toEqual([{ lane: 'default', priority: 2 }]);
    expect(sent([newJob()], 150)).toEqual([{ lane: 'default', priority: 2, behind: true }]);
    expect(sent([newJob({ delayMs: 10 })], 150)).toEqual([{ lane: 'default', priority: 2, behind: true }]);
  });

  it('looks behind for a runAt in the past', () => {
    expect(sent([newJob({ runAt: new Date(0) })])).toEqual([{ lane: 'default', priority: 2, behind: true }]);
  });

  it('does not trust its own clock with a runAt that is near: whoever it wakes asks the database', () => {
    const soon = new Date(Date.now() + HOUR / 2);
    expect(sent([newJob({ runAt: soon })])).toEqual([{ lane: 'default', priority: 2, behind: true }]);
    const [far] = sent([newJob({ runAt: new Date(Date.now() + 5 * HOUR) })]);
    expect(far?.dueInMs).toBeGreaterThan(4 * HOUR);
    expect(far?.behind).toBeUndefined();
  });
});
