import { uuidv7 } from 'uuidv7';
import { recurrenceOf } from '../../jobs/recurrence.js';
import { type ScheduleBench } from './schedule-store-subject.js';

/** What becomes of an occurrence while a job of its schedule is live. */
export function describeOverlap(bench: ScheduleBench): void {
  bench.it('skips, and records it', async (each) => {
    const { id } = await each.written();
    await each.busy(id);
    const second = each.run(each.at(60_000));
    each
      .expect(await each.fire(id, [second]))
      .toMatchObject({ outcome: 'fired', jobs: [], skipped: [second.at], waiting: [] });
    each
      .expect(await each.row(id))
      .toMatchObject({ liveJobs: 1, lastAt: each.now, nextAt: each.at(120_000) });
    const [newest] = await each.store.occurrences({ scheduleId: id, limit: 1 });
    each.expect(newest).toMatchObject({ scheduledFor: second.at, outcome: 'skipped', jobId: undefined });
  });

  bench.it('counts a job as live until it has ended: pending, running, paused', async (each) => {
    const { id } = await each.written();
    const job = await each.busy(id);
    let ms = 60_000;
    const outcomeNow = async (): Promise<string> => {
      const outcome = await each.fire(id, [each.run(each.at((ms += 60_000)))]);
      return outcome.outcome === 'fired' && outcome.jobs.length > 0 ? 'ran' : 'skipped';
    };
    each.expect(await outcomeNow()).toBe('skipped');
    await each.jobs.control({ kind: 'pause' }, { ids: [job.jobId] });
    each.expect(await outcomeNow()).toBe('skipped');
    await each.jobs.control({ kind: 'resume' }, { ids: [job.jobId] });
    const claimed = await each.claim();
    each.expect(claimed.length).toBe(1);
    each.expect(await outcomeNow()).toBe('skipped');
    await each.succeed(claimed);
    each.expect(await outcomeNow()).toBe('ran');
  });

  bench.it('lets run what is allowed to', async (each) => {
    const { id } = await each.written({ overlap: 'allow' });
    await each.busy(id);
    each
      .expect(await each.fire(id, [each.run(each.at(1), { ifBusy: 'run' })]))
      .toMatchObject({ skipped: [] });
    each.expect((await each.row(id)).liveJobs).toBe(2);
  });

  bench.it('queues: what waits becomes a job, the oldest first, one after the other', async (each) => {
    const { id } = await each.written({ overlap: 'queue' }, each.at(-3_000));
    const first = await each.busy(id);
    const runs = [-2_000, -1_000].map((ms) => each.run(each.at(ms), { ifBusy: 'wait', missed: -ms }));
    each
      .expect(await each.fire(id, runs))
      .toMatchObject({ outcome: 'fired', jobs: [], skipped: [], waiting: runs.map(({ at }) => at) });
    each.expect(await each.store.promote(10)).toEqual([]);
    let previous = first.at;
    for (const run of runs) {
      await each.succeed(await each.claim());
      const promoted = await each.store.promote(10);
      each.expect(promoted).toMatchObject([
        {
          scheduleId: id,
          at: run.at,
          jobId: run.jobId,
          lane: each.lane,
          name: 'contract.job',
          missed: run.missed,
        },
      ]);
      each.expect(await each.store.promote(10)).toEqual([]);
      each
        .expect(recurrenceOf((await each.jobs.get(run.jobId))?.metadata))
        .toEqual({ scheduleId: id, scheduledFor: run.at, previous, missed: run.missed });
      each.expect((await each.row(id)).lastAt).toEqual(run.at);
      previous = run.at;
    }
    each.expect((await each.row(id)).waiting).toBe(0);
  });

  bench.it('says that something can be promoted, with the due ones and with a heartbeat', async (each) => {
    const { id } = await each.written({ overlap: 'queue' });
    await each.busy(id);
    await each.fire(id, [each.run(each.at(1), { ifBusy: 'wait' })], { advanceTo: undefined });
    const look = async (): Promise<unknown> => {
      const { promotable } = await each.store.due({ node: each.node, leaseMs: 1_000, limit: 1 });
      const beat = await each.jobs.beat({ node: each.node, graceMs: 3_600_000, running: 0, lagMs: 0 });
      return [promotable, beat.scheduleInMs];
    };
    each.expect(await look()).toEqual([false, undefined]);
    await each.succeed(await each.claim());
    each.expect(await look()).toEqual([true, 0]);
    each.expect((await each.store.promote(1)).length).toBe(1);
    each.expect(await look()).toEqual([false, undefined]);
  });

  bench.it('promotes once, however many ask', async (each) => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      const { id } = await each.written({ overlap: 'queue' });
      ids.push(id);
      await each.busy(id);
      await each.fire(
        id,
        [1, 2].map((ms) => each.run(each.at(ms), { ifBusy: 'wait' })),
      );
    }
    await each.succeed(await each.claim());
    const promoted = (await Promise.all([0, 1, 2, 3].map(() => each.store.promote(10)))).flat();
    each.expect(promoted.map(({ scheduleId }) => scheduleId).sort()).toEqual([...ids].sort());
    each.expect((await each.store.promote(10)).length).toBe(0);
  });

  bench.it('lets no run overtake one that waits', async (each) => {
    const { id } = await each.written({ overlap: 'queue' });
    await each.busy(id);
    const [waits, next] = [
      each.run(each.at(1), { ifBusy: 'wait' }),
      each.run(each.at(2), { ifBusy: 'wait' }),
    ];
    await each.fire(id, [waits]);
    await each.succeed(await each.claim());
    each.expect(await each.fire(id, [next])).toMatchObject({ jobs: [], waiting: [next.at] });
    each.expect((await each.store.promote(10)).map(({ jobId }) => jobId)).toEqual([waits.jobId]);
  });

  bench.it('lets runs of one firing follow each other, but none behind a job of another', async (each) => {
    const { id } = await each.written({}, each.at(-3_000));
    const runs = [-3_000, -2_000].map((ms) => each.run(each.at(ms), { ifBusy: 'follow' }));
    each.expect(await each.fire(id, runs)).toMatchObject({
      jobs: [{ jobId: runs[0]?.jobId }],
      waiting: [runs[1]?.at],
      skipped: [],
    });
    const later = [-1_000, 0].map((ms) => each.run(each.at(ms), { ifBusy: 'follow' }));
    each
      .expect(await each.fire(id, later))
      .toMatchObject({ jobs: [], waiting: [], skipped: later.map(({ at }) => at) });
  });

  bench.it('catches up in order: the first becomes a job, the others wait for it', async (each) => {
    const { id } = await each.written({ misfire: { catchUp: 3 } }, each.at(-3_000));
    const runs = [-3_000, -2_000, -1_000].map((ms) => each.run(each.at(ms), { ifBusy: 'wait' }));
    each.expect(await each.fire(id, runs)).toMatchObject({
      jobs: [{ jobId: runs[0]?.jobId }],
      waiting: [runs[1]?.at, runs[2]?.at],
    });
    const ran: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const claimed = await each.claim();
      ran.push(...claimed.map((job) => job.id));
      await each.succeed(claimed);
      await each.store.promote(10);
    }
    each.expect(ran).toEqual(runs.map(({ jobId }) => jobId));
  });

  bench.it('lets a thousand wait, and skips what comes then', async (each) => {
    const { id } = await each.written({ overlap: 'queue' });
    await each.busy(id);
    const runs = Array.from({ length: 1_003 }, (_, n) => each.run(each.at(n + 1), { ifBusy: 'wait' }));
    const outcome = await each.fire(id, runs);
    each.expect(outcome.outcome === 'fired' && outcome.waiting.length).toBe(1_000);
    each
      .expect(outcome.outcome === 'fired' && outcome.skipped)
      .toEqual(runs.slice(1_000).map(({ at }) => at));
    const further = await each.fire(id, [each.run(each.at(5_000), { ifBusy: 'wait' })]);
    each.expect(further).toMatchObject({ waiting: [], skipped: [each.at(5_000)] });
  });

  bench.it('triggers an occurrence now, also of a paused schedule', async (each) => {
    const row = await each.written({}, each.at(3_600_000));
    await each.store.mark(row.id, row.revision, { kind: 'paused' });
    const jobId = uuidv7();
    const outcome = await each.store.trigger({ id: row.id, jobId, ifBusy: undefined });
    const at = outcome?.outcome === 'enqueued' ? outcome.job.at : each.at(-1);
    each.expect(at.getTime() >= each.now.getTime()).toBe(true);
    each
      .expect(outcome)
      .toMatchObject({ job: { scheduleId: row.id, jobId, lane: each.lane, dueInMs: 0, missed: 0 } });
    const [occurrence] = await each.store.occurrences({ scheduleId: row.id, limit: 1 });
    each.expect(occurrence).toMatchObject({ scheduledFor: at, triggered: true, outcome: 'enqueued', jobId });
    each.expect(await each.row(row.id)).toMatchObject({ paused: true, nextAt: undefined, lastAt: at });
    const [job] = await each.claim();
    each.expect(recurrenceOf(job?.metadata)).toMatchObject({ scheduleId: row.id, scheduledFor: at });
    const unknown = await each.store.trigger({ id: 'none', jobId: uuidv7(), ifBusy: 'run' });
    each.expect(unknown).toBe(undefined);
  });

  bench.it('triggers by the overlap of the schedule, unless it is told', async (each) => {
    const { id } = await each.written();
    await each.busy(id);
    const trigger = async (ifBusy?: 'run' | 'skip' | 'wait'): Promise<string | undefined> =>
      (await each.store.trigger({ id, jobId: uuidv7(), ifBusy }))?.outcome;
    each.expect(await trigger()).toBe('skipped');
    each.expect(await trigger('wait')).toBe('waiting');
    each.expect(await trigger('run')).toBe('enqueued');
    const rows = await each.store.occurrences({ scheduleId: id, limit: 3 });
    each.expect(rows.map(({ outcome, triggered }) => [outcome, triggered])).toEqual([
      ['enqueued', true],
      ['waiting', true],
      ['skipped', true],
    ]);
  });

  bench.it('triggers with a payload of its own, at once or after a wait', async (each) => {
    const { id } = await each.written({ template: { payload: '{"own":false}' } });
    const large = { own: true, text: 'x'.repeat(10_000) };
    await each.store.trigger({ id, jobId: uuidv7(), ifBusy: 'wait', payload: '{"own":1}' });
    const waits = await each.store.trigger({
      id,
      jobId: uuidv7(),
      ifBusy: 'wait',
      payload: JSON.stringify(large),
    });
    each.expect(waits?.outcome).toBe('waiting');
    const payloads: unknown[] = [];
    for (let n = 0; n < 2; n += 1) {
      const claimed = await each.claim();
      payloads.push(...claimed.map(({ payload }) => payload));
      await each.succeed(claimed);
      await each.store.promote(10);
    }
    each.expect(payloads).toEqual([{ own: 1 }, large]);
  });

  bench.it('gives each of many triggers a time of its own, and lets one of them run', async (each) => {
    const { id } = await each.written({}, undefined);
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => each.store.trigger({ id, jobId: uuidv7(), ifBusy: 'wait' })),
    );
    each.expect(outcomes.filter((outcome) => outcome?.outcome === 'enqueued').length).toBe(1);
    each.expect(await each.row(id)).toMatchObject({ liveJobs: 1, waiting: 7 });
  });

  bench.it('does not let a trigger and a firing at once both find it free', async (each) => {
    for (let round = 0; round < 10; round += 1) {
      const row = await each.written();
      await Promise.all([
        each.store.fire([each.firing(row)]),
        each.store.trigger({ id: row.id, jobId: uuidv7(), ifBusy: 'skip' }),
      ]);
      each.expect((await each.row(row.id)).liveJobs).toBe(1);
    }
  });
}
