import { uuidv7 } from 'uuidv7';
import {
  type ClaimedJob,
  type ControlPlace,
  type JobStore,
  type LostReport,
  type NodeRef,
  type NodeRegistration,
} from '../../store/job-store.js';
import { type ContractBench, ContractNode } from './job-store-subject.js';

/** Longer than the suite takes: by the clock alone, no node of it is ever past the grace. */
const GRACE_MS = 3_600_000;
const MINUTE_MS = 60_000;
const PAST_GRACE_MS = GRACE_MS + MINUTE_MS;

/** Thrown to have a transaction rolled back. */
const ROLLBACK = new Error('rolled back by the contract suite');

/** Nodes that stop, those who take their work back, and nodes that come back themselves. */
export function describeRescue(bench: ContractBench): void {
  const { it } = bench.runner;

  // What is left of nodes that are gone would be in the way of those who look for lanes that nobody serves.
  bench.runner.afterAll(async () => {
    let place: ControlPlace | undefined;
    do {
      ({ next: place } = await bench.store.control({ kind: 'cancel' }, { statuses: ['pending'] }, place));
    } while (place);
  });

  /** Other tests leave nodes behind that are past the grace as well. */
  const rescue = (node: NodeRef, budget = 3, store: JobStore = bench.store): Promise<LostReport> =>
    store.rescueLost({ node, graceMs: GRACE_MS, maxCrashRedeliveries: budget });
  const drainedOf = ({ drained }: LostReport, { bucket }: ContractNode): LostReport['drained'] =>
    drained.filter(({ id }) => id === bucket.id);
  const isDeadIn = ({ dead }: LostReport, { ref }: ContractNode): boolean =>
    dead.some(({ id, epoch }) => id === ref.id && epoch === ref.epoch);
  const beat = (node: NodeRef): ReturnType<JobStore['beat']> =>
    bench.store.beat({ node, graceMs: GRACE_MS, running: 0, lagMs: 0 });
  const claimed = async (node: ContractNode, count: number): Promise<readonly ClaimedJob[]> => {
    await bench.store.insert(Array.from({ length: count }, () => node.job()));
    return node.claim(count);
  };
  const expectCharged = async (jobs: readonly { readonly id: string }[]): Promise<void> => {
    for (const { id } of jobs) {
      bench.expect(await bench.store.get(id)).toMatchObject({ status: 'pending', crashes: 1, failures: 0 });
      bench.expect(await bench.store.executions(id)).toMatchObject([{ outcome: 'crashed' }]);
    }
  };
  /** Keeps the row of a job from everybody while `work` lasts, and gives it back as it was. */
  const holding = async (job: ClaimedJob, work: () => Promise<void>): Promise<void> => {
    const held = bench.transaction(async (transaction) => {
      const settlement = { id: job.id, claimSeq: job.claimSeq, outcome: 'succeeded' as const };
      bench.expect(await bench.store.settleWithin(transaction, settlement)).toBe(true);
      await work();
      throw ROLLBACK;
    });
    await held.catch((error: unknown) => {
      if (error !== ROLLBACK) throw error;
    });
  };

  it('leaves nodes within the grace alone, whatever they hold', async () => {
    const node = await bench.node();
    const [job] = await claimed(node, 1);
    await bench.later(GRACE_MS - MINUTE_MS, async () => {
      const { ref } = await bench.node();
      const report = await rescue(ref);
      bench.expect(isDeadIn(report, node)).toBe(false);
      bench.expect(drainedOf(report, node)).toEqual([]);
      bench.expect((await beat(ref)).lost).toBe(false);
      bench.expect(await bench.store.get(job?.id ?? '')).toMatchObject({ status: 'running', crashes: 0 });
      bench.expect((await beat(node.ref)).alive).toBe(true);
    });
    // That was a heartbeat: by now it would be past the grace without it.
    await bench.later(PAST_GRACE_MS, async () => {
      bench.expect(isDeadIn(await rescue((await bench.node()).ref), node)).toBe(false);
      bench.expect((await node.exchange({ want: 0 })).owned).toBe(true);
    });
  });

  it('takes back what a node past the grace holds, for one crash each, and forgets the node', async () => {
    const node = await bench.node();
    const jobs = await claimed(node, 3);
    const waiting = await node.inserted();
    await bench.later(PAST_GRACE_MS, async () => {
      const heir = await bench.nodeIn(node.bucket.lane);
      bench.expect((await beat(heir.ref)).lost).toBe(true);
      const report = await rescue(heir.ref);
      const dead = report.dead.find(({ id }) => id === node.ref.id);
      bench.expect(dead).toMatchObject({ ...node.ref, host: 'contract', pid: 1 });
      bench.expect((dead?.heartbeatAgeMs ?? 0) > GRACE_MS).toBe(true);
      const { id, lane } = node.bucket;
      const counts = { recovered: 3, failed: 0, stuck: [] };
      bench.expect(drainedOf(report, node)).toEqual([{ id, lane, node: node.ref, was: 'active', ...counts }]);
      bench.expect(report.faults).toEqual([]);
      bench.expect((await bench.store.nodes()).some((view) => view.id === node.ref.id)).toBe(false);
      bench.expect((await beat(heir.ref)).lost).toBe(false);
      await expectCharged(jobs);
      const [first] = jobs;
      const error = `node ${node.ref.id} stopped; outcome unknown`;
      bench
        .expect(await bench.store.executions(first?.id ?? ''))
        .toMatchObject([{ node: node.ref.id, claimSeq: first?.claimSeq, error }]);
      // The first redelivery is at once.
      const ids = (await heir.claim()).map((job) => job.id).sort();
      bench.expect(ids).toEqual([...jobs, waiting].map((job) => job.id).sort());
    });
  });

  it('tells a node that only seemed dead, and takes nothing from it but its last word', async () => {
    const node = await bench.node();
    const [job] = await claimed(node, 1);
    if (!job) throw new Error('the job is due');
    await bench.later(PAST_GRACE_MS, async () => {
      await rescue((await bench.node()).ref);
      bench.expect((await beat(node.ref)).alive).toBe(false);
      const answer = await node.settle(job, { outcome: 'succeeded', result: '1' });
      bench.expect(answer).toMatchObject({ owned: false, claimed: [], recorded: [], lost: [job.id] });
      await node.inserted();
      bench.expect(await node.exchange({ want: 5 })).toMatchObject({ owned: false, claimed: [] });
      const late = { jobId: job.id, claimSeq: job.claimSeq, outcome: 'succeeded' as const };
      bench.expect(await bench.store.recordLate(late)).toBe(true);
      bench.expect(await bench.store.recordLate(late)).toBe(false);
      bench.expect(await bench.store.get(job.id)).toMatchObject({ status: 'pending', crashes: 1 });
    });
  });

  it('declares nobody dead without a grace, but takes back what no node owns', async () => {
    const [silent, left] = [await bench.node(), await bench.node()];
    const [kept] = await claimed(silent, 1);
    const jobs = await claimed(left, 2);
    await bench.store.removeNode(left.ref);
    await bench.later(PAST_GRACE_MS, async () => {
      const { ref } = await bench.node();
      const report = await bench.store.rescueLost({ node: ref, maxCrashRedeliveries: 3 });
      bench.expect(report.dead).toEqual([]);
      bench.expect(drainedOf(report, silent)).toEqual([]);
      bench.expect(drainedOf(report, left)).toMatchObject([{ recovered: 2, failed: 0, stuck: [] }]);
      await expectCharged(jobs);
      bench.expect(await bench.store.get(kept?.id ?? '')).toMatchObject({ status: 'running', crashes: 0 });
    });
  });

  it('is done once, however many nodes do it at the same time', async () => {
    const node = await bench.node();
    const jobs = await claimed(node, 60);
    await bench.withPeer(async (peer) => {
      await bench.later(PAST_GRACE_MS, async () => {
        const stores = [bench.store, peer, bench.store, peer];
        const watchers = await Promise.all(stores.map(() => bench.node()));
        const reports = await Promise.all(watchers.map(({ ref }, index) => rescue(ref, 3, stores[index])));
        bench.expect(reports.flatMap(({ faults }) => faults)).toEqual([]);
        bench.expect(reports.filter((report) => isDeadIn(report, node)).length).toBe(1);
        const drained = reports.flatMap((report) => drainedOf(report, node));
        bench.expect(drained).toMatchObject([{ recovered: 60, failed: 0, stuck: [] }]);
      }, [peer]);
    });
    await expectCharged(jobs);
  });

  it('judges a node by its own grace, where that is longer', async () => {
    const node = await bench.node();
    const ref = await bench.store.registerNode({ ...registrationOf(uuidv7()), graceMs: 10 * PAST_GRACE_MS });
    await bench.later(PAST_GRACE_MS, async () => {
      const report = await rescue((await bench.node()).ref);
      bench.expect(isDeadIn(report, node)).toBe(true);
      bench.expect(report.dead.some(({ id }) => id === ref.id)).toBe(false);
    });
    await bench.store.removeNode(ref);
  });

  it('moves what is over the crash budget to the dead letter, and starts the job of its failure handler', async () => {
    const name = `contract.doomed.${uuidv7()}`;
    const handlerLane = `lane-${uuidv7()}`;
    const node = await bench.node();
    const handlers = [
      { name, version: 1 },
      { name: 'contract.job', version: 1 },
    ];
    const doomed = await node.inserted({ name, metadata: '{"tenant":1}' });
    const other = await node.inserted();
    const { claimed: jobs } = await node.exchange({ want: 2, handlers });
    bench.expect(jobs.length).toBe(2);
    await bench.store.registerNode({
      ...registrationOf(uuidv7()),
      failureHandlers: [{ jobName: name, lane: handlerLane }],
    });
    await bench.later(PAST_GRACE_MS, async () => {
      const report = await rescue((await bench.node()).ref, 0);
      const [drained, ...more] = drainedOf(report, node);
      bench.expect(more).toEqual([]);
      bench.expect(drained).toMatchObject({ recovered: 0, failed: 2, stuck: [] });
      const buried = drained?.buried ?? [];
      bench.expect(buried.map(({ id }) => id).sort()).toEqual([doomed.id, other.id].sort());
      const counts = { executions: 1, failures: 0, crashes: 1 };
      bench.expect(buried.find(({ id }) => id === doomed.id)).toMatchObject({
        name,
        lane: node.bucket.lane,
        node: node.ref.id,
        claimSeq: jobs.find(({ id }) => id === doomed.id)?.claimSeq,
        ...counts,
      });
      for (const { id } of [doomed, other]) {
        const job = await bench.store.get(id);
        bench.expect(job).toMatchObject({ status: 'failed', ...counts });
        bench.expect(job?.error?.includes('the budget is 0 redeliveries')).toBe(true);
      }
      // In the lane of the handler, whether or not the node that rescued has it; of the other job there is no handler.
      const found = await bench.store.find({ parentId: doomed.id }, { limit: 10 });
      bench
        .expect(found.jobs)
        .toMatchObject([
          { name: `${name}#failed`, lane: handlerLane, status: 'pending', metadata: { tenant: 1 } },
        ]);
      bench.expect(await bench.store.count({ parentId: other.id })).toBe(0);
    });
  });

  it('goes on past a row that a transaction holds; one node comes back for it, after a while', async () => {
    const node = await bench.node();
    const jobs = await claimed(node, 4);
    const [held, ...others] = jobs;
    if (!held) throw new Error('four jobs were claimed');
    await holding(held, () =>
      bench.later(PAST_GRACE_MS, async () => {
        const [first, second] = [(await bench.node()).ref, (await bench.node()).ref];
        const drained = drainedOf(await rescue(first), node);
        bench.expect(drained).toMatchObject([{ recovered: 3, failed: 0, stuck: [held.id] }]);
        await expectCharged(others);
        // It was tried a moment ago: nobody is sent there.
        for (const watcher of [first, second]) {
          bench.expect((await beat(watcher)).lost).toBe(false);
          bench.expect(drainedOf(await rescue(watcher), node)).toEqual([]);
        }
      }),
    );
    bench.expect(await bench.store.get(held.id)).toMatchObject({ status: 'running', crashes: 0 });
    await bench.later(PAST_GRACE_MS + MINUTE_MS, async () => {
      const { ref } = await bench.node();
      bench.expect((await beat(ref)).lost).toBe(true);
      const drained = drainedOf(await rescue(ref), node);
      bench.expect(drained).toMatchObject([{ recovered: 1, failed: 0, stuck: [] }]);
    });
    await expectCharged(jobs);
  });

  it('finishes what a drainer left that died in the middle, charging each claim once', async () => {
    const node = await bench.node();
    const jobs = await claimed(node, 4);
    const [held, other] = jobs;
    if (!held || !other) throw new Error('four jobs were claimed');
    await bench.withPeer(async (peer) => {
      await holding(held, () =>
        bench.later(PAST_GRACE_MS, async () => {
          const draining = rescue((await bench.node()).ref, 3, peer).catch(() => undefined);
          while ((await bench.store.get(other.id))?.status === 'running') await aMoment();
          // Before it comes to the row that it waits for.
          await peer.close();
          await draining;
        }, [peer]),
      );
    });
    await bench.later(2 * PAST_GRACE_MS, async () => {
      const { ref } = await bench.node();
      await rescue(ref);
      bench.expect((await beat(ref)).lost).toBe(false);
    });
    await expectCharged(jobs);
    bench.expect((await node.exchange({ want: 0 })).owned).toBe(false);
  });

  it('ends between two steps when it is called off; what is left is found by the next', async () => {
    const node = await bench.node();
    const jobs = await claimed(node, 2);
    await bench.later(PAST_GRACE_MS, async () => {
      const { ref } = await bench.node();
      const request = { node: ref, graceMs: GRACE_MS, maxCrashRedeliveries: 3 };
      const reason = new Error('called off by the contract suite');
      const told = await bench.store
        .rescueLost(request, AbortSignal.abort(reason))
        .catch((error: unknown) => error);
      bench.expect(told).toBe(reason);
      bench.expect((await beat(ref)).lost).toBe(true);
      bench.expect(drainedOf(await rescue(ref), node)).toMatchObject([{ recovered: 2 }]);
    });
    await expectCharged(jobs);
  });

  it('gives a node that was declared dead its id back under a later epoch, as often as it asks', async () => {
    const registration = registrationOf(`node-${uuidv7()}`, 'p1');
    const lane = `lane-${uuidv7()}`;
    const ref = await bench.store.registerNode(registration);
    const node = new ContractNode(bench.store, ref, await bench.store.openBucket(ref, lane));
    const [job] = await claimed(node, 1);
    await bench.later(PAST_GRACE_MS, async () => {
      await rescue((await bench.node()).ref);
      const again = await bench.store.returnNode(registration);
      bench.expect(again?.id).toBe(ref.id);
      bench.expect(Number(again?.epoch) > Number(ref.epoch)).toBe(true);
      // The reply may have been lost.
      bench.expect(await bench.store.returnNode(registration)).toEqual(again);
      bench.expect((await beat(ref)).alive).toBe(false);
      if (!again) throw new Error('nobody else has the id');
      bench.expect((await beat(again)).alive).toBe(true);
      const next = new ContractNode(bench.store, again, await bench.store.openBucket(again, lane));
      bench.expect(await node.exchange({ want: 1 })).toMatchObject({ owned: false, claimed: [] });
      bench.expect(await next.claim()).toMatchObject([{ id: job?.id, crashes: 1 }]);
    });
  });

  it('never takes an id from the process that has it by now', async () => {
    const id = `node-${uuidv7()}`;
    const first = await bench.store.registerNode(registrationOf(id, 'p1'));
    await bench.store.removeNode(first);
    const second = await bench.store.registerNode(registrationOf(id, 'p2'));
    bench.expect(await bench.store.returnNode(registrationOf(id, 'p1'))).toBe(undefined);
    // The same host and pid prove nothing.
    bench.expect(await bench.store.returnNode(registrationOf(id))).toBe(undefined);
    const [view, ...others] = (await bench.store.nodes()).filter((found) => found.id === id);
    bench.expect(others).toEqual([]);
    bench.expect(view?.epoch).toBe(second.epoch);
    bench.expect((await beat(second)).alive).toBe(true);
    await bench.store.openBucket(second, `lane-${uuidv7()}`);
  });
}

function registrationOf(id: string, process?: string): NodeRegistration {
  const rest = process === undefined ? {} : { process };
  return { id, host: 'contract', pid: 1, version: '1', lanes: [], handlers: [], ...rest };
}

function aMoment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
