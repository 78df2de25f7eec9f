import { afterEach, describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../lib/cluster/clock.js';
import { tellSchedule } from '../../lib/recurring/recurring-lane.js';
import { RecurringRunner } from '../../lib/recurring/recurring-runner.js';
import { RuleCache } from '../../lib/recurring/rule-cache.js';
import { type RecurrenceRule } from '../../lib/recurring/time/recurrence-rule.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { settled } from '../support/fake-clock.js';
import { dueAnswer, dueSchedule, fired, firedJob, NOW, scriptedParts } from './fake-schedules.js';

const NODE = { id: 'one', epoch: '1' };
const HOUR_MS = 3_600_000;
const unknown = (): StoreError => new StoreError('unknown', 'STORE_FAULT: cut', undefined);
const due = (id: string): ReturnType<typeof dueAnswer> => dueAnswer({ due: [dueSchedule({ id })] });

describe('the runner of recurring schedules', () => {
  const runners: RecurringRunner[] = [];
  afterEach(() => Promise.all(runners.splice(0).map((runner) => runner.stop())));

  function scripted() {
    const all = scriptedParts();
    const runner = new RecurringRunner(NODE, all.parts);
    runners.push(runner);
    /** Time passes, and what it sets off is done. */
    const pass = async (ms: number): Promise<void> => {
      all.clock.advance(ms);
      for (let turn = 0; turn < 5; turn += 1) await settled();
    };
    return { ...all, runner, pass };
  }

  it('looks at start, and then when the next one is due: no poll', async () => {
    const { runner, schedules, pass, clock } = scripted();
    schedules.answers = [dueAnswer({ nextInMs: 60_000 })];
    runner.start();
    await pass(0);
    expect(schedules.asked.due).toBe(1);
    await pass(60_000);
    expect(schedules.asked.due).toBe(1);
    // Not a moment too early, whatever timers do.
    await pass(1);
    expect(schedules.asked.due).toBe(2);
    expect(clock.pending).toBe(1);
  });

  it('with nothing to come it has no timer, and looks when it is told', async () => {
    const { runner, schedules, pass, clock, messages } = scripted();
    runner.start();
    await pass(0);
    expect(clock.pending).toBe(0);
    tellSchedule(messages, 5_000);
    runner.dueIn(9_000);
    await pass(5_001);
    expect(schedules.asked.due).toBe(2);
    messages.newWork('default', 2);
    await pass(0);
    expect(schedules.asked.due).toBe(2);
    tellSchedule(messages);
    await pass(0);
    expect(schedules.asked.due).toBe(3);
  });

  it('fires what is due, and knows by itself when it is due next', async () => {
    const { runner, schedules, pass, events } = scripted();
    schedules.answers = [due('a'), dueAnswer()];
    const told = events.next('schedule_fired');
    runner.start();
    await pass(0);
    expect(await told).toMatchObject({ scheduleId: 'a', scheduledFor: NOW, missed: 0 });
    expect(schedules.firings[0]).toMatchObject([
      { id: 'a', nextAt: NOW, advanceTo: new Date(NOW.getTime() + HOUR_MS) },
    ]);
    await pass(HOUR_MS);
    expect(schedules.asked.due).toBe(1);
    await pass(1);
    expect(schedules.asked.due).toBe(2);
  });

  it('wakes a stream once for all jobs, at the earliest of their times', async () => {
    const { runner, schedules, pass, messages } = scripted();
    const woken: unknown[] = [];
    messages.onWakeup(({ lane, priority, dueInMs, behind }) =>
      woken.push({ lane, priority, dueInMs, behind }),
    );
    schedules.answers = [due('a'), dueAnswer()];
    schedules.fires = async (firings) =>
      firings.map((firing) => ({
        ...(fired(firing) as Extract<ReturnType<typeof fired>, { outcome: 'fired' }>),
        jobs: [
          firedJob({ scheduleId: 'a', dueInMs: 900 }),
          firedJob({ scheduleId: 'a', dueInMs: 300 }),
          firedJob({ scheduleId: 'a', lane: 'mail', priority: 4 }),
          firedJob({ scheduleId: 'a', lane: 'mail', priority: 4, dueInMs: 10 }),
        ],
      }));
    runner.start();
    await pass(0);
    expect(woken).toEqual([
      { lane: 'default', priority: 2, dueInMs: 300, behind: undefined },
      { lane: 'mail', priority: 4, dueInMs: undefined, behind: true },
    ]);
  });

  it('tells what was missed, and what was skipped and why', async () => {
    const { runner, schedules, pass, events, lines } = scripted();
    const told: unknown[] = [];
    events.on('schedule_missed', (event) => told.push(event));
    events.on('schedule_skipped', (event) => told.push(event));
    const nextAt = new Date(NOW.getTime() - 3 * HOUR_MS);
    schedules.answers = [
      dueAnswer({
        due: [
          dueSchedule({ id: 'a', nextAt, overlap: 'skip', misfire: 'once' }),
          dueSchedule({ id: 'b', overlap: 'queue' }),
        ],
      }),
      dueAnswer(),
    ];
    schedules.fires = async (firings) =>
      firings.map(({ id }) => ({ id, outcome: 'fired', jobs: [], skipped: [NOW], waiting: [] }));
    runner.start();
    await pass(0);
    const through = new Date(NOW.getTime() - HOUR_MS);
    expect(told).toEqual([
      { scheduleId: 'a', scheduledFor: nextAt, through, count: 3 },
      { scheduleId: 'a', scheduledFor: NOW, reason: 'overlap' },
      { scheduleId: 'b', scheduledFor: NOW, reason: 'queue_full' },
    ]);
    expect(lines).toEqual([
      expect.stringMatching(/^3 occurrences of recurring schedules passed .*: of "a"$/),
    ]);
  });

  it('stands by while another node holds the lease, and asks when that would have expired', async () => {
    const { runner, schedules, pass } = scripted();
    schedules.answers = [dueAnswer({ heldForMs: 2_500 }), due('a'), dueAnswer()];
    runner.start();
    await pass(0);
    await pass(2_500);
    expect(schedules.firings).toHaveLength(0);
    await pass(51);
    expect(schedules.firings).toHaveLength(1);
  });

  it('leaves what is due to others for as long as it is told at its start', async () => {
    const { runner, schedules, pass } = scripted();
    schedules.answers = [due('a'), dueAnswer()];
    runner.start(3_500);
    await pass(3_499);
    expect(schedules.firings).toHaveLength(0);
    await pass(2);
    expect(schedules.firings).toHaveLength(1);
  });

  it('looks again at once when there is more, and when somebody was faster', async () => {
    const { runner, schedules, pass } = scripted();
    schedules.answers = [{ ...due('a'), more: true }, due('b'), dueAnswer()];
    schedules.fires = async (firings) =>
      firings.map((firing) => (firing.id === 'b' ? { id: 'b', outcome: 'superseded' } : fired(firing)));
    runner.start();
    await pass(0);
    expect(schedules.asked.due).toBe(3);
  });

  it('does not spin on a schedule that it can neither fire nor mark, and does not hold up others for it', async () => {
    const { runner, schedules, pass, messages } = scripted();
    schedules.answers = [due('a')];
    schedules.fires = async () => [{ id: 'a', outcome: 'superseded' }];
    runner.start();
    await pass(0);
    const { due: asked } = schedules.asked;
    expect(asked).toBeLessThan(10);
    await pass(10_000);
    expect(schedules.asked.due - asked).toBeLessThan(20);
    const before = schedules.asked.due;
    tellSchedule(messages);
    await pass(0);
    expect(schedules.asked.due).toBe(before + 1);
  });

  it('a lost reply of a firing is repeated, and the lane is woken for what it may have made', async () => {
    const { runner, schedules, pass, messages, faults } = scripted();
    const woken: string[] = [];
    messages.onWakeup(({ lane, behind }) => woken.push(`${lane} ${String(behind)}`));
    schedules.answers = [due('a'), dueAnswer()];
    schedules.fires = async () => {
      throw unknown();
    };
    runner.start();
    await pass(0);
    expect(woken).toEqual(['default true']);
    expect(faults).toEqual(['recurring schedules 100']);
    await pass(101);
    expect(schedules.asked.due).toBe(2);
    expect(faults).toEqual(['recurring schedules 100', 'recurring schedules worked']);
  });

  it('backs off while the database is away, whatever wakes it, and goes on when it is back', async () => {
    const { runner, schedules, pass, messages, faults } = scripted();
    schedules.answers = [unknown(), unknown(), unknown(), due('a'), dueAnswer()];
    runner.start();
    await pass(0);
    for (let wakeups = 0; wakeups < 10; wakeups += 1) tellSchedule(messages);
    await pass(50);
    runner.dueIn(0);
    await pass(49);
    expect(schedules.asked.due).toBe(1);
    await pass(2);
    expect(schedules.asked.due).toBe(2);
    await pass(201);
    await pass(301);
    expect(schedules.firings).toHaveLength(1);
    expect(faults).toEqual([
      'recurring schedules 100',
      'recurring schedules 200',
      'recurring schedules 300',
      'recurring schedules worked',
    ]);
  });

  it('a broken schedule is marked and said, and holds up no other', async () => {
    const { runner, schedules, pass, lines, events } = scripted();
    const broken: string[] = [];
    events.on('schedule_broken', ({ scheduleId }) => broken.push(scheduleId));
    schedules.answers = [
      dueAnswer({
        due: [
          dueSchedule({ id: 'bad rule', expression: 'never' }),
          dueSchedule({ id: 'refused' }),
          dueSchedule({ id: 'good' }),
        ],
        broken: [{ id: 'bad row', revision: '1', fault: 'no backoff' }],
      }),
      dueAnswer(),
    ];
    schedules.fires = async (firings) =>
      firings.map((firing) =>
        firing.id === 'good'
          ? fired(firing)
          : { id: firing.id, outcome: 'failed', error: new StoreError('bad_row', 'too large', '22001') },
      );
    const told = events.next('schedule_fired');
    runner.start();
    await pass(0);
    expect(await told).toMatchObject({ scheduleId: 'good' });
    expect(schedules.marked.map(({ id }) => id).sort()).toEqual(['bad row', 'bad rule', 'refused']);
    expect(broken.sort()).toEqual(['bad row', 'bad rule', 'refused']);
    expect(lines).toHaveLength(3);
    expect(lines.join('\n')).toMatch(/"bad rule" is broken.*RECURRING_BAD_EXPRESSION/);
    expect(schedules.asked.due).toBe(1);
  });

  it('a schedule that fails for a reason that passes is not marked, but tried again', async () => {
    const { runner, schedules, pass, faults } = scripted();
    schedules.answers = [
      dueAnswer({ due: [dueSchedule({ id: 'locked' }), dueSchedule({ id: 'good' })] }),
      due('locked'),
      dueAnswer(),
    ];
    let tries = 0;
    schedules.fires = async (firings) =>
      firings.map((firing) =>
        firing.id === 'locked' && (tries += 1) === 1
          ? { id: 'locked', outcome: 'failed', error: new StoreError('unavailable', 'lock timeout', '55P03') }
          : fired(firing),
      );
    runner.start();
    await pass(0);
    expect(schedules.firings.map((each) => each.map(({ id }) => id))).toEqual([
      ['locked', 'good'],
      ['locked'],
    ]);
    expect(faults[0]).toBe('recurring schedule "locked" 0');
    expect(schedules.marked).toEqual([]);
  });

  it('fires nothing while its heartbeats are not acknowledged', async () => {
    const { runner, schedules, pass, messages, clock, events } = scripted();
    schedules.answers = [dueAnswer({ nextInMs: 1_000 })];
    runner.start();
    await pass(0);
    runner.hold(true);
    expect(clock.pending).toBe(0);
    tellSchedule(messages);
    runner.dueIn(0);
    events.emit('schedule_job_ended', { scheduleId: 'a', jobId: 'j' });
    await pass(60_000);
    expect(schedules.asked).toEqual({ due: 1, promote: 0 });
    runner.hold(false);
    await pass(0);
    expect(schedules.asked.due).toBe(2);
  });

  it('promotes what waited when a job of a schedule ends, and when the database says so', async () => {
    const { runner, schedules, pass, events } = scripted();
    const jobs: string[] = [];
    events.on('schedule_fired', ({ jobId = '' }) => jobs.push(jobId));
    schedules.answers = [dueAnswer({ promotable: true }), dueAnswer()];
    schedules.promotions = [
      [firedJob({ scheduleId: 'a', jobId: '1' })],
      [firedJob({ scheduleId: 'a', jobId: '2' })],
    ];
    runner.start();
    await pass(0);
    expect(jobs).toEqual(['1']);
    events.emit('schedule_job_ended', { scheduleId: 'a', jobId: '1' });
    // While that is asked, many more are worth one more statement.
    for (let n = 0; n < 100; n += 1) events.emit('schedule_job_ended', { scheduleId: 'b', jobId: '1' });
    await pass(0);
    expect(jobs).toEqual(['1', '2']);
    expect(schedules.asked.promote).toBe(3);
    events.emit('rescued', { buckets: 1, recovered: 3, failed: 0 });
    await pass(0);
    expect(schedules.asked.promote).toBe(3);
    events.emit('rescued', { buckets: 1, recovered: 3, failed: 1 });
    await pass(21);
    expect(schedules.asked.promote).toBe(4);
  });

  it('jobs that nobody waits for may end as often as they like', async () => {
    const { runner, schedules, pass, events } = scripted();
    runner.start();
    await pass(0);
    for (let ms = 0; ms < 200; ms += 1) {
      events.emit('schedule_job_ended', { scheduleId: 'a', jobId: '1' });
      await pass(1);
    }
    expect(schedules.asked.promote).toBeGreaterThan(5);
    expect(schedules.asked.promote).toBeLessThan(12);
  });

  it('a promotion that fails is tried again after a pause, and by nothing else before', async () => {
    const { runner, schedules, pass, events, faults } = scripted();
    schedules.promotions = [unknown(), []];
    runner.start();
    await pass(0);
    events.emit('schedule_job_ended', { scheduleId: 'a', jobId: '1' });
    await pass(0);
    events.emit('schedule_job_ended', { scheduleId: 'a', jobId: '2' });
    await pass(0);
    expect(schedules.asked.promote).toBe(1);
    await pass(101);
    expect(schedules.asked.promote).toBe(2);
    expect(faults).toEqual(['promotion of occurrences 100', 'promotion of occurrences worked']);
  });

  it('stops at any time, twice too, and leaves nothing behind', async () => {
    const { runner, schedules, pass, clock, messages, released } = scripted();
    await runner.stop();
    runner.start();
    await pass(0);
    expect(schedules.asked.due).toBe(0);

    const other = scripted();
    let answer!: (value: ReturnType<typeof dueAnswer>) => void;
    other.schedules.answers = [new Promise((resolve) => (answer = resolve)), dueAnswer({ nextInMs: 5_000 })];
    other.runner.start();
    other.runner.start();
    await other.pass(0);
    const stopped = Promise.all([other.runner.stop(), other.runner.stop()]);
    answer(due('a'));
    await stopped;
    // Nobody else has seen it, so the next node fires it.
    expect(other.schedules.firings).toEqual([]);
    expect([other.clock.pending, clock.pending]).toEqual([0, 0]);
    tellSchedule(other.messages);
    tellSchedule(messages);
    await other.pass(60_000);
    expect(other.schedules.asked.due).toBe(1);
    expect(released).toEqual([]);
  });

  it('whoever leads hands over when it stops: it gives the lease up, and says when the next one is due', async () => {
    const { runner, schedules, pass, messages, released } = scripted();
    const told: unknown[] = [];
    schedules.answers = [due('a'), dueAnswer()];
    runner.start();
    await pass(0);
    await pass(1_000);
    messages.onWakeup(({ lane, dueInMs }) => told.push([lane, dueInMs]));
    await runner.stop();
    expect(released).toEqual(['ratchet:recurring']);
    expect(told).toEqual([['#recurring', HOUR_MS - 1_000]]);
  });

  it('holds up the event loop for a few milliseconds at a time', async () => {
    const { schedules, parts } = scripted();
    const many = Array.from({ length: 500 }, (_, n) =>
      dueSchedule({ id: `s${n}`, expression: '* * * * *', nextAt: new Date(NOW.getTime() - 200 * 60_000) }),
    );
    const left = (): typeof many => many.slice(schedules.firings.flat().length);
    const store = Object.assign(schedules.store, { due: async () => dueAnswer({ due: left() }) });
    const busy = new RecurringRunner(NODE, { ...parts, store, clock: new SystemClock() });
    runners.push(busy);
    // By the time of the processor: what else runs on the machine is none of its doing.
    const usedMs = (): number => process.cpuUsage().user / 1_000;
    let last = usedMs();
    let worst = 0;
    const ticking = setInterval(() => {
      worst = Math.max(worst, usedMs() - last);
      last = usedMs();
    }, 0);
    const looked = parts.events.next('schedules_looked', () => left().length === 0);
    busy.start();
    await looked;
    clearInterval(ticking);
    expect(schedules.firings.flat()).toHaveLength(500);
    // Garbage is collected meanwhile; what it must not be is the whole of it.
    expect(worst).toBeLessThan(100);
  });

  it('fires in statements of a bounded size', async () => {
    const { runner, schedules, pass } = scripted();
    const nextAt = new Date(NOW.getTime() - 600 * HOUR_MS);
    schedules.answers = [
      dueAnswer({
        due: Array.from({ length: 4 }, (_, n) =>
          dueSchedule({ id: `s${n}`, nextAt, misfire: { catchUp: 400 } }),
        ),
      }),
      dueAnswer(),
    ];
    runner.start();
    await pass(0);
    expect(schedules.firings.map((each) => each.length)).toEqual([2, 2]);
  });

  it('whoever leads only to mark what is broken hands over too', async () => {
    const { runner, schedules, pass, released } = scripted();
    schedules.answers = [
      dueAnswer({ broken: [{ id: 'bad row', revision: '1', fault: 'no backoff' }] }),
      dueAnswer(),
    ];
    runner.start();
    await pass(0);
    await runner.stop();
    expect(released).toEqual(['ratchet:recurring']);
  });

  describe('counts that take long', () => {
    const seconds = (count: number): Date => new Date(NOW.getTime() + count * 1_000);
    const slow = (id: string, since = seconds(-1_000_000)): ReturnType<typeof dueSchedule> =>
      dueSchedule({ id, expression: 'slow', nextAt: since });

    /** Those whose expression is `slow` are due each second, and to find that takes them a turn of the event loop. */
    function slowly() {
      const { parts, ...all } = scripted();
      const steps = new Map<string, number>();
      const ruleOf = (id: string): RecurrenceRule =>
        ({
          everyMs: undefined,
          next: (at: Date) => {
            steps.set(id, (steps.get(id) ?? 0) + 1);
            for (const until = performance.now() + 9; performance.now() < until;);
            return new Date(Math.floor(at.getTime() / 1_000 + 1) * 1_000);
          },
        }) as unknown as RecurrenceRule;
      const rules = new RuleCache();
      const of = rules.of.bind(rules);
      rules.of = (schedule) => (schedule.expression === 'slow' ? ruleOf(schedule.id) : of(schedule));
      const runner = new RecurringRunner(NODE, { ...parts, rules });
      runners.push(runner);
      const stepsOf = (id: string): number => steps.get(id) ?? 0;
      const fired = (): string[][] => all.schedules.firings.map((each) => each.map(({ id }) => id));
      return { ...all, runner, stepsOf, fired };
    }

    it('hold up no other, and are fired when they end: what was due meanwhile too', async () => {
      const { runner, schedules, pass, fired, clock } = slowly();
      const due = [slow('a', seconds(-29)), dueSchedule({ id: 'b' })];
      schedules.answers = [
        dueAnswer({ due }),
        dueAnswer({ due: due.slice(0, 1), now: seconds(5) }),
        dueAnswer(),
      ];
      runner.start();
      await pass(0);
      expect(fired()).toEqual([]);
      await pass(50);
      expect(fired()).toEqual([['b']]);
      expect(schedules.asked.due).toBe(1);
      for (let turns = 0; schedules.firings.length < 2 && turns < 100; turns += 1) await pass(0);
      expect(fired()).toEqual([['b'], ['a']]);
      const [firing] = schedules.firings[1]!;
      const missed = firing!.missed.reduce((sum, { count }) => sum + count, 0);
      expect(missed + firing!.runs.length).toBe(35);
      expect(firing).toMatchObject({ nextAt: seconds(-29), advanceTo: seconds(6) });
      expect(firing!.runs.at(-1)!.at).toEqual(seconds(5));
      expect(schedules.asked.due).toBe(2);
      await runner.stop();
      expect(clock.pending).toBe(0);
    });

    it('end when their schedule is paused or changed, told or not', async () => {
      const { runner, schedules, pass, stepsOf } = slowly();
      const due = [slow('paused'), slow('changed')];
      schedules.answers = [
        dueAnswer({ due }),
        dueAnswer({ due: due.slice(1) }),
        dueAnswer({ due: [{ ...due[1]!, revision: '2', expression: '0 * * * *' }] }),
        dueAnswer(),
      ];
      runner.start();
      await pass(0);
      await pass(50);
      await pass(50);
      runner.dueIn(0);
      await pass(0);
      const [paused, changed] = [stepsOf('paused'), stepsOf('changed')];
      await pass(0);
      expect(stepsOf('paused')).toBe(paused);
      expect(stepsOf('changed')).toBeGreaterThan(changed);
      await pass(2_001);
      const ended = stepsOf('changed');
      await pass(0);
      expect(stepsOf('changed')).toBe(ended);
      expect(schedules.firings.flat()).toMatchObject([{ id: 'changed', revision: '2' }]);
    });

    it('are two at once: others wait for a place, and the runner does not look again and again', async () => {
      const { runner, schedules, pass, stepsOf } = slowly();
      const due = ['a', 'b', 'c'].map((id) => slow(id));
      schedules.answers = [dueAnswer({ due, more: true })];
      runner.start();
      await pass(0);
      for (let turns = 0; turns < 3; turns += 1) await pass(50);
      await pass(0);
      expect(schedules.asked.due).toBe(1);
      const tried = stepsOf('c');
      await pass(1_000);
      expect(stepsOf('c')).toBe(tried);
      await pass(1_001);
      expect(schedules.asked.due).toBe(2);
      expect(stepsOf('c')).toBe(tried);
      // A place becomes free.
      schedules.answers = [dueAnswer({ due: due.slice(1) })];
      runner.dueIn(0);
      await pass(0);
      await pass(0);
      expect(stepsOf('c')).toBeGreaterThan(tried);
      expect(schedules.asked.due).toBe(4);
    });

    it('are said once when they take very long, and end when the runner stops', async () => {
      const { runner, schedules, pass, stepsOf, lines, clock } = slowly();
      schedules.answers = [dueAnswer({ due: [slow('a')] })];
      runner.start();
      await pass(0);
      await pass(50);
      await pass(4_949);
      expect(lines).toEqual([]);
      await pass(1);
      await pass(20_000);
      expect(lines).toEqual([
        expect.stringMatching(
          /^the recurring schedule "a" .*since 2030-05-20T.*pause the schedule and resume it$/,
        ),
      ]);
      await Promise.all([runner.stop(), runner.stop()]);
      const ended = stepsOf('a');
      await pass(60_000);
      expect(stepsOf('a')).toBe(ended);
      expect(clock.pending).toBe(0);
      expect(schedules.firings).toEqual([]);
    });

    it('a rule that fails far from its beginning is broken', async () => {
      const { runner, schedules, pass, parts } = scripted();
      let steps = 0;
      parts.rules.of = () =>
        ({
          everyMs: undefined,
          next: (at: Date) => {
            for (const until = performance.now() + 9; performance.now() < until;);
            if ((steps += 1) > 20) throw new Error('no such year');
            return new Date(at.getTime() + 1_000);
          },
        }) as unknown as RecurrenceRule;
      schedules.answers = [dueAnswer({ due: [slow('a')] }), dueAnswer({ due: [slow('a')] }), dueAnswer()];
      runner.start();
      await pass(0);
      await pass(50);
      for (let turns = 0; schedules.marked.length === 0 && turns < 100; turns += 1) await pass(0);
      expect(schedules.marked).toEqual([{ id: 'a', mark: { kind: 'broken', fault: 'no such year' } }]);
    });
  });

  it('fires what it has when planning took long, before it goes on', async () => {
    const { runner, schedules, pass, clock, parts } = scripted();
    const of = parts.rules.of.bind(parts.rules);
    parts.rules.of = (schedule) => {
      clock.block(150);
      return of(schedule);
    };
    const [a, b, c] = ['a', 'b', 'c'].map((id) => dueSchedule({ id }));
    schedules.answers = [dueAnswer({ due: [a!, b!, c!] }), dueAnswer({ due: [c!] }), dueAnswer()];
    runner.start();
    await pass(0);
    expect(schedules.firings.map((each) => each.map(({ id }) => id))).toEqual([['a', 'b'], ['c']]);
    expect(schedules.asked.due).toBe(2);
  });
});
