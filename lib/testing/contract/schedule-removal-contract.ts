import { uuidv7 } from 'uuidv7';
import { type ScheduleBench, type ScheduleCase } from './schedule-store-subject.js';

const WINDOW_MS = 300_000;

/** How schedules end: deleted by hand, or removed because no node has their annotation any more. */
export function describeRemoval(bench: ScheduleBench): void {
  /** A further node with these annotations. */
  const nodeWith = (
    each: ScheduleCase,
    schedules: readonly string[],
  ): ReturnType<typeof each.jobs.registerNode> =>
    each.jobs.registerNode({
      id: `node-${uuidv7()}`,
      host: 'contract',
      pid: 1,
      version: '1',
      lanes: [],
      handlers: [],
      schedules,
    });

  bench.it(
    'deletes a schedule with its occurrences, and cancels its jobs that are not running',
    async (each) => {
      const { id } = await each.written({ overlap: 'allow' });
      const other = await each.written();
      await each.busy(other.id);
      const [running] = [await each.busy(id)];
      const claimed = (await each.claim()).filter((job) => job.id === running.jobId);
      each.expect(claimed.length).toBe(1);
      const [pending, paused] = [
        each.run(each.at(1), { ifBusy: 'run' }),
        each.run(each.at(2), { ifBusy: 'run' }),
      ];
      await each.fire(id, [pending, paused, each.run(each.at(3), { ifBusy: 'wait' })]);
      await each.jobs.control({ kind: 'pause' }, { ids: [paused.jobId] });

      const deleted = await each.store.delete([id, 'none']);
      each.expect(deleted.map((one) => one.id)).toEqual([id]);
      each.expect([...(deleted[0]?.canceled ?? [])].sort()).toEqual([pending.jobId, paused.jobId].sort());
      each.expect(await each.find(id)).toBe(undefined);
      each.expect(await each.store.occurrences({ scheduleId: id, limit: 10 })).toEqual([]);
      for (const { jobId } of [pending, paused]) {
        each.expect((await each.jobs.get(jobId))?.status).toBe('canceled');
      }
      each.expect((await each.jobs.get(running.jobId))?.status).toBe('running');
      each.expect((await each.row(other.id)).liveJobs).toBe(1);
      each.expect(await each.store.delete([id])).toEqual([]);
      await each.succeed(claimed);
    },
  );

  bench.it('leaves no job behind when a schedule is deleted while it is fired', async (each) => {
    for (let round = 0; round < 10; round += 1) {
      const row = await each.written();
      const firing = each.firing(row);
      const fired = each.store.fire([firing]);
      const deleted = each.store.delete([row.id]);
      await Promise.all([fired, deleted]);
      const job = await each.jobs.get(firing.runs[0]?.jobId ?? '');
      each.expect(['canceled', undefined].includes(job?.status)).toBe(true);
      each.expect(await each.store.occurrences({ scheduleId: row.id, limit: 1 })).toEqual([]);
    }
  });

  bench.it('begins anew under an id that was deleted', async (each) => {
    const row = await each.written();
    await each.busy(row.id);
    await each.store.delete([row.id]);
    await each.store.write([{ spec: row, revision: undefined, anchor: each.now, nextAt: each.now }]);
    each
      .expect(await each.fire(row.id, [each.run(each.now)]))
      .toMatchObject({ outcome: 'fired', skipped: [] });
    each.expect((await each.row(row.id)).liveJobs).toBe(1);
  });

  bench.it('removes an annotated schedule that no node has for longer than the window', async (each) => {
    const { id } = await each.written({ origin: 'annotation', overlap: 'queue' });
    const node = await nodeWith(each, [id]);
    await each.busy(id);
    await each.fire(id, [each.run(each.at(1), { ifBusy: 'wait' })], { advanceTo: each.at(3_600_000) });
    await each.later(WINDOW_MS * 2, async () => each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]));

    await each.jobs.removeNode(node);
    each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]);
    await each.later(WINDOW_MS - 10_000, async () =>
      each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]),
    );
    each.expect((await each.row(id)).nextAt).toEqual(each.at(3_600_000));
    const before = await each.row(id);
    await each.later(WINDOW_MS + 10_000, async () =>
      each.expect(await each.store.sweep(WINDOW_MS)).toEqual([id]),
    );

    const row = await each.row(id);
    each.expect(row).toMatchObject({ nextAt: undefined, liveJobs: 0, waiting: 0 });
    each.expect(row.removedAt === undefined || row.revision === before.revision).toBe(false);
    each.expect(await each.store.trigger({ id, jobId: uuidv7(), ifBusy: 'run' })).toBe(undefined);
    const ids = async (removed: boolean): Promise<boolean> =>
      (await each.store.list({ limit: 1_000, removed })).some((listed) => listed.id === id);
    each.expect([await ids(false), await ids(true)]).toEqual([false, true]);
    each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]);

    const again = { spec: row, revision: row.revision, anchor: each.now, nextAt: each.now };
    each.expect(await each.store.write([again])).toEqual(['written']);
    each.expect((await each.row(id)).removedAt).toBe(undefined);
    each.expect(await each.fire(id, [each.run(each.at(5))])).toMatchObject({ outcome: 'fired', skipped: [] });
  });

  bench.it('begins to count anew when a node has it again meanwhile', async (each) => {
    const { id } = await each.written({ origin: 'annotation' });
    each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]);
    const node = await nodeWith(each, [id]);
    await each.jobs.removeNode(node);
    await each.later(WINDOW_MS + 10_000, async () => {
      each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]);
      const another = await nodeWith(each, [id, 'and another']);
      each.expect(await each.store.sweep(WINDOW_MS)).toEqual([]);
      await each.jobs.removeNode(another);
    });
    each.expect((await each.row(id)).removedAt).toBe(undefined);
  });

  bench.it('never removes what was made by a program, or what a node has', async (each) => {
    const api = await each.written({ origin: 'api' });
    const had = await each.written({ origin: 'annotation' });
    const nodes = [await nodeWith(each, []), await nodeWith(each, ['x', had.id])];
    each.expect(await each.store.sweep(0)).toEqual([]);
    await each.later(10 * WINDOW_MS, async () => each.expect(await each.store.sweep(0)).toEqual([]));
    for (const { id } of [api, had]) each.expect((await each.row(id)).removedAt).toBe(undefined);
    for (const node of nodes) await each.jobs.removeNode(node);
  });

  bench.it(
    'forgets occurrences by their age, never those that wait, and removed schedules with them',
    async (each) => {
      const { id } = await each.written({ overlap: 'queue' });
      await each.busy(id);
      await each.fire(id, [each.run(each.at(1), { ifBusy: 'wait' })], {
        missed: [{ from: each.at(-2), to: each.at(-2), count: 1 }],
      });
      const removed = await each.written({ origin: 'annotation' });
      await each.store.sweep(0);
      await each.later(1_000, async () => each.expect(await each.store.sweep(0)).toEqual([removed.id]));

      each.expect(await each.store.forget(3_600_000)).toBe(0);
      each.expect((await each.find(removed.id)) === undefined).toBe(false);
      await each.later(3_700_000, async () => each.expect(await each.store.forget(3_600_000)).toBe(2));
      const left = await each.store.occurrences({ scheduleId: id, limit: 10 });
      each.expect(left.map(({ outcome }) => outcome)).toEqual(['waiting']);
      each.expect(await each.find(removed.id)).toBe(undefined);
      each.expect((await each.find(id)) === undefined).toBe(false);
    },
  );
}
