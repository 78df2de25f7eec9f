import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { ClusterMessages } from '../../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../../lib/cluster/no-coordinator.js';
import { EngineEvents } from '../../../lib/observability/engine-events.js';
import { OccurrenceReport } from '../../../lib/recurring/occurrence-report.js';
import { RefusedLines } from '../../../lib/recurring/refused-lines.js';
import { scheduleInfo } from '../../../lib/scheduler/recurring/schedule-info.js';
import { type NodeRef } from '../../../lib/store/job-store.js';
import { type Overlap } from '../../../lib/jobs/recurrence.js';
import { FakeClock } from '../../support/fake-clock.js';
import { ScheduleFixture, specOf } from './schedule-fixture.js';

let fixture: ScheduleFixture;
let node: NodeRef;

const register = (disabled: (0 | 1)[]): Promise<NodeRef> =>
  fixture.store.registerNode({
    id: `n-${uuidv7()}`,
    host: 'test',
    pid: 1,
    version: '0',
    lanes: ['default'],
    handlers: ['test.job'],
    disabled: { default: disabled },
  });

beforeAll(async () => {
  fixture = await ScheduleFixture.open();
});
beforeEach(async () => {
  node = await register([0]);
});
afterEach(async () => {
  await fixture.store.removeNode(node);
  await fixture.clear();
});
afterAll(() => fixture.close());

async function written(id: string, overlap: Overlap = 'skip') {
  const now = await fixture.schedules.now();
  const spec = specOf(id, { overlap, template: { ...specOf(id).template, priority: 0 } });
  await fixture.schedules.write([{ spec, revision: undefined, anchor: now, nextAt: now }]);
  return fixture.row(id);
}

const jobs = () => fixture.query<{ id: string }>('select id from ratchet.job');

describe('a recurring schedule whose priority is switched off in its lane', () => {
  it.each(['skip', 'queue', 'allow'] as const)(
    'skips its occurrences (overlap %s), goes on, and shows why; another one is not held up',
    async (overlap) => {
      const row = await written('off', overlap);
      const [other] = await fixture.written('on');
      const ifBusy = ({ skip: 'skip', queue: 'wait', allow: 'run' } as const)[overlap];
      const run = { at: row.nextAt!, jobId: uuidv7(), delayMs: 0, missed: 0, ifBusy };
      const outcomes = await fixture.schedules.fire([
        fixture.firing(row, { runs: [run] }),
        fixture.firing(other!),
      ]);
      expect(outcomes).toMatchObject([
        { id: 'off', outcome: 'fired', jobs: [], skipped: [], waiting: [], refused: [row.nextAt] },
        { id: 'on', outcome: 'fired', jobs: [{ scheduleId: 'on' }] },
      ]);
      expect(await jobs()).toHaveLength(1);
      const after = await fixture.row('off');
      expect(after.nextAt).toEqual(new Date(row.nextAt!.getTime() + 60_000));
      expect(after.fault).toBeUndefined();
      expect(scheduleInfo(after).fault).toBe(
        'PRIORITY_DISABLED: priority "lowest" of lane "default" is switched off by every node that serves the lane: ' +
          'occurrences are skipped until one has a bucket for it',
      );
      const [occurrence] = await fixture.schedules.occurrences({ scheduleId: 'off', limit: 10 });
      expect(occurrence).toMatchObject({ outcome: 'skipped', jobId: undefined });

      // Nothing has to be mended by hand.
      const real = await register([]);
      expect(scheduleInfo(await fixture.row('off')).fault).toBeUndefined();
      expect(await fixture.schedules.fire([fixture.firing(after)])).toMatchObject([
        { outcome: 'fired', jobs: [{ scheduleId: 'off', priority: 0 }] },
      ]);
      await fixture.store.removeNode(real);
    },
  );

  it('is not triggered by hand either', async () => {
    await written('off');
    const request = { id: 'off', jobId: uuidv7(), ifBusy: undefined };
    expect(await fixture.schedules.trigger(request)).toEqual({
      outcome: 'disabled',
      lane: 'default',
      priority: 0,
      nodes: [node.id],
    });
    expect(await jobs()).toEqual([]);
    expect(await fixture.schedules.occurrences({ scheduleId: 'off', limit: 10 })).toEqual([]);
    const real = await register([]);
    expect(await fixture.schedules.trigger(request)).toMatchObject({ outcome: 'enqueued' });
    await fixture.store.removeNode(real);
  });

  it('has what waited before become a job: that was taken long ago', async () => {
    const real = await register([]);
    const row = await written('off', 'queue');
    const run = (ifBusy: 'run' | 'wait', seconds: number) => ({
      at: new Date(row.nextAt!.getTime() + seconds * 1_000),
      jobId: uuidv7(),
      delayMs: 0,
      missed: 0,
      ifBusy,
    });
    await fixture.schedules.fire([fixture.firing(row, { runs: [run('run', 0), run('wait', 1)] })]);
    await fixture.store.removeNode(real);
    await fixture.query('delete from ratchet.job');
    expect(await fixture.schedules.promote(10)).toMatchObject([{ scheduleId: 'off' }]);
  });

  it('is told: an event for each occurrence, and a line a minute', () => {
    const at = new Date(0);
    const events = new EngineEvents();
    const told: unknown[] = [];
    events.on('schedule_skipped', (event) => void told.push(event));
    const messages = new ClusterMessages(new NoCoordinator(), 'n');
    const firing = { id: 'off', revision: '1', nextAt: at, advanceTo: undefined, runs: [], missed: [] };
    const outcome = {
      id: 'off',
      outcome: 'fired',
      jobs: [],
      skipped: [],
      waiting: [],
      refused: [at],
    } as const;
    new OccurrenceReport({ messages, events }).decided(firing, outcome);
    expect(told).toEqual([{ scheduleId: 'off', scheduledFor: at, reason: 'priority_disabled' }]);

    const clock = new FakeClock();
    const lines: string[] = [];
    const report = new RefusedLines(clock, { error: (line) => void lines.push(line) });
    for (let round = 0; round < 70; round += 1) {
      report.note('off', [at]);
      report.tell();
      clock.advance(1_000);
    }
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(
      '1 occurrence of recurring schedules did not become jobs (PRIORITY_DISABLED), of "off"',
    );
    expect(lines[1]).toContain('60 occurrences');
  });
});
