import { uuidv7 } from 'uuidv7';
import { recurrenceOf } from '../../jobs/recurrence.js';
import { type ScheduleRow } from '../../store/schedule-store.js';
import { HOLDER, LEASE_MS, type ScheduleBench } from './schedule-store-subject.js';

/** When a schedule is due, and that each of its occurrences becomes one job. */
export function describeFiring(bench: ScheduleBench): void {
  bench.it(
    'says what is due to the node that has the lease, and to the others how long that one has it',
    async (each) => {
      const row = await each.written();
      const other = { id: `other-${uuidv7()}`, epoch: '1' };
      const ask = (node: typeof other): ReturnType<typeof each.store.due> =>
        each.store.due({ node, leaseMs: LEASE_MS, limit: 10 });
      await each.later(2 * LEASE_MS, async () => {
        each.expect((await ask(HOLDER)).due.map(({ id }) => id)).toEqual([row.id]);
        const held = await ask(other);
        each.expect(held.due).toEqual([]);
        const heldForMs = held.heldForMs ?? 0;
        each.expect(heldForMs > 0 && heldForMs <= LEASE_MS).toBe(true);
      });
      await each.later(3 * LEASE_MS + 1_000, async () => {
        each.expect((await ask(other)).due.map(({ id }) => id)).toEqual([row.id]);
        each.expect((await ask(HOLDER)).due).toEqual([]);
      });
      await each.later(5 * LEASE_MS, async () => {
        each.expect((await ask(HOLDER)).due.length).toBe(1);
      });
    },
  );

  bench.it('asks nobody for the lease while nothing is due', async (each) => {
    await each.written({}, each.at(3_600_000));
    await each.later(10 * LEASE_MS, async () => {
      for (const id of ['a', 'b']) {
        const answer = await each.store.due({ node: { id, epoch: '1' }, leaseMs: LEASE_MS, limit: 10 });
        each.expect(answer).toMatchObject({ due: [], more: false, promotable: false, heldForMs: undefined });
        const inMs = answer.nextInMs ?? 0;
        each.expect(inMs > 0 && inMs <= 3_600_000 - 10 * LEASE_MS).toBe(true);
      }
    });
  });

  bench.it('tells a node with its heartbeat when the next one is due', async (each) => {
    const beat = async (): Promise<number | undefined> =>
      (await each.jobs.beat({ node: each.node, graceMs: 3_600_000, running: 0, lagMs: 0 })).scheduleInMs;
    each.expect(await beat()).toBe(undefined);
    const { id } = await each.written({}, each.at(3_600_000));
    const inMs = (await beat()) ?? 0;
    each.expect(inMs > 3_500_000 && inMs <= 3_600_000).toBe(true);
    await each.later(3_600_000, async () => each.expect(await beat()).toBe(0));
    const { revision } = await each.row(id);
    await each.store.mark(id, revision, { kind: 'paused' });
    each.expect(await beat()).toBe(undefined);
  });

  bench.it('gives the oldest first, and says that there are more', async (each) => {
    const rows = [];
    for (const ms of [-30, -10, -20]) rows.push(await each.written({}, each.at(ms)));
    const answer = await each.store.due({ node: HOLDER, leaseMs: LEASE_MS, limit: 2 });
    each.expect(answer.due.map(({ id }) => id)).toEqual([rows[0]?.id, rows[2]?.id]);
    each.expect(answer.more).toBe(true);
  });

  bench.it('makes a job of an occurrence, as the template says', async (each) => {
    const { id } = await each.written(
      {
        template: {
          payload: '{"b":[1]}',
          priority: 3,
          version: 1,
          maxRetries: 5,
          backoff: { type: 'none', delayMs: 0, maxDelayMs: 0, jitter: 0 },
          timeoutMs: 7_000,
          tags: ['x', 'y'],
        },
      },
      each.at(-1_000),
    );
    const due = await each.due(id);
    each
      .expect(due)
      .toMatchObject({ id, nextAt: each.at(-1_000), anchor: each.now, untold: 0, misfire: 'once' });
    const run = each.run(each.at(-1_000), { missed: 3 });
    const outcome = await each.fire(id, [run], { advanceTo: each.at(60_000) });
    each.expect(outcome).toMatchObject({
      id,
      outcome: 'fired',
      jobs: [
        {
          scheduleId: id,
          at: run.at,
          jobId: run.jobId,
          lane: each.lane,
          priority: 3,
          name: 'contract.job',
          missed: 3,
          dueInMs: 0,
        },
      ],
      skipped: [],
      waiting: [],
    });
    each.expect(await each.row(id)).toMatchObject({ nextAt: each.at(60_000), lastAt: run.at, liveJobs: 1 });
    const [job] = await each.claim();
    each.expect(job).toMatchObject({
      id: run.jobId,
      name: 'contract.job',
      payload: { b: [1] },
      scheduledAt: run.at,
      maxRetries: 5,
      backoff: { type: 'none', delayMs: 0, maxDelayMs: 0, jitter: 0 },
      timeoutMs: 7_000,
      tags: ['x', 'y'],
    });
    each
      .expect(recurrenceOf(job?.metadata))
      .toEqual({ scheduleId: id, scheduledFor: run.at, previous: undefined, missed: 3 });
  });

  bench.it('tells a run of the one before it, and delays it by its jitter', async (each) => {
    const { id } = await each.written({ overlap: 'allow' });
    const first = each.run(each.at(0), { ifBusy: 'run' });
    const second = each.run(each.at(1_000), { ifBusy: 'run', delayMs: 3_600_000 });
    const outcome = await each.fire(id, [first, second], { advanceTo: each.at(2_000) });
    const jobs = outcome.outcome === 'fired' ? outcome.jobs : [];
    const dueInMs = jobs[1]?.dueInMs ?? 0;
    each.expect(dueInMs > 3_500_000 && dueInMs <= 3_601_000).toBe(true);
    each.expect((await each.jobs.get(second.jobId))?.scheduledAt).toEqual(each.at(3_601_000));
    each
      .expect(recurrenceOf((await each.jobs.get(second.jobId))?.metadata))
      .toMatchObject({ scheduledFor: second.at, previous: first.at });
    const third = each.run(each.at(2_000), { ifBusy: 'run' });
    await each.fire(id, [third], { advanceTo: undefined });
    each
      .expect(recurrenceOf((await each.jobs.get(third.jobId))?.metadata))
      .toMatchObject({ scheduledFor: third.at, previous: second.at });
    each.expect(await each.row(id)).toMatchObject({ nextAt: undefined, lastAt: third.at });
  });

  bench.it('carries payloads of every size', async (each) => {
    for (const payload of [null, { text: 'x'.repeat(100_000) }]) {
      const { id } = await each.written({ template: { payload: JSON.stringify(payload) } });
      await each.fire(id, [each.run(each.now)]);
      const [job] = await each.claim();
      each.expect(job?.payload).toEqual(payload);
    }
  });

  bench.it('fires an occurrence once, however many fire it', async (each) => {
    const rows: ScheduleRow[] = [];
    for (let n = 0; n < 10; n += 1) rows.push(await each.written({ overlap: 'allow' }));
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        each.store.fire(
          rows.map((row) => each.firing(row, { runs: [each.run(each.now, { ifBusy: 'run' })] })),
        ),
      ),
    );
    const fired = answers.flat().filter(({ outcome }) => outcome === 'fired');
    each.expect(fired.map(({ id }) => id).sort()).toEqual(rows.map(({ id }) => id).sort());
    for (const { id } of rows) each.expect((await each.row(id)).liveJobs).toBe(1);
  });

  bench.it('fires nothing that was fired or changed since it was seen', async (each) => {
    const row = await each.written({ overlap: 'allow' });
    const stale = each.firing(row);
    await each.fire(row.id, [each.run(each.now)]);
    each.expect(await each.store.fire([stale])).toEqual([{ id: row.id, outcome: 'superseded' }]);

    const changed = each.firing(await each.row(row.id));
    const write = { spec: row, revision: row.revision, anchor: each.now, nextAt: 'keep' } as const;
    each.expect(await each.store.write([write])).toEqual(['written']);
    each.expect(await each.store.fire([changed])).toEqual([{ id: row.id, outcome: 'superseded' }]);
    each
      .expect(await each.store.fire([each.firing({ ...row, id: 'none' })]))
      .toEqual([{ id: 'none', outcome: 'superseded' }]);
    each.expect((await each.row(row.id)).liveJobs).toBe(1);
  });

  bench.it('makes no second job of a time, also when a schedule is set back', async (each) => {
    const row = await each.written({ overlap: 'allow' });
    await each.fire(row.id, [each.run(each.now, { ifBusy: 'run' })]);
    await each.store.write([{ spec: row, revision: row.revision, anchor: each.now, nextAt: each.now }]);
    const again = await each.fire(row.id, [each.run(each.now, { ifBusy: 'run' })]);
    each.expect(again).toEqual({ id: row.id, outcome: 'fired', jobs: [], skipped: [], waiting: [] });
    each.expect((await each.row(row.id)).liveJobs).toBe(1);
  });

  bench.it('remembers what was missed, one by one and as ranges, newest first', async (each) => {
    const { id } = await each.written({}, each.at(-9_000));
    const missed = [
      { from: each.at(-9_000), to: each.at(-5_000), count: 5 },
      { from: each.at(-4_000), to: each.at(-4_000), count: 1 },
    ];
    const run = each.run(each.at(-3_000), { missed: 6 });
    await each.fire(id, [run], { missed });
    const rows = await each.store.occurrences({ scheduleId: id, limit: 10 });
    each.expect(rows).toMatchObject([
      {
        scheduledFor: run.at,
        through: run.at,
        count: 1,
        outcome: 'enqueued',
        triggered: false,
        jobId: run.jobId,
        jobStatus: 'pending',
      },
      { scheduledFor: each.at(-4_000), count: 1, outcome: 'missed', jobId: undefined, jobStatus: undefined },
      { scheduledFor: each.at(-9_000), through: each.at(-5_000), count: 5, outcome: 'missed' },
    ]);
    const timesOf = async (request: object): Promise<Date[]> =>
      (await each.store.occurrences({ scheduleId: id, limit: 10, ...request })).map(
        ({ scheduledFor }) => scheduledFor,
      );
    each.expect(await timesOf({ before: each.at(-3_000) })).toEqual([each.at(-4_000), each.at(-9_000)]);
    each.expect(await timesOf({ since: each.at(-4_000) })).toEqual([each.at(-3_000), each.at(-4_000)]);
    each.expect(await timesOf({ limit: 1 })).toEqual([each.at(-3_000)]);
    await each.succeed(await each.claim());
    each.expect((await each.store.occurrences({ scheduleId: id, limit: 1 }))[0]?.jobStatus).toBe('succeeded');
  });

  bench.it('adds up what no run was told of, until one is', async (each) => {
    const { id } = await each.written();
    const missed = (count: number, ms: number): { from: Date; to: Date; count: number }[] => [
      { from: each.at(ms), to: each.at(ms), count },
    ];
    await each.fire(id, [], { missed: missed(3, 0), advanceTo: each.at(-2) });
    each.expect((await each.due(id))?.untold).toBe(3);
    await each.fire(id, [], { missed: missed(4, 1), advanceTo: each.at(-1) });
    each.expect((await each.due(id))?.untold).toBe(7);
    await each.fire(id, [each.run(each.at(2))], { missed: missed(1, 3), advanceTo: each.at(-1) });
    each.expect((await each.due(id))?.untold).toBe(0);
    // The job of that one is live: this run is skipped, and is told nothing.
    await each.fire(id, [each.run(each.at(4))], { missed: missed(2, 5), advanceTo: each.at(-1) });
    each.expect((await each.due(id))?.untold).toBe(2);
  });
}
