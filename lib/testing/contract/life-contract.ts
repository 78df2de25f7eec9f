import { uuidv7 } from 'uuidv7';
import { type ContractBench } from './job-store-subject.js';

const DAY_MS = 86_400_000;

/** From insert to the end: what each outcome does to a job, and that the fence keeps everybody else out. */
export function describeLife(bench: ContractBench): void {
  const { it } = bench.runner;

  it('carries a job from insert to success', async () => {
    const node = await bench.node();
    const large = JSON.stringify({ text: 'x'.repeat(5_000) });
    const claimed = await node.claimOne({
      payload: large,
      tags: ['a', 'b "c"'],
      metadata: '{"m":1}',
      businessKey: node.bucket.id,
    });
    bench
      .expect(claimed)
      .toMatchObject({ executions: 1, failures: 0, crashes: 0, tags: ['a', 'b "c"'], metadata: { m: 1 } });
    bench.expect(claimed.payload).toEqual(JSON.parse(large));
    bench.expect(await bench.store.get(claimed.id)).toMatchObject({ status: 'running', node: node.ref.id });
    const answer = await node.settle(claimed, {
      outcome: 'succeeded',
      result: '{"ok":true}',
      progress: '100',
    });
    bench.expect(answer.recorded).toEqual([claimed.id]);
    const view = await bench.store.get(claimed.id);
    bench
      .expect(view)
      .toMatchObject({ status: 'succeeded', result: { ok: true }, progress: 100, node: node.ref.id });
    bench.expect(view?.payload).toEqual(JSON.parse(large));
    bench
      .expect(await bench.store.executions(claimed.id))
      .toMatchObject([{ number: 1, outcome: 'succeeded' }]);
  });

  it('keeps nothing of a success whose history is dropped', async () => {
    const node = await bench.node();
    const claimed = await node.claimOne();
    bench
      .expect((await node.settle(claimed, { outcome: 'succeeded', drop: true })).recorded)
      .toEqual([claimed.id]);
    bench.expect(await bench.store.get(claimed.id)).toBe(undefined);
  });

  it('retries after the delay, and tells the next execution what went wrong', async () => {
    const node = await bench.node();
    const first = await node.claimOne();
    await node.settle(first, { outcome: 'retried', error: 'broken pipe', delayMs: 60_000 });
    bench.expect(await node.claim()).toEqual([]);
    const [second] = await bench.later(61_000, () => node.claim());
    bench
      .expect(second)
      .toMatchObject({ id: first.id, executions: 2, failures: 1, lastError: 'broken pipe' });
    bench.expect(await bench.store.executions(first.id)).toMatchObject([
      { number: 1, outcome: 'retried', error: 'broken pipe' },
      { number: 2, outcome: 'running' },
    ]);
  });

  it('snoozes and releases without a charge', async () => {
    const node = await bench.node();
    const first = await node.claimOne();
    await node.settle(first, { outcome: 'snoozed', delayMs: 0 });
    const [second] = await node.claim();
    bench.expect(second).toMatchObject({ id: first.id, failures: 0, crashes: 0 });
    await node.settle({ id: first.id, claimSeq: second?.claimSeq ?? '' }, { outcome: 'released' });
    const [third] = await node.claim();
    bench.expect(third).toMatchObject({ id: first.id, failures: 0, crashes: 0 });
    bench
      .expect((await bench.store.executions(first.id)).map(({ outcome }) => outcome))
      .toEqual(['snoozed', 'released', 'running']);
  });

  it('finds a job whose id was made by a clock that is far ahead', async () => {
    const node = await bench.node();
    const ahead = (): string => {
      const ms = (Date.now() + 1.5 * DAY_MS).toString(16).padStart(12, '0');
      return `${ms.slice(0, 8)}-${ms.slice(8)}${uuidv7().slice(13)}`;
    };
    const id = ahead();
    const first = await node.claimOne({ id });
    await node.settle(first, { outcome: 'retried', error: 'e', delayMs: 0 });
    const [second] = await node.claim();
    if (!second) throw new Error('the retry is due');
    await node.settle(second, { outcome: 'succeeded' });
    bench.expect(await bench.store.get(id)).toMatchObject({ status: 'succeeded' });
    bench
      .expect(await bench.store.executions(id))
      .toMatchObject([{ outcome: 'retried' }, { outcome: 'succeeded' }]);
    bench.expect(await bench.store.cancel(id)).toEqual({ outcome: 'ended', status: 'succeeded' });
    bench.expect(await bench.store.redrive(id)).toEqual({ outcome: 'not_failed', status: 'succeeded' });
    const failed = await node.claimOne({ id: ahead() });
    await node.settle(failed, { outcome: 'failed', error: 'e' });
    bench.expect(await bench.store.get(failed.id)).toMatchObject({ status: 'failed' });
    bench.expect((await bench.store.redrive(failed.id)).outcome).toBe('redriven');
    const [again] = await node.claim();
    if (!again) throw new Error('the redriven job is due');
    await bench.store.cancel(again.id);
    const late = { jobId: again.id, claimSeq: again.claimSeq, outcome: 'succeeded' as const };
    bench.expect(await bench.store.recordLate(late)).toBe(true);
  });

  it('keeps a failed job in the dead letter and drives it again', async () => {
    const node = await bench.node();
    const claimed = await node.claimOne();
    await node.settle(claimed, { outcome: 'failed', error: 'no such order' });
    bench
      .expect(await bench.store.get(claimed.id))
      .toMatchObject({ status: 'failed', error: 'no such order' });
    bench
      .expect(await bench.store.redrive(claimed.id))
      .toMatchObject({ outcome: 'redriven', lane: node.bucket.lane });
    const [again] = await node.claim();
    bench.expect(again).toMatchObject({ id: claimed.id, executions: 2, failures: 0, crashes: 0 });
    bench.expect(Number(again?.claimSeq) > Number(claimed.claimSeq)).toBe(true);
    bench
      .expect((await bench.store.executions(claimed.id)).map(({ outcome }) => outcome))
      .toEqual(['failed', 'running']);
    bench.expect(await bench.store.redrive(claimed.id)).toEqual({ outcome: 'not_failed', status: 'running' });
  });

  it('discards what comes under a claim that no longer stands', async () => {
    const node = await bench.node();
    const claimed = await node.claimOne();
    await node.settle(claimed, { outcome: 'released' });
    const [next] = await node.claim();
    const late = await node.settle(claimed, { outcome: 'succeeded', result: '"late"' });
    bench.expect(late).toMatchObject({ recorded: [], lost: [claimed.id] });
    const progress = await node.exchange({
      progress: [{ id: claimed.id, claimSeq: claimed.claimSeq, value: '1' }],
    });
    bench.expect(progress.lost).toEqual([claimed.id]);
    bench
      .expect(await bench.store.get(claimed.id))
      .toMatchObject({ status: 'running', claimSeq: next?.claimSeq, progress: undefined });
  });

  it('keeps the last progress of a claim that stands', async () => {
    const node = await bench.node();
    const { id, claimSeq } = await node.claimOne();
    await node.exchange({ progress: [{ id, claimSeq, value: '{"done":7}' }], wait: true });
    bench.expect(await bench.store.get(id)).toMatchObject({ status: 'running', progress: { done: 7 } });
  });

  it('claims by priority, then by due time; what is not due stays', async () => {
    const node = await bench.node();
    const future = await node.inserted({ delayMs: DAY_MS });
    const low = await node.inserted({ priority: 0 });
    const first = await node.inserted({ priority: 4 });
    const second = await node.inserted({ priority: 4 });
    const answer = await node.exchange({ want: 10 });
    bench.expect(answer.claimed.map(({ id }) => id)).toEqual([first.id, second.id, low.id]);
    bench.expect((answer.nextDueInMs ?? 0) > DAY_MS / 2).toBe(true);
    bench.expect((await bench.store.get(future.id))?.status).toBe('pending');
  });

  it('lifts an overdue job by one priority for each boost interval', async () => {
    const node = await bench.node();
    const old = await node.inserted({ priority: 1, runAt: new Date(Date.now() - 3 * 60_000 - 30_000) });
    const urgent = await node.inserted({ priority: 3 });
    const { claimed } = await node.exchange({ want: 10, priorityBoostMs: 60_000 });
    bench.expect(claimed.map(({ id }) => id)).toEqual([old.id, urgent.id]);
  });

  it('leaves jobs of other handlers and of newer versions', async () => {
    const node = await bench.node();
    await node.inserted({ name: 'contract.other' });
    await node.inserted({ version: 2 });
    const own = await node.inserted();
    bench.expect((await node.claim()).map(({ id }) => id)).toEqual([own.id]);
  });

  it('never gives one job to two buckets', async () => {
    const one = await bench.node();
    const two = await bench.nodeIn(one.bucket.lane);
    await bench.store.insert(Array.from({ length: 40 }, () => one.job()));
    const claims = await Promise.all([one, two, one, two].map((node) => node.claim(15)));
    const ids = claims.flat().map(({ id }) => id);
    bench.expect(new Set(ids).size).toBe(ids.length);
    bench.expect(ids.length).toBe(40);
  });
}
