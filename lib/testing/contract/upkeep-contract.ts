import { type UnservedLane } from '../../store/job-store.js';
import { type ContractBench } from './job-store-subject.js';

const DAY_MS = 86_400_000;

/** Questions about streams, partitions, retention. */
export function describeUpkeep(bench: ContractBench): void {
  const { it } = bench.runner;
  const handlers = [{ name: 'contract.job', version: 1 }];

  it('finds the oldest runnable job of a stream up to a place', async () => {
    const node = await bench.node();
    await node.inserted({ name: 'contract.other' });
    const old = await node.inserted();
    const claimed = await node.claimOne({ priority: 4 });
    const streams = [{ priority: 2 as const, upTo: claimed.place }];
    const answer = await bench.store.probe({ lane: node.bucket.lane, handlers, streams });
    bench.expect(Object.keys(answer.oldest)).toEqual(['2']);
    bench.expect(answer.tookMs >= 0).toBe(true);
    const [job] = await node.claim();
    bench.expect(job).toMatchObject({ id: old.id, place: answer.oldest[2] });
    bench.expect((await bench.store.probe({ lane: node.bucket.lane, handlers, streams })).oldest).toEqual({});
  });

  it('names the jobs that stand in the way and where to go on', async () => {
    const node = await bench.node();
    await node.inserted({ name: 'contract.other' });
    await node.inserted({ version: 7 });
    const own = await node.inserted();
    const [stream, ...others] = await bench.store.foreign({ lane: node.bucket.lane, handlers, floors: {} });
    bench.expect(others).toEqual([]);
    bench.expect(stream).toMatchObject({ priority: 2, foreign: 2, own: true, hidden: 0 });
    bench.expect([...(stream?.names ?? [])].sort()).toEqual(['contract.job', 'contract.other']);
    const { claimed } = await node.exchange({ want: 1, floors: { 2: stream?.resumeAt ?? '' } });
    bench.expect(claimed.map(({ id, place }) => [id, place])).toEqual([[own.id, stream?.resumeAt]]);
    bench
      .expect(await bench.store.foreign({ lane: node.bucket.lane, handlers, floors: {} }))
      .toMatchObject([{ foreign: 2, own: false }]);
  });

  it('finds due jobs in lanes that no running node has', async () => {
    const served = await bench.node();
    await served.inserted();
    const lane = `${served.bucket.lane}-misspelt`;
    await served.inserted({ lane, delayMs: DAY_MS });
    const mine = async (): Promise<readonly UnservedLane[]> =>
      (await bench.store.unservedLanes()).filter((found) => found.lane.startsWith(served.bucket.lane));
    bench.expect(await mine()).toEqual([]);
    await served.inserted({ lane, priority: 4, name: 'contract.b' });
    await served.inserted({ lane, priority: 0, name: 'contract.a' });
    const [found, ...others] = await mine();
    bench.expect(others).toEqual([]);
    bench.expect(found).toMatchObject({ lane, due: 2 });
    bench.expect([...(found?.names ?? [])].sort()).toEqual(['contract.a', 'contract.b']);
    await bench.later(DAY_MS, async () => {
      const [later] = await mine();
      bench.expect(later).toMatchObject({ lane, due: 3 });
      const oldestMs = later?.oldestMs ?? 0;
      bench.expect(oldestMs >= DAY_MS && oldestMs < DAY_MS + 60_000).toBe(true);
    });
    await bench.store.setNodeState(served.ref, 'draining');
    bench.expect((await mine()).length).toBe(2);
  });

  it('tells its time, which travel moves', async () => {
    const before = await bench.store.now();
    await bench.later(DAY_MS, async () => {
      const passedMs = (await bench.store.now()).getTime() - before.getTime();
      bench.expect(passedMs >= DAY_MS && passedMs < DAY_MS + 60_000).toBe(true);
    });
    bench.expect((await bench.store.now()).getTime() - before.getTime() < 60_000).toBe(true);
  });

  it('knows its own database behind a transaction, and tells its time there', async () => {
    await bench.transaction(async (transaction) => {
      bench.expect(await bench.store.reachedBy(transaction)).toBe(true);
    });
    const now = Number(await bench.store.now());
    const later = await bench.later(DAY_MS, () => bench.store.now());
    bench.expect(Math.abs(Number(later) - now - DAY_MS) < 60_000).toBe(true);
  });

  it('makes partitions ahead, from many callers at once', async () => {
    const answers = await Promise.all([20, 20, 20].map((days) => bench.store.ensurePartitions(days)));
    bench.expect(answers.every((ahead) => ahead >= 20)).toBe(true);
  });

  it('records on a day that nobody prepared, after making it', async () => {
    const node = await bench.node();
    await node.inserted();
    await bench.later(200 * DAY_MS, async () => {
      const [job] = await node.claim();
      if (!job) throw new Error('the job is due');
      const kind = await node.settle(job, { outcome: 'succeeded' }).then(
        () => 'recorded',
        (error: unknown) => (error as { kind?: string }).kind,
      );
      if (kind !== 'recorded') {
        bench.expect(kind).toBe('missing_partition');
        await bench.store.ensurePartitions(0);
        bench.expect((await node.settle(job, { outcome: 'succeeded' })).recorded).toEqual([job.id]);
      }
    });
  });

  it('forgets what is past its time and nothing else', async () => {
    const node = await bench.node();
    const large = JSON.stringify('y'.repeat(5_000));
    const done = await node.claimOne({
      payload: large,
      idempotencyKey: { key: node.bucket.id, expiresInMs: DAY_MS },
    });
    await node.settle(done, { outcome: 'succeeded' });
    const failed = await node.claimOne({ payload: large });
    await node.settle(failed, { outcome: 'failed', error: 'e' });
    const live = await node.inserted({ payload: large });
    const ages = { historyMs: 7 * DAY_MS, executionMs: 7 * DAY_MS, deadLetterMs: 30 * DAY_MS };
    await bench.store.retain(ages);
    bench.expect((await bench.store.get(done.id))?.status).toBe('succeeded');
    await bench.later(9 * DAY_MS, async () => {
      const report = await bench.store.retain(ages);
      bench.expect(report.refused).toEqual([]);
      bench.expect(report.idempotencyKeysDeleted >= 1).toBe(true);
      bench.expect(await bench.store.get(done.id)).toBe(undefined);
      bench.expect((await bench.store.get(failed.id))?.status).toBe('failed');
    });
    await bench.later(31 * DAY_MS, async () => {
      bench.expect((await bench.store.retain(ages)).deadLettersDeleted >= 1).toBe(true);
      bench.expect(await bench.store.get(failed.id)).toBe(undefined);
    });
    bench.expect((await bench.store.get(live.id))?.payload).toEqual(JSON.parse(large));
    await bench.store.ensurePartitions(14);
  });

  it('forgets the oldest history when there is more than it may take, but none of today', async () => {
    const node = await bench.node();
    const ages = { historyMs: 7 * DAY_MS, executionMs: 7 * DAY_MS, deadLetterMs: 7 * DAY_MS };
    const old = await node.claimOne();
    await node.settle(old, { outcome: 'succeeded' });
    await bench.later(2 * DAY_MS, async () => {
      const young = await node.claimOne();
      await node.settle(young, { outcome: 'succeeded' });
      bench.expect((await bench.store.retain({ ...ages, historyBytes: 1e12 })).droppedForSize).toEqual([]);
      bench.expect((await bench.store.get(old.id))?.status).toBe('succeeded');
      bench
        .expect((await bench.store.retain({ ...ages, historyBytes: 1 })).droppedForSize.length >= 1)
        .toBe(true);
      bench.expect(await bench.store.get(old.id)).toBe(undefined);
      bench.expect((await bench.store.get(young.id))?.status).toBe('succeeded');
    });
    await bench.store.ensurePartitions(14);
  });
}
