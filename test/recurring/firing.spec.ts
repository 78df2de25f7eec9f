import { beforeEach, describe, expect, it } from '@jest/globals';
import { tellSchedule } from '../../lib/recurring/recurring-lane.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { type Misfire, type Overlap } from '../../lib/jobs/recurrence.js';
import { deferred } from '../support/engine-node.js';
import { annotated, recurringFixture } from './recurring-fixture.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const msOf = (dates: readonly Date[]): number[] => dates.map((date) => date.getTime());
/** In hours after the first. */
const hours = (dates: readonly Date[]): number[] =>
  dates.map((date) => (date.getTime() - dates[0]!.getTime()) / HOUR_MS);

describe('a node fires what is due', () => {
  const fixture = recurringFixture();
  beforeEach(() => {
    fixture.runs.length = 0;
  });

  it('by its timer, at the planned time, each occurrence once, and tells the method which one it is', async () => {
    const one = await fixture.node({
      handlers: { work: fixture.method() },
      schedules: [annotated({ id: 'tick', expression: '@every 1s' })],
    });
    await one.runtime.start();
    await fixture.ran(3);
    const { anchor } = await fixture.row('tick');
    const [first, second, third] = fixture.runs;
    expect(first).toMatchObject({ id: 'tick', previous: undefined, missed: 0 });
    expect(first!.scheduledFor.getTime()).toBe(anchor.getTime() + SECOND_MS);
    expect(second).toMatchObject({ previous: first!.scheduledFor, missed: 0 });
    expect(second!.scheduledFor.getTime()).toBe(anchor.getTime() + 2 * SECOND_MS);
    expect(third).toMatchObject({ previous: second!.scheduledFor });
    for (const { startedAt, scheduledFor } of fixture.runs.slice(0, 3)) {
      const lateMs = startedAt.getTime() - scheduledFor.getTime();
      expect(lateMs).toBeGreaterThanOrEqual(0);
      // On a machine that is busy with other things.
      expect(lateMs).toBeLessThan(SECOND_MS);
    }
    expect(await fixture.occurrences('tick')).toMatchObject([
      { scheduledFor: first!.scheduledFor, outcome: 'enqueued', jobId: first!.jobId },
      { scheduledFor: second!.scheduledFor, outcome: 'enqueued', jobId: second!.jobId },
      { scheduledFor: third!.scheduledFor, outcome: 'enqueued', jobId: third!.jobId },
    ]);
  });

  it('a job of a method with @Job tells of its occurrence by ctx.recurrence, an ordinary one of none', async () => {
    const seen: unknown[] = [];
    const one = await fixture.node({
      handlers: { work: (payload, { recurrence }) => void seen.push([payload, recurrence]) },
      schedules: [annotated({ id: 'a', expression: '@every 1h' }, { payload: '{"n":1}' })],
    });
    await one.runtime.start();
    const plain = one.events.next('settled');
    await one.enqueue({ payload: '{"n":2}' });
    await plain;
    await fixture.away('a', '1 second');
    const settled = one.events.next('settled');
    tellSchedule(one.messages);
    await settled;
    const { lastAt } = await fixture.row('a');
    expect(seen).toEqual([
      [{ n: 2 }, undefined],
      [{ n: 1 }, { scheduleId: 'a', scheduledFor: lastAt, previous: undefined, missed: 0 }],
    ]);
  });

  describe('after an outage of three hours over an hourly schedule', () => {
    it.each<[Misfire, number[], number[], number[]]>([
      ['skip', [], [], [0, 1, 2]],
      ['once', [2], [2], [0, 1]],
      [{ catchUp: 2 }, [1, 2], [1, 0], [0]],
      [{ catchUp: 9 }, [0, 1, 2], [0, 0, 0], []],
    ])(
      'misfire %j: exactly these run, are told of these, and these are recorded',
      async (misfire, run, told, missed) => {
        const schedules = [annotated({ id: 'hourly', expression: '@every 1h', misfire })];
        const before = await fixture.node({ handlers: { work: fixture.method() }, schedules });
        await before.runtime.start();
        await before.runtime.close();
        await fixture.away('hourly', '2 hours 30 minutes');
        const after = await fixture.node({ handlers: { work: fixture.method() }, schedules });
        const looked = after.events.next('schedules_looked');
        await after.runtime.start();
        await looked;
        await fixture.ran(run.length);
        const occurrences = await fixture.occurrences('hourly');
        const all = hours(occurrences.map(({ scheduledFor }) => scheduledFor));
        expect(all).toEqual([0, 1, 2]);
        expect(
          fixture.runs.map(({ scheduledFor }) =>
            msOf(occurrences.map((each) => each.scheduledFor)).indexOf(scheduledFor.getTime()),
          ),
        ).toEqual(run);
        expect(fixture.runs.map((each) => each.missed)).toEqual(told);
        expect(all.filter((_, index) => occurrences[index]!.outcome === 'missed')).toEqual(missed);
        const { nextAt } = await fixture.row('hourly');
        expect(nextAt!.getTime() - occurrences[0]!.scheduledFor.getTime()).toBe(3 * HOUR_MS);
      },
    );

    it('misfire skip: the next run is told of those that were missed, also when the outage is over long since', async () => {
      const schedules = [annotated({ id: 'hourly', expression: '@every 1h', misfire: 'skip' })];
      const one = await fixture.node({ handlers: { work: fixture.method() }, schedules });
      await one.runtime.start();
      const looked = one.events.next('schedules_looked', ({ due }) => due === 1);
      await fixture.away('hourly', '2 hours 30 minutes');
      tellSchedule(one.messages);
      await looked;
      expect(fixture.runs).toEqual([]);
      // While the first job is live, the next occurrence would be skipped.
      const ended = one.events.next('schedule_job_ended');
      one.real.travel(HOUR_MS / 2);
      tellSchedule(one.messages);
      await ended;
      expect(fixture.runs).toMatchObject([{ missed: 3 }]);
      one.real.travel(1.5 * HOUR_MS);
      tellSchedule(one.messages);
      await fixture.ran(2);
      expect(fixture.runs[1]).toMatchObject({ missed: 0, previous: fixture.runs[0]!.scheduledFor });
    });

    it('one that is on time again runs as ever, beside what the policy says', async () => {
      const one = await fixture.node({
        handlers: { work: fixture.method() },
        schedules: [
          annotated({ id: 'once', expression: '@every 1h', misfire: 'once' }),
          annotated({ id: 'catch up', expression: '@every 1h', misfire: { catchUp: 1 } }),
        ],
      });
      await one.runtime.start();
      const looked = one.events.next('schedules_looked', ({ due }) => due === 2);
      await fixture.database.query(
        `update ratchet.schedule set next_at = date_trunc('milliseconds', now()) - interval '3 hours 1 second',
                anchor_at = date_trunc('milliseconds', now()) - interval '4 hours 1 second'`,
      );
      tellSchedule(one.messages);
      await looked;
      await fixture.ran(3);
      const of = (id: string): number[] =>
        fixture.runs.filter((run) => run.id === id).map(({ missed }) => missed);
      expect([of('once'), of('catch up')]).toEqual([[3], [2, 0]]);
    });

    it('a month of outage over a schedule of each second costs neither time nor rows', async () => {
      const one = await fixture.node({
        handlers: { work: fixture.method() },
        schedules: [annotated({ id: 'tick', expression: '@every 1s', misfire: 'once' })],
      });
      await one.runtime.start();
      await fixture.ran(1);
      const before = fixture.runs.length;
      await fixture.away('tick', '30 days');
      tellSchedule(one.messages);
      await fixture.ran(before + 1);
      // Those of the seconds that the node has been there for are on time, and run.
      const { missed } = fixture.runs[before]!;
      expect(missed).toBeLessThanOrEqual(30 * 86_400);
      expect(missed).toBeGreaterThan(30 * 86_400 - 12);
      expect((await fixture.occurrences('tick')).length).toBeLessThan(100);
    });
  });

  describe('while a job of the schedule is live', () => {
    /** Occurrences, some hours late, come with the first; each look of the node is one more. */
    async function busy(overlap: Overlap, maxRetries = 0) {
      const gate = deferred();
      const failing = { fails: maxRetries > 0 };
      const one = await fixture.node({
        handlers: {
          work: {
            policy: { maxRetries, backoff: { type: 'fixed', delay: '1h', jitter: 0 } },
            run: fixture.method(async () => {
              if (failing.fails) throw new TypeError('not now');
              await gate.promise;
            }),
          },
        },
        schedules: [
          annotated(
            { id: 'a', expression: '@every 1h', overlap },
            { maxRetries: maxRetries > 0 ? undefined : 0 },
          ),
        ],
      });
      await one.runtime.start();
      await fixture.away('a', '1 second');
      tellSchedule(one.messages);
      await fixture.ran(1);
      let hoursAhead = 0;
      const nextHour = async (): Promise<void> => {
        const looked = one.events.next('schedules_looked', ({ due }) => due === 1);
        one.real.travel((hoursAhead += 1) * HOUR_MS);
        tellSchedule(one.messages);
        await looked;
      };
      return { one, gate, failing, nextHour };
    }

    it('overlap skip: the next one does not run, is recorded and told; after its end they run again', async () => {
      const { one, gate, nextHour } = await busy('skip');
      const skipped = one.events.next('schedule_skipped');
      await nextHour();
      const [first, second] = await fixture.occurrences('a');
      expect([first!.outcome, second!.outcome]).toEqual(['enqueued', 'skipped']);
      expect(await skipped).toEqual({
        scheduleId: 'a',
        scheduledFor: second!.scheduledFor,
        reason: 'overlap',
      });
      const ended = one.events.next('schedule_job_ended');
      gate.resolve();
      await ended;
      await nextHour();
      await fixture.ran(2);
      expect(fixture.runs[1]).toMatchObject({ previous: first!.scheduledFor, missed: 0 });
    });

    it('overlap skip: one that waits for its retry is live', async () => {
      const { one, failing, nextHour } = await busy('skip', 3);
      await one.events.next('settled', ({ outcome }) => outcome === 'retried');
      failing.fails = false;
      const skipped = one.events.next('schedule_skipped');
      await nextHour();
      await skipped;
      expect((await fixture.occurrences('a')).map(({ outcome }) => outcome)).toEqual(['enqueued', 'skipped']);
    });

    it('overlap allow: they run beside it', async () => {
      const { gate, nextHour } = await busy('allow');
      await nextHour();
      await nextHour();
      await fixture.ran(3);
      gate.resolve();
      expect(hours(fixture.runs.map(({ scheduledFor }) => scheduledFor))).toEqual([0, 1, 2]);
    });

    it('overlap queue: they run after it, one after the other, in order, each at once when the one before has ended', async () => {
      const { one, gate, nextHour } = await busy('queue');
      for (let n = 0; n < 3; n += 1) await nextHour();
      expect((await fixture.occurrences('a')).map(({ outcome }) => outcome)).toEqual([
        'enqueued',
        'waiting',
        'waiting',
        'waiting',
      ]);
      const lives: number[] = [];
      one.events.on('schedule_fired', () => lives.push(one.runtime.running));
      gate.resolve();
      await fixture.ran(4);
      expect(hours(fixture.runs.map(({ scheduledFor }) => scheduledFor))).toEqual([0, 1, 2, 3]);
      expect(fixture.runs.slice(1).map(({ previous }) => previous)).toEqual(
        fixture.runs.slice(0, 3).map(({ scheduledFor }) => scheduledFor),
      );
      expect(Math.max(...lives)).toBeLessThanOrEqual(1);
      expect((await fixture.occurrences('a')).map(({ outcome }) => outcome)).not.toContain('waiting');
    });
  });

  it('a firing whose reply was lost is made again, and nothing runs twice', async () => {
    const one = await fixture.node({
      handlers: { work: fixture.method() },
      schedules: [
        annotated({ id: 'a', expression: '@every 1h', overlap: 'allow' }),
        annotated({ id: 'b', expression: '@every 1h', overlap: 'allow' }),
      ],
    });
    await one.runtime.start();
    await fixture.away('a', '1 second');
    await fixture.away('b', '1 second');
    let lost = 0;
    one.debug.at('recurring.fired', () => {
      lost += 1;
      return lost > 1 ? undefined : Promise.reject(new StoreError('unknown', 'STORE_FAULT: cut', undefined));
    });
    const fault = one.events.next('fault', ({ where }) => where === 'recurring schedules');
    const recovered = one.events.next('recovered', ({ where }) => where === 'recurring schedules');
    tellSchedule(one.messages);
    await fault;
    await recovered;
    await fixture.ran(2);
    await fixture.away('a', '1 second');
    tellSchedule(one.messages);
    await fixture.ran(3);
    expect(fixture.runs.map(({ id }) => id).sort()).toEqual(['a', 'a', 'b']);
    expect(await fixture.database.query('select count(*)::int as n from ratchet.occurrence')).toEqual([
      { n: 3 },
    ]);
  });

  it('a schedule whose row is broken is shown with what is wrong, and the others run', async () => {
    const one = await fixture.node({
      handlers: { work: fixture.method() },
      schedules: ['bad rule', 'bad zone', 'bad backoff', 'good'].map((id) =>
        annotated({ id, expression: '@every 1h' }),
      ),
    });
    await one.runtime.start();
    await fixture.database.query(`update ratchet.schedule set expression = 'at dawn' where id = 'bad rule'`);
    await fixture.database.query(`update ratchet.schedule set time_zone = 'Mars/Base' where id = 'bad zone'`);
    await fixture.database.query(`update ratchet.schedule set backoff = '"soon"' where id = 'bad backoff'`);
    const broken = one.count('schedule_broken', 3);
    for (const id of ['bad rule', 'bad zone', 'bad backoff', 'good']) await fixture.away(id, '1 second');
    tellSchedule(one.messages);
    await Promise.all([fixture.ran(1), broken]);
    expect(fixture.runs).toMatchObject([{ id: 'good' }]);
    for (const [id, fault] of [
      ['bad rule', /RECURRING_BAD_EXPRESSION.*at dawn/],
      ['bad zone', /RECURRING_BAD_TIME_ZONE.*Mars\/Base/],
      ['bad backoff', /backoff/],
    ] as const) {
      expect(await fixture.row(id)).toMatchObject({ fault: expect.stringMatching(fault), nextAt: undefined });
    }
    const lines = fixture.logs.filter(({ level }) => level === 'error').map(({ line }) => line);
    expect(lines).toHaveLength(3);
    expect(lines.join('\n')).toMatch(/the recurring schedule "bad rule" is broken/);
    // From then on nobody looks at them, and a start of the node mends what its code says.
    await one.runtime.close();
    const next = await fixture.node({
      handlers: { work: fixture.method() },
      schedules: [annotated({ id: 'bad rule', expression: '@every 1h' })],
    });
    await next.runtime.start();
    expect(await fixture.row('bad rule')).toMatchObject({ fault: undefined, nextAt: expect.any(Date) });
  });

  it('a schedule whose handler no node has makes its job and waits for it; the others run', async () => {
    const one = await fixture.node({
      handlers: { work: fixture.method() },
      schedules: [
        annotated({ id: 'nobody', expression: '@every 1h' }, { name: 'gone' }),
        annotated({ id: 'good', expression: '@every 1h' }),
      ],
    });
    await one.runtime.start();
    await fixture.away('nobody', '1 second');
    await fixture.away('good', '1 second');
    tellSchedule(one.messages);
    await fixture.ran(1);
    expect(fixture.runs).toMatchObject([{ id: 'good' }]);
    expect(await fixture.row('nobody')).toMatchObject({ served: false, liveJobs: 1 });
  });
});
