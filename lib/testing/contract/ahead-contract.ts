import { type ClaimedJob, type ExchangeAnswer, type ExchangeRequest } from '../../store/job-store.js';
import { type ContractBench, type ContractNode } from './job-store-subject.js';

type Ahead = NonNullable<ExchangeRequest['ahead']>;

const keyOf = ({ id, claimSeq }: ClaimedJob): { id: string; claimSeq: string } => ({ id, claimSeq });

/** Jobs that a bucket claims ahead of its free slots, and the start marks that say which of them have begun. */
export function describeAhead(bench: ContractBench): void {
  const { it } = bench.runner;

  const turn = (
    node: ContractNode,
    ahead: Partial<Ahead>,
    rest: Partial<ExchangeRequest> = {},
  ): Promise<ExchangeAnswer> =>
    node.exchange({ ahead: { beginNow: 0, begin: [], mark: 0, forget: [], ...ahead }, ...rest });
  const buffered = async (node: ContractNode, count: number): Promise<readonly ClaimedJob[]> => {
    await bench.store.insert(Array.from({ length: count }, () => node.job()));
    return (await turn(node, {}, { want: count })).claimed;
  };
  const crash = async (node: ContractNode): Promise<unknown> => {
    const { id } = node.ref;
    const again = await bench.store.registerNode({
      id,
      host: 'contract',
      pid: 2,
      version: '1',
      lanes: [],
      handlers: [],
    });
    return bench.store.rescueOwn(again, 3);
  };

  it('begins as many as it is told, in claim order, and keeps the others waiting', async () => {
    const node = await bench.node();
    const jobs = [node.job({ priority: 1 }), node.job({ priority: 4 }), node.job({ priority: 3 })];
    await bench.store.insert(jobs);
    const { claimed } = await turn(node, { beginNow: 1 }, { want: 3 });
    bench.expect(claimed.map(({ id, begun, executions }) => ({ id, begun, executions }))).toEqual([
      { id: jobs[1]?.id, begun: true, executions: 1 },
      { id: jobs[2]?.id, begun: false, executions: 1 },
      { id: jobs[0]?.id, begun: false, executions: 1 },
    ]);
    bench.expect(await bench.store.executions(jobs[0]?.id ?? '')).toEqual([]);
    bench
      .expect(await bench.store.get(jobs[0]?.id ?? ''))
      .toMatchObject({ status: 'running', executions: 0 });
    bench.expect(await bench.store.executions(jobs[1]?.id ?? '')).toMatchObject([{ outcome: 'running' }]);
  });

  it('has begun what a start mark names', async () => {
    const node = await bench.node();
    const [job] = await buffered(node, 1);
    if (!job) throw new Error('nothing was claimed');
    bench.expect((await turn(node, { begin: [keyOf(job)], mark: 1 })).gone).toEqual([]);
    const [execution] = await bench.store.executions(job.id);
    bench.expect(execution).toMatchObject({ outcome: 'running', number: 1 });
    const { begunAt } = (await bench.store.get(job.id)) ?? {};
    bench.expect(begunAt).toEqual(execution?.beganAt);
  });

  it('counts an execution when its outcome is recorded, from when it began', async () => {
    const node = await bench.node();
    const [done, retried, unbegun] = await buffered(node, 3);
    if (!done || !retried || !unbegun) throw new Error('nothing was claimed');
    await turn(node, { begin: [keyOf(done), keyOf(retried)], mark: 1 });
    const answer = await turn(
      node,
      { forget: [1] },
      {
        settle: [
          { ...keyOf(done), outcome: 'succeeded', result: '1', ranMs: 5_000 },
          { ...keyOf(retried), outcome: 'retried', error: 'no', delayMs: 0, ranMs: 1_000 },
          { ...keyOf(unbegun), outcome: 'released', error: 'the node stops' },
        ],
      },
    );
    bench.expect(answer).toMatchObject({ skipped: [], lost: [] });
    const ended = await bench.store.get(done.id);
    bench.expect(ended).toMatchObject({ status: 'succeeded', executions: 1 });
    bench.expect((ended?.endedAt?.getTime() ?? 0) - (ended?.begunAt?.getTime() ?? 0)).toBe(5_000);
    bench.expect(await bench.store.get(retried.id)).toMatchObject({ status: 'pending', executions: 1 });
    bench.expect(await bench.store.executions(retried.id)).toMatchObject([{ outcome: 'retried', number: 1 }]);
    bench.expect(await bench.store.get(unbegun.id)).toMatchObject({ status: 'pending', executions: 0 });
    bench.expect(await bench.store.executions(unbegun.id)).toEqual([]);
  });

  it('charges a crash to what had begun, by claim or by mark, and gives the rest back as it came', async () => {
    const node = await bench.node();
    await bench.store.insert(Array.from({ length: 4 }, () => node.job()));
    const { claimed } = await turn(node, { beginNow: 1 }, { want: 4 });
    const [byClaim, byMark, waiting, alsoWaiting] = claimed;
    if (!byClaim || !byMark || !waiting || !alsoWaiting) throw new Error('too few were claimed');
    await turn(node, { begin: [keyOf(byMark)], mark: 1 });
    bench.expect(await crash(node)).toMatchObject({ buckets: 1, recovered: 2, failed: 0, unbegun: 2 });
    for (const { id } of [byClaim, byMark]) {
      bench.expect(await bench.store.get(id)).toMatchObject({ status: 'pending', crashes: 1, executions: 1 });
      bench.expect(await bench.store.executions(id)).toMatchObject([{ outcome: 'crashed', number: 1 }]);
    }
    for (const { id } of [waiting, alsoWaiting]) {
      bench.expect(await bench.store.get(id)).toMatchObject({ status: 'pending', crashes: 0, executions: 0 });
      bench.expect(await bench.store.executions(id)).toEqual([]);
    }
    // The owner that comes late has lost both kinds.
    const late = await turn(node, { begin: [keyOf(waiting)], mark: 2 });
    bench.expect(late).toMatchObject({ owned: false, gone: [waiting.id] });
  });

  it('charges the claim that was marked, not a later one of the same job', async () => {
    const node = await bench.node();
    const [job] = await buffered(node, 1);
    if (!job) throw new Error('nothing was claimed');
    await turn(node, { begin: [keyOf(job)], mark: 1 });
    const released = { ...keyOf(job), outcome: 'released' as const, error: 'back', ranMs: 1 };
    await turn(node, {}, { settle: [released] });
    const { claimed } = await turn(node, {}, { want: 1 });
    bench.expect(claimed.map(({ id }) => id)).toEqual([job.id]);
    bench.expect(await crash(node)).toMatchObject({ recovered: 0, unbegun: 1 });
    bench.expect(await bench.store.get(job.id)).toMatchObject({ crashes: 0 });
  });

  it('does not begin what was canceled, or is to pause', async () => {
    const node = await bench.node();
    const [canceled, paused, fine] = await buffered(node, 3);
    if (!canceled || !paused || !fine) throw new Error('nothing was claimed');
    await bench.store.cancel(canceled.id);
    await bench.store.control({ kind: 'pause' }, { ids: [paused.id] });
    const { gone } = await turn(node, { begin: [canceled, paused, fine].map(keyOf), mark: 1 });
    bench.expect([...gone].sort()).toEqual([canceled.id, paused.id].sort());
    bench.expect(await bench.store.executions(canceled.id)).toEqual([]);
    bench.expect(await bench.store.get(canceled.id)).toMatchObject({ status: 'canceled', executions: 0 });
    await turn(node, {}, { settle: [{ ...keyOf(paused), outcome: 'released', error: 'to pause' }] });
    bench.expect(await bench.store.get(paused.id)).toMatchObject({ status: 'paused', executions: 0 });
  });

  it('keeps a canceled job that had begun under a mark as an execution', async () => {
    const node = await bench.node();
    const [job] = await buffered(node, 1);
    if (!job) throw new Error('nothing was claimed');
    await turn(node, { begin: [keyOf(job)], mark: 1 });
    await bench.store.cancel(job.id);
    bench.expect(await bench.store.executions(job.id)).toMatchObject([{ outcome: 'canceled', number: 1 }]);
    bench.expect(await bench.store.get(job.id)).toMatchObject({ status: 'canceled', executions: 1 });
  });

  it('counts the execution of one that records its outcome in a transaction of the application', async () => {
    const node = await bench.node();
    const [job] = await buffered(node, 1);
    if (!job) throw new Error('nothing was claimed');
    await turn(node, { begin: [keyOf(job)], mark: 1 });
    await bench.transaction(async (transaction) => {
      const stood = await bench.store.settleWithin(transaction, { ...keyOf(job), outcome: 'succeeded' });
      bench.expect(stood).toBe(true);
    });
    const ended = await bench.store.get(job.id);
    bench.expect(ended).toMatchObject({ status: 'succeeded', executions: 1 });
    bench.expect(ended?.begunAt instanceof Date).toBe(true);
  });

  it('finds what waits in a buffer that nobody knows as not begun', async () => {
    const node = await bench.node();
    const [known, stray] = await buffered(node, 2);
    if (!known || !stray) throw new Error('nothing was claimed');
    const { strays } = await bench.store.reconcile({
      buckets: [node.bucket],
      known: [keyOf(known)],
      unsettled: [],
    });
    bench.expect(strays.map(({ job }) => [job.id, job.begun])).toEqual([[stray.id, false]]);
  });
}
