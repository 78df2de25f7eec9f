import { uuidv7 } from 'uuidv7';
import { type EndedJob } from '../../store/job-store.js';
import { type ContractBench } from './job-store-subject.js';

/** How jobs ended, for those who await them. */
export function describeEnded(bench: ContractBench): void {
  const { it } = bench.runner;

  /** As the answer has it, in the order of the ids. */
  const inOrder = (ended: readonly EndedJob[], ids: readonly string[]): (EndedJob | undefined)[] =>
    ids.map((id) => ended.find((job) => job.id === id));

  it('tells how each job ended, which are nowhere, and nothing of live ones', async () => {
    const node = await bench.node();
    const succeeded = await node.claimOne();
    await node.settle(succeeded, { outcome: 'succeeded', result: '{"a":[null,1]}' });
    const nil = await node.claimOne();
    await node.settle(nil, { outcome: 'succeeded', result: 'null' });
    const nothing = await node.claimOne();
    await node.settle(nothing, { outcome: 'succeeded' });
    const failed = await node.claimOne();
    await node.settle(failed, { outcome: 'failed', error: 'Error: no' });
    const dropped = await node.claimOne();
    await node.settle(dropped, { outcome: 'succeeded', result: '1', drop: true });
    const running = await node.claimOne();
    const pending = await node.inserted();
    const canceled = await node.inserted();
    await bench.store.cancel(canceled.id);
    const missing = uuidv7();
    const ids = [succeeded, nil, nothing, failed, canceled].map(({ id }) => id);
    const asked = [pending.id, ...ids, running.id, dropped.id, missing];
    for (const everywhere of [false, true]) {
      const { ended, absent, postponed } = await bench.store.ended(asked, everywhere);
      const counts = {
        name: 'contract.job',
        error: undefined,
        result: undefined,
        executions: 1,
        failures: 0,
        crashes: 0,
      };
      bench.expect(inOrder(ended, ids)).toEqual([
        { ...counts, id: succeeded.id, status: 'succeeded', result: { a: [null, 1] } },
        { ...counts, id: nil.id, status: 'succeeded', result: null },
        { ...counts, id: nothing.id, status: 'succeeded' },
        { ...counts, id: failed.id, status: 'failed', error: 'Error: no', failures: 1 },
        { ...counts, id: canceled.id, status: 'canceled', executions: 0 },
      ]);
      bench.expect(ended.length).toBe(ids.length);
      bench.expect([...absent].sort()).toEqual([dropped.id, missing].sort());
      bench.expect(postponed).toEqual([]);
    }
  });

  it('takes a job that was redriven for live again', async () => {
    const node = await bench.node();
    const job = await node.claimOne();
    await node.settle(job, { outcome: 'failed', error: 'no' });
    await bench.store.redrive(job.id);
    bench.expect(await bench.store.ended([job.id])).toEqual({ ended: [], absent: [], postponed: [] });
  });

  it('finds everywhere what an id that was made by a wrong clock hides', async () => {
    const node = await bench.node();
    const id = 'e1000000-0000-7000-8000-' + uuidv7().slice(-12);
    await node.inserted({ id });
    await bench.store.cancel(id);
    const { ended, absent } = await bench.store.ended([id], true);
    bench.expect(ended.map((job) => job.id)).toEqual([id]);
    bench.expect(absent).toEqual([]);
  });
}
