import { beforeEach, describe, expect, it } from '@jest/globals';
import { RatchetEvents } from '../../lib/observability/ratchet-events.js';
import { tellSchedule } from '../../lib/recurring/recurring-lane.js';
import { deferred } from '../support/engine-node.js';
import { annotated, recurringFixture } from '../recurring/recurring-fixture.js';

describe('events of recurring schedules', () => {
  const fixture = recurringFixture();
  beforeEach(() => {
    fixture.runs.length = 0;
  });

  it('tell what was fired, missed and skipped, with the schedule and the planned time', async () => {
    const gate = deferred();
    const one = await fixture.node({
      handlers: { work: fixture.method(() => gate.promise) },
      schedules: [annotated({ id: 'a', expression: '@every 1h' })],
    });
    const events = new RatchetEvents(one.events, (_event, error) => {
      throw error;
    });
    const told: [string, unknown][] = [];
    for (const name of ['schedule.fired', 'schedule.missed', 'schedule.skipped'] as const) {
      events.on(name, (event) => told.push([name, event]));
    }
    await one.runtime.start();
    await fixture.away('a', '2 hours 1 minute');
    tellSchedule(one.messages);
    await fixture.ran(1);
    const skipped = one.events.next('schedule_skipped');
    one.real.travel(3_600_000);
    tellSchedule(one.messages);
    await skipped;
    gate.resolve();
    const [first, second, third, fourth] = (await fixture.occurrences('a')).map(
      ({ scheduledFor }) => scheduledFor,
    );
    const { jobId } = fixture.runs[0]!;
    expect(told).toEqual([
      ['schedule.fired', { scheduleId: 'a', scheduledFor: third, jobId, missed: 2 }],
      ['schedule.missed', { scheduleId: 'a', scheduledFor: first, through: second, count: 2 }],
      ['schedule.skipped', { scheduleId: 'a', scheduledFor: fourth, reason: 'overlap' }],
    ]);
  });
});
