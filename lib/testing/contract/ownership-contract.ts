import { uuidv7 } from 'uuidv7';
import { type BucketRef, type BucketStatus } from '../../store/job-store.js';
import { type ContractBench } from './job-store-subject.js';
import { noticesOf } from './notices-of.js';

/** Who owns a claim: buckets, restarts under the same id, lost replies, cancellation. */
export function describeOwnership(bench: ContractBench): void {
  const { it } = bench.runner;

  it('gives every registration an epoch of its own', async () => {
    const { ref } = await bench.node('returning-node');
    await bench.store.removeNode(ref);
    const again = await bench.node('returning-node');
    bench.expect(Number(again.ref.epoch) > Number(ref.epoch)).toBe(true);
    await bench.store.setNodeState(again.ref, 'draining');
  });

  it('tells a bucket that it is deposed: it claims nothing', async () => {
    const node = await bench.node();
    await node.inserted();
    bench.expect(await bench.store.setBucketStatus(node.bucket, 'active', 'completing')).toBe(true);
    bench.expect(await node.exchange({ want: 5 })).toMatchObject({ owned: true, claimed: [] });
    bench.expect(await bench.store.setBucketStatus(node.bucket, 'completing', 'ready_to_delete')).toBe(true);
    bench.expect(await node.exchange({ want: 5 })).toMatchObject({ owned: false, claimed: [] });
  });

  it('takes back what an older epoch held, for one crash each, within the budget', async () => {
    const id = 'crashing-node';
    const { bucket } = await bench.node(id);
    let node = await bench.nodeIn(bucket.lane, id);
    const job = await node.claimOne();
    let zombie = { node, claimSeq: job.claimSeq };
    for (const crashes of [1, 2]) {
      node = await bench.nodeIn(bucket.lane, id);
      bench.expect(await bench.store.rescueOwn(node.ref, 2)).toMatchObject({ recovered: 1, failed: 0 });
      const pending = await bench.store.get(job.id);
      bench.expect(Number(pending?.claimSeq) > Number(zombie.claimSeq)).toBe(true);
      const late = await zombie.node.settle(
        { id: job.id, claimSeq: zombie.claimSeq },
        { outcome: 'succeeded' },
      );
      bench.expect(late).toMatchObject({ owned: false, lost: [job.id] });
      const current = node;
      const [again] = await bench.later(crashes * 2_000, () => current.claim());
      bench.expect(again).toMatchObject({ id: job.id, crashes, failures: 0 });
      zombie = { node, claimSeq: again?.claimSeq ?? '' };
    }
    const last = await bench.nodeIn(bucket.lane, id);
    bench.expect(await bench.store.rescueOwn(last.ref, 2)).toMatchObject({ recovered: 0, failed: 1 });
    bench.expect(await bench.store.get(job.id)).toMatchObject({ status: 'failed', crashes: 3 });
    const outcomes = (await bench.store.executions(job.id)).map(({ outcome }) => outcome);
    bench.expect(outcomes).toEqual(['crashed', 'crashed', 'crashed']);
    bench.expect(await bench.store.rescueOwn(last.ref, 2)).toEqual({ buckets: 0, recovered: 0, failed: 0 });
  });

  it('takes back what runs in a bucket that does not exist, and nothing else', async () => {
    const node = await bench.node();
    const other = await bench.node();
    const [lost, worn, safe] = [await node.claimOne(), await node.claimOne(), await other.claimOne()];
    bench.expect(await bench.store.rescueOrphans(3)).toEqual({ buckets: 0, recovered: 0, failed: 0 });
    await bench.deleteBucket(node.bucket.id);
    bench.expect(await bench.store.rescueOrphans(3)).toEqual({ buckets: 1, recovered: 2, failed: 0 });
    bench
      .expect(await bench.store.get(lost.id))
      .toMatchObject({ status: 'pending', crashes: 1, failures: 0 });
    bench.expect(await bench.store.get(safe.id)).toMatchObject({ status: 'running', crashes: 0 });
    bench
      .expect(await node.settle(lost, { outcome: 'succeeded' }))
      .toMatchObject({ owned: false, lost: [lost.id] });
    const late = { jobId: lost.id, claimSeq: lost.claimSeq, outcome: 'succeeded' as const };
    bench.expect(await bench.store.recordLate(late)).toBe(true);
    const error = 'its bucket was deleted; outcome unknown';
    bench
      .expect(await bench.store.executions(lost.id))
      .toMatchObject([{ outcome: 'crashed', error, lateOutcome: 'succeeded' }]);
    const next = await bench.nodeIn(node.bucket.lane);
    bench.expect((await next.claim()).map(({ id }) => id)).toEqual([lost.id, worn.id]);
    await bench.deleteBucket(next.bucket.id);
    bench.expect(await bench.store.rescueOrphans(1)).toMatchObject({ buckets: 1, recovered: 0, failed: 2 });
    bench.expect(await bench.store.get(worn.id)).toMatchObject({ status: 'failed', crashes: 2 });
  });

  it('claims what crashed twice only when asked, and one at a time', async () => {
    const id = 'poisoned-node';
    const { bucket } = await bench.node(id);
    let node = await bench.nodeIn(bucket.lane, id);
    await bench.store.insert([node.job(), node.job()]);
    for (const wait of [0, 10_000]) {
      const current = node;
      const claimed = await bench.later(wait, () => current.claim());
      bench.expect(claimed.length).toBe(2);
      node = await bench.nodeIn(bucket.lane, id);
      await bench.store.rescueOwn(node.ref, 5);
    }
    const last = node;
    const innocent = await last.inserted();
    await bench.later(60_000, async () => {
      const { claimed } = await last.exchange({ want: 10, suspect: false });
      bench.expect(claimed.map((job) => job.id)).toEqual([innocent.id]);
      bench.expect((await last.exchange({ want: 10, suspect: true })).claimed.length).toBe(1);
    });
  });

  it('keeps the last word of a late worker, once', async () => {
    const node = await bench.node('late-node');
    const job = await node.claimOne();
    const next = await bench.nodeIn(node.bucket.lane, 'late-node');
    await bench.store.rescueOwn(next.ref, 3);
    const late = { jobId: job.id, claimSeq: job.claimSeq, outcome: 'succeeded' as const };
    bench.expect(await bench.store.recordLate(late)).toBe(true);
    bench.expect(await bench.store.recordLate({ ...late, outcome: 'failed', error: 'no' })).toBe(false);
    bench
      .expect(await bench.store.executions(job.id))
      .toMatchObject([
        { outcome: 'crashed', lateOutcome: 'succeeded', error: 'node late-node stopped; outcome unknown' },
      ]);
  });

  it('keeps what a body had to say that went on after its timeout, retried or failed for good', async () => {
    const node = await bench.node();
    const first = await node.claimOne();
    const late = { jobId: first.id, outcome: 'succeeded' as const };
    await node.settle(first, { outcome: 'retried', error: 'timeout', delayMs: 0 });
    bench.expect(await bench.store.recordLate({ ...late, claimSeq: first.claimSeq })).toBe(true);
    bench.expect(await bench.store.recordLate({ ...late, claimSeq: first.claimSeq })).toBe(false);
    const [last] = await node.claim();
    if (!last) throw new Error('the retry is due');
    bench.expect(await bench.store.recordLate({ ...late, claimSeq: last.claimSeq })).toBe(false);
    await node.settle(last, { outcome: 'failed', error: 'timeout' });
    bench.expect(await bench.store.recordLate({ ...late, claimSeq: last.claimSeq })).toBe(true);
    bench.expect(await bench.store.recordLate({ ...late, claimSeq: last.claimSeq })).toBe(false);
    const both = [
      { outcome: 'retried', lateOutcome: 'succeeded' },
      { outcome: 'failed', lateOutcome: 'succeeded', error: 'timeout' },
    ];
    bench.expect(await bench.store.executions(first.id)).toMatchObject(both);
    bench.expect((await bench.store.get(first.id))?.status).toBe('failed');
    await bench.store.redrive(first.id);
    bench.expect(await bench.store.executions(first.id)).toMatchObject(both);
  });

  it('finds after a lost reply what was claimed and what was recorded', async () => {
    const node = await bench.node();
    const claims = [];
    for (let count = 0; count < 5; count += 1) claims.push(await node.claimOne());
    const [done, retried, dropped, gone, stray] = claims as [(typeof claims)[0], ...typeof claims];
    if (!retried || !dropped || !gone || !stray) throw new Error('five jobs were claimed');
    await node.settle(done, { outcome: 'succeeded' });
    await node.settle(retried, { outcome: 'retried', error: 'e', delayMs: 60_000 });
    await node.settle(dropped, { outcome: 'succeeded', drop: true });
    await bench.store.cancel(gone.id);
    const answer = await bench.store.reconcile({
      buckets: [node.bucket],
      known: [done, retried, dropped, gone],
      unsettled: [done, retried, { ...dropped, drop: true }, gone],
    });
    bench.expect([...answer.recorded].sort()).toEqual([done.id, retried.id, dropped.id].sort());
    bench.expect(answer.lost).toEqual([gone.id]);
    bench
      .expect(answer.strays.map(({ bucketId, job }) => [bucketId, job.id]))
      .toEqual([[node.bucket.id, stray.id]]);
    bench.expect(answer.deposed).toEqual([]);
    const known = await bench.store.reconcile({ buckets: [node.bucket], known: [stray], unsettled: [stray] });
    bench.expect(known).toEqual({ strays: [], recorded: [], lost: [], deposed: [] });
  });

  it('keeps a bucket that holds a job, under the status that it has', async () => {
    const node = await bench.node();
    const job = await node.claimOne();
    bench.expect(await bench.store.setBucketStatus(node.bucket, 'active', 'completing')).toBe(true);
    const remove = (): Promise<boolean> =>
      bench.store.setBucketStatus(node.bucket, 'completing', 'ready_to_delete');
    bench.expect(await remove()).toBe(false);
    await node.settle(job, { outcome: 'succeeded' });
    bench.expect(await remove()).toBe(true);
  });

  it('lets each step of a bucket be repeated, because an answer may be lost, but no other one', async () => {
    const { bucket } = await bench.node();
    const move = (...[from, to]: [BucketStatus, BucketStatus]): Promise<boolean> =>
      bench.store.setBucketStatus(bucket, from, to);
    for (const [from, to] of [
      ['active', 'completing'],
      ['completing', 'ready_to_drain'],
      ['ready_to_drain', 'draining'],
      ['draining', 'ready_to_delete'],
    ] as const) {
      bench.expect([await move(from, to), await move(from, to)]).toEqual([true, true]);
      if (from !== 'draining') bench.expect(await move('active', 'lost')).toBe(false);
    }
    bench.expect(await move('active', 'completing')).toBe(false);
  });

  it('opens one bucket under one id, however often it is asked', async () => {
    const node = await bench.node();
    const lane = `lane-${uuidv7()}`;
    const id = uuidv7();
    const open = (): Promise<BucketRef> => bench.store.openBucket(node.ref, lane, 2, id);
    const [first, second] = await Promise.all([open(), open()]);
    bench.expect(first).toMatchObject({ id, lane, priority: 2 });
    bench.expect(second).toEqual(first);
    await bench.store.setBucketStatus(first, 'active', 'completing');
    bench.expect(await open()).toEqual(first);
    const other = await bench.node();
    const theirs = await bench.store.openBucket(other.ref, lane, 2, id).catch(() => undefined);
    bench.expect(theirs).toBe(undefined);
  });

  it('says which process has the id of a node now, and opens no bucket for the one that had it', async () => {
    const { ref } = await bench.node('taken-node');
    await bench.node('taken-node');
    const refused = await bench.store.openBucket(ref, 'taken').catch((error: unknown) => error);
    bench.expect(refused).toMatchObject({ code: 'NODE_DEPOSED' });
    bench.expect(typeof (refused as { by?: { host?: unknown } }).by?.host).toBe('string');
  });

  it('names deposed buckets in a reconcile', async () => {
    const node = await bench.node('deposed-node');
    const job = await node.claimOne();
    await bench.store.rescueOwn((await bench.nodeIn(node.bucket.lane, 'deposed-node')).ref, 3);
    const answer = await bench.store.reconcile({ buckets: [node.bucket], known: [job], unsettled: [job] });
    bench.expect(answer).toEqual({ strays: [], recorded: [], lost: [job.id], deposed: [node.bucket.id] });
  });

  it('cancels a pending job at once', async () => {
    const node = await bench.node();
    const { id } = await node.inserted();
    const identity = { lane: node.bucket.lane, name: 'contract.job' };
    bench.expect(await bench.store.cancel(id)).toEqual({ outcome: 'canceled', ...identity });
    bench.expect(await bench.store.get(id)).toMatchObject({ status: 'canceled' });
    bench.expect(await bench.store.cancel(id)).toEqual({ outcome: 'ended', status: 'canceled' });
    bench
      .expect(await bench.store.cancel('0190a000-0000-7000-8000-000000000000'))
      .toEqual({ outcome: 'not_found' });
    bench.expect(await bench.store.executions(id)).toEqual([]);
  });

  it('cuts off a running job and leaves its owner a notice', async () => {
    const node = await bench.node();
    const { id, claimSeq } = await node.claimOne();
    bench
      .expect(await bench.store.cancel(id))
      .toMatchObject({ outcome: 'canceled_running', claimSeq, node: node.ref.id });
    bench
      .expect(await noticesOf(bench.store, node.ref))
      .toEqual([{ jobId: id, claimSeq, reason: 'canceled' }]);
    bench.expect(await noticesOf(bench.store, node.ref)).toEqual([]);
    bench.expect((await node.settle({ id, claimSeq }, { outcome: 'succeeded' })).lost).toEqual([id]);
    bench.expect(await bench.store.get(id)).toMatchObject({ status: 'canceled' });
    bench.expect(await bench.store.executions(id)).toMatchObject([{ outcome: 'canceled', claimSeq }]);
  });

  it('does not redrive while a live job holds the business key', async () => {
    const node = await bench.node();
    const businessKey = node.bucket.id;
    const failed = await node.claimOne({ businessKey });
    await node.settle(failed, { outcome: 'failed', error: 'e' });
    const holder = await node.inserted({ businessKey });
    bench
      .expect(await bench.store.redrive(failed.id))
      .toEqual({ outcome: 'held', holder: holder.id, businessKey });
    bench.expect((await bench.store.get(failed.id))?.status).toBe('failed');
    await bench.store.cancel(holder.id);
    bench.expect((await bench.store.redrive(failed.id)).outcome).toBe('redriven');
  });
}
