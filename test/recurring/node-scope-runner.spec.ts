import { afterEach, describe, expect, it } from '@jest/globals';
import { recurrenceOf, type Recurrence } from '../../lib/jobs/recurrence.js';
import { type AnnotatedSchedule } from '../../lib/jobs/schedule-spec.js';
import { NodeScopeRunner } from '../../lib/recurring/node-scope-runner.js';
import { type ClaimedJob, type Settlement } from '../../lib/store/job-store.js';
import { type ScheduleRow, type ScheduleStore } from '../../lib/store/schedule-store.js';
import { deferred } from '../support/engine-node.js';
import { settled } from '../support/fake-clock.js';
import { NOW, scriptedParts } from './fake-schedules.js';
import { annotated } from './recurring-fixture.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

type End = Pick<Settlement, 'outcome' | 'error'>;

/** A run that a test ends. */
interface Run {
  readonly job: ClaimedJob;
  readonly recurrence: Recurrence;
  readonly end: (end?: End) => Promise<void>;
  aborted: string | undefined;
}

describe('schedules of scope node', () => {
  const runners: NodeScopeRunner[] = [];
  afterEach(() => {
    for (const runner of runners.splice(0)) runner.stop();
  });

  function scripted(schedules: readonly AnnotatedSchedule[], nodeId = 'one') {
    const all = scriptedParts();
    const runs: Run[] = [];
    const asked: (readonly string[])[] = [];
    const rows = new Map<string, Partial<ScheduleRow>>();
    const database = { away: false, aheadMs: 0 };
    const store = {
      byIds: async (ids: readonly string[]) => {
        asked.push(ids);
        if (database.away) throw new Error('away');
        const now = new Date(NOW.getTime() + all.clock.monotonicMs() + database.aheadMs);
        return { now, schedules: ids.map((id) => ({ id, anchor: NOW, paused: false, ...rows.get(id) })) };
      },
    } as unknown as ScheduleStore;
    const runner = new NodeScopeRunner(schedules, {
      ...all.parts,
      store,
      nodeId,
      run: (job) => {
        const settlement = deferred<Settlement>();
        const ended = deferred();
        const run: Run = {
          job,
          recurrence: recurrenceOf(job.metadata)!,
          aborted: undefined,
          end: async (end = { outcome: 'succeeded' }) => {
            settlement.resolve({ id: job.id, claimSeq: job.claimSeq, ...end });
            ended.resolve();
            await settled();
          },
        };
        runs.push(run);
        return {
          settlement: settlement.promise,
          ended: ended.promise,
          abort: (kind) => {
            run.aborted = kind;
            ended.resolve();
          },
        };
      },
    });
    runners.push(runner);
    const pass = async (ms: number): Promise<void> => {
      all.clock.advance(ms);
      for (let turn = 0; turn < 8; turn += 1) await settled();
    };
    const times = (): number[] =>
      runs.map(({ recurrence }) => (recurrence.scheduledFor.getTime() - NOW.getTime()) / SECOND_MS);
    return { ...all, runner, runs, asked, rows, database, pass, times };
  }
  const every = (
    expression: string,
    overrides: Parameters<typeof annotated>[0] = { id: 'a' },
  ): AnnotatedSchedule =>
    annotated({ expression, scope: 'node', ...overrides }, { payload: '{"cache":"prices"}' });

  it('run at their times by the database, without a job, and are told', async () => {
    const { runner, runs, times, pass, events } = scripted([every('@every 15s')]);
    const told: unknown[] = [];
    events.on('schedule_fired', (event) => told.push(event));
    runner.start();
    await pass(0);
    await pass(15_001);
    await runs[0]!.end();
    await pass(15_000);
    expect(times()).toEqual([15, 30]);
    expect(runs.map(({ recurrence }) => recurrence)).toMatchObject([
      { scheduleId: 'a', previous: undefined, missed: 0 },
      { scheduleId: 'a', previous: runs[0]!.recurrence.scheduledFor, missed: 0 },
    ]);
    expect(runs[0]!.job).toMatchObject({
      name: 'work',
      payload: { cache: 'prices' },
      executions: 1,
      maxRetries: 0,
    });
    expect(told).toEqual(
      runs.map(({ recurrence: { scheduledFor } }) => ({ scheduleId: 'a', scheduledFor, missed: 0 })),
    );
  });

  it('ask the database once a minute at most, and nothing while nothing runs', async () => {
    const often = scripted([every('@every 5s')]);
    often.runner.start();
    await often.pass(0);
    for (let seconds = 0; seconds < 300; seconds += 1) {
      await often.pass(SECOND_MS);
      for (const run of often.runs) await run.end();
    }
    expect(often.runs.length).toBeGreaterThan(55);
    expect(often.asked.length).toBeLessThanOrEqual(6);
    const rarely = scripted([every('0 0 1 1 *')]);
    rarely.runner.start();
    await rarely.pass(0);
    await rarely.pass(24 * 60 * MINUTE_MS);
    expect(rarely.asked).toEqual([['a']]);
    const nothing = scripted([
      annotated({ id: 'of the cluster' }),
      every('@every 5s', { id: 'off', enabled: false }),
    ]);
    nothing.runner.start();
    await nothing.pass(MINUTE_MS);
    expect([nothing.asked, nothing.clock.pending]).toEqual([[], 0]);
  });

  it('follow the database when its time and that of this machine drift apart', async () => {
    const { runner, database, times, pass, runs } = scripted([every('@every 30s')]);
    runner.start();
    await pass(0);
    await pass(30_001);
    await runs[0]!.end();
    database.aheadMs = 5_000;
    await pass(30_000);
    await runs[1]!.end();
    // Heard of with that run; the next one comes by it.
    await pass(25_000);
    expect(times()).toEqual([30, 60, 90]);
  });

  it('overlap skip, queue and allow, in memory', async () => {
    const ids = ['skip', 'queue', 'allow'] as const;
    const { runner, runs, pass, events } = scripted(
      ids.map((id) => every('@every 10s', { id, overlap: id })),
    );
    const skipped: unknown[] = [];
    events.on('schedule_skipped', ({ scheduleId, reason }) => skipped.push([scheduleId, reason]));
    const of = (id: string): Run[] => runs.filter(({ recurrence }) => recurrence.scheduleId === id);
    runner.start();
    await pass(0);
    for (let turn = 0; turn < 3; turn += 1) await pass(10_001);
    expect(ids.map((id) => of(id).length)).toEqual([1, 1, 3]);
    expect(skipped).toEqual([
      ['skip', 'overlap'],
      ['skip', 'overlap'],
    ]);
    expect(runner.running).toBe(5);
    for (let turn = 0; turn < 3; turn += 1) await of('queue')[turn]!.end();
    const queued = of('queue').map(({ recurrence }) => recurrence.scheduledFor.getTime());
    expect(queued).toEqual([10, 20, 30].map((seconds) => NOW.getTime() + seconds * SECOND_MS));
    await of('skip')[0]!.end();
    await pass(10_000);
    expect(of('skip')).toHaveLength(2);
  });

  it('one that fails is logged with its method, and the next one comes in its time', async () => {
    const { runner, runs, pass, lines, events } = scripted([every('@every 10s')]);
    const ends: string[] = [];
    events.on('node_run', ({ outcome }) => ends.push(outcome));
    runner.start();
    await pass(0);
    await pass(10_001);
    await runs[0]!.end({ outcome: 'failed', error: 'TypeError: no cache' });
    await pass(10_000);
    await runs[1]!.end({ outcome: 'retried', error: 'TypeError: asked for a retry' });
    await pass(10_000);
    await runs[2]!.end();
    expect(ends).toEqual(['failed', 'failed', 'succeeded']);
    expect(lines).toEqual([
      expect.stringMatching(
        /^Test\.a: its run for .*failed; the next one comes in its time\nTypeError: no cache$/,
      ),
      expect.stringMatching(/asked for a retry/),
    ]);
  });

  it('a node that stood still runs the newest one once', async () => {
    const { runner, runs, pass, clock } = scripted([every('@every 10s')]);
    runner.start();
    await pass(0);
    clock.block(45_000);
    await pass(0);
    await pass(1);
    expect(runs.map(({ recurrence }) => recurrence)).toMatchObject([
      { scheduledFor: new Date(NOW.getTime() + 40_000), missed: 3 },
    ]);
  });

  it('a paused one rests, and goes on when it is resumed, without what passed meanwhile', async () => {
    const { runner, rows, times, pass, runs } = scripted([every('@every 10s')]);
    rows.set('a', { paused: true });
    runner.start();
    await pass(0);
    await pass(3 * MINUTE_MS);
    expect(times()).toEqual([]);
    rows.delete('a');
    // A coordinator tells of it; without one it is seen within a minute.
    runner.changed();
    await pass(1_001);
    await pass(10_000);
    expect(times()).toEqual([190]);
    await runs[0]!.end();
    rows.set('a', { paused: true });
    runner.changed();
    await pass(10_000);
    expect(times()).toEqual([190]);
    rows.delete('a');
    await pass(MINUTE_MS + 1);
    await pass(10_001);
    expect(times().length).toBe(2);
  });

  it('go on while the database is away', async () => {
    const { runner, database, times, pass, runs, faults } = scripted([every('@every 20s')]);
    runner.start();
    await pass(0);
    database.away = true;
    for (let turn = 0; turn < 9; turn += 1) {
      await pass(20_001);
      await runs.at(-1)?.end();
    }
    expect(times()).toEqual([20, 40, 60, 80, 100, 120, 140, 160, 180]);
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.length).toBeLessThan(10);
    database.away = false;
    await pass(20_000);
    expect(faults.at(-1)).toBe('schedules of scope node worked');
  });

  it('wait for a database that is away at the start', async () => {
    const { runner, database, times, pass } = scripted([every('@every 10s')]);
    database.away = true;
    runner.start();
    await pass(0);
    await pass(500);
    database.away = false;
    await pass(1_000);
    await pass(10_000);
    expect(times()).toEqual([10]);
  });

  it('jitter is another on each node', async () => {
    const first = scripted([every('@every 1m', { id: 'a', jitterMs: 50_000 })], 'one');
    const second = scripted([every('@every 1m', { id: 'a', jitterMs: 50_000 })], 'two');
    const began: number[] = [];
    for (const { runner, runs, pass, clock } of [first, second]) {
      runner.start();
      await pass(0);
      await pass(MINUTE_MS + 1);
      while (runs.length === 0) await pass(100);
      began.push(clock.monotonicMs());
      expect(runs[0]!.recurrence.scheduledFor.getTime()).toBe(NOW.getTime() + MINUTE_MS);
    }
    expect(Math.abs(began[0]! - began[1]!)).toBeGreaterThan(100);
  });

  it('stop at any time: no further run, what waits is forgotten, and no timer is left', async () => {
    const { runner, runs, pass, clock } = scripted([
      every('@every 10s', { id: 'a', overlap: 'queue' }),
      every('@every 10s', { id: 'delayed', jitterMs: 9_000 }),
    ]);
    runner.start();
    await pass(0);
    await pass(10_001);
    await pass(10_001);
    runner.stop();
    runner.stop();
    expect(clock.pending).toBe(0);
    const { running } = runner;
    let idle = false;
    const whenIdle = runner.whenIdle().then(() => (idle = true));
    await settled();
    expect(idle).toBe(false);
    for (const run of [...runs]) await run.end();
    await whenIdle;
    expect(running).toBeGreaterThan(0);
    expect(runner.running).toBe(0);
    await pass(MINUTE_MS);
    expect(runs.filter(({ recurrence }) => recurrence.scheduleId === 'a')).toHaveLength(1);
  });

  it('one that cannot be planned keeps neither the others nor itself from running', async () => {
    const { runner, pass, parts, runs, faults } = scripted([
      every('@every 10s', { id: 'bad' }),
      every('@every 10s', { id: 'good' }),
    ]);
    const { rules } = parts;
    const of = rules.of.bind(rules);
    let broken = true;
    rules.of = (rule) => {
      if (broken && (rule as { id?: string }).id === 'bad') throw new Error('no rule');
      return of(rule);
    };
    const ids = (): string[] => runs.map(({ recurrence }) => recurrence.scheduleId);
    runner.start();
    await pass(0);
    await pass(10_001);
    expect(ids()).toEqual(['good']);
    expect(faults).toContain('"bad" of the schedules of scope node 0');
    broken = false;
    for (const run of runs) await run.end();
    await pass(10_000);
    await pass(10_000);
    expect(ids()).toContain('bad');
  });

  it('abort reaches what runs', async () => {
    const { runner, runs, pass, events } = scripted([every('@every 10s')]);
    const end = events.next('node_run');
    runner.start();
    await pass(0);
    await pass(10_001);
    runner.stop();
    runner.abort();
    await runner.whenIdle();
    expect(runs.map(({ aborted }) => aborted)).toEqual(['shutdown']);
    expect(await end).toMatchObject({ outcome: 'aborted' });
  });
});
