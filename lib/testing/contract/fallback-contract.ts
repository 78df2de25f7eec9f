import { uuidv7 } from 'uuidv7';
import { type NodeRef, type StarvingStream } from '../../store/job-store.js';
import { type ContractBench } from './job-store-subject.js';

const AFTER_MS = 150_000;

/** Due jobs that nobody serves, and the buckets that are made for them. */
export function describeFallback(bench: ContractBench): void {
  const { it } = bench.runner;
  const handlers = [{ name: 'contract.job', version: 1 }];

  const starvingIn = async (
    lane: string,
    node: NodeRef,
    known: readonly string[] = [],
  ): Promise<readonly StarvingStream[]> => {
    const { streams } = await bench.store.starving({ node, handlers, afterMs: AFTER_MS, known });
    return streams.filter((stream) => stream.lane === lane);
  };
  const open = (node: NodeRef, lane: string, known: readonly string[] = []) =>
    bench.store.openFallback({ node, lane, known });

  it('finds jobs that have been due for long and that no live bucket serves, by lane and priority', async () => {
    const node = await bench.node();
    const lane = `lane-${uuidv7()}`;
    await node.inserted({ lane, delayMs: 1_000_000 });
    await node.inserted({ lane, name: 'contract.other' });
    await node.inserted({ lane, version: 2 });
    await node.inserted({ lane });
    await node.inserted({ lane });
    await node.inserted({ lane, priority: 4 });
    await node.inserted();
    bench.expect(await starvingIn(lane, node.ref)).toEqual([]);
    await bench.later(AFTER_MS + 5_000, async () => {
      const found = await starvingIn(lane, node.ref);
      bench.expect(found.map(({ priority, due, names }) => [priority, due, names])).toEqual([
        [4, 1, ['contract.job']],
        [2, 2, ['contract.job']],
      ]);
      bench
        .expect(found.every(({ oldestMs }) => oldestMs > AFTER_MS && oldestMs < AFTER_MS + 60_000))
        .toBe(true);
      bench.expect(await starvingIn(node.bucket.lane, node.ref)).toEqual([]);
      const { served } = await bench.store.starving({
        node: node.ref,
        handlers,
        afterMs: AFTER_MS,
        known: [],
      });
      bench.expect([served.includes(node.bucket.lane), served.includes(lane)]).toEqual([true, false]);
      // A bucket of that priority alone.
      await bench.store.openBucket(node.ref, lane, 4);
      bench.expect((await starvingIn(lane, node.ref)).map(({ priority }) => priority)).toEqual([2]);
      await bench.store.openBucket(node.ref, lane);
      bench.expect(await starvingIn(lane, node.ref)).toEqual([]);
    });
  });

  it('does not count buckets of nodes that are gone or drain, nor such as only finish', async () => {
    const asking = await bench.node();
    const left = await bench.node();
    const drains = await bench.node();
    const finishes = await bench.node();
    for (const node of [left, drains, finishes]) await node.inserted();
    await bench.store.removeNode(left.ref);
    await bench.store.setNodeState(drains.ref, 'draining');
    await bench.store.setBucketStatus(finishes.bucket, 'active', 'completing');
    await bench.later(AFTER_MS + 5_000, async () => {
      for (const { bucket } of [left, drains, finishes]) {
        bench.expect((await starvingIn(bucket.lane, asking.ref)).length).toBe(1);
      }
    });
  });

  it('opens one fallback bucket for a lane, whoever asks, which claims every priority', async () => {
    const nodes = [await bench.node(), await bench.node(), await bench.node()] as const;
    const lane = `lane-${uuidv7()}`;
    const jobs = [
      await nodes[0].inserted({ lane, priority: 0 }),
      await nodes[0].inserted({ lane, priority: 4 }),
    ];
    const opened = await Promise.all(nodes.map(({ ref }) => open(ref, lane)));
    const buckets = opened.filter((bucket) => bucket !== undefined);
    bench.expect(buckets.length).toBe(1);
    const [bucket] = buckets;
    if (!bucket) throw new Error('one of them has it');
    bench.expect(bucket).toMatchObject({ lane, kind: 'fallback' });
    const { claimed } = await nodes[0].exchange({ bucket, want: 10 });
    bench.expect(claimed.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id).reverse());
    await bench.later(AFTER_MS + 5_000, async () => {
      for (const { ref } of nodes) bench.expect(await starvingIn(lane, ref, [bucket.id])).toEqual([]);
    });
    // Once it is gone, another may have one.
    for (const { id, claimSeq } of claimed) {
      await nodes[0].exchange({ bucket, settle: [{ id, claimSeq, outcome: 'succeeded' }], wait: true });
    }
    for (const [from, to] of [
      ['active', 'completing'],
      ['completing', 'ready_to_drain'],
      ['ready_to_drain', 'draining'],
      ['draining', 'ready_to_delete'],
    ] as const) {
      bench.expect(await bench.store.setBucketStatus(bucket, from, to)).toBe(true);
    }
    const next = await open(nodes[1].ref, lane);
    bench.expect(next?.node).toEqual(nodes[1].ref);
  });

  it('gives a node its own fallback bucket again when the reply was lost, and none to a node that may have none', async () => {
    const node = await bench.node();
    const lane = `lane-${uuidv7()}`;
    await node.inserted({ lane });
    const lost = await open(node.ref, lane);
    const found = await open(node.ref, lane);
    bench.expect(found).toEqual(lost);
    const known = [lost?.id ?? ''];
    bench.expect(await open(node.ref, lane, known)).toBe(undefined);
    await bench.later(AFTER_MS + 5_000, async () => {
      bench.expect((await starvingIn(lane, node.ref)).length).toBe(1);
      bench.expect((await starvingIn(lane, node.ref, known)).length).toBe(0);
    });
    const draining = await bench.node();
    await bench.store.setNodeState(draining.ref, 'draining');
    bench.expect(await open(draining.ref, `lane-${uuidv7()}`)).toBe(undefined);
  });

  it('says whether it is still needed: until what it could run is served by others, or gone', async () => {
    const node = await bench.node();
    const lane = `lane-${uuidv7()}`;
    const bucket = await open(node.ref, lane);
    if (!bucket) throw new Error('nobody else has one');
    const need = (): Promise<string> => bench.store.fallbackNeeded({ bucket, handlers });
    bench.expect(await need()).toBe('idle');
    await node.inserted({ lane, name: 'contract.other' });
    bench.expect(await need()).toBe('idle');
    await node.inserted({ lane, priority: 1, delayMs: 1_000_000 });
    bench.expect(await need()).toBe('starving');
    await bench.store.openBucket(node.ref, lane, 3);
    bench.expect(await need()).toBe('starving');
    const real = await bench.store.openBucket(node.ref, lane, 1);
    bench.expect(await need()).toBe('served');
    await node.inserted({ lane, priority: 2 });
    bench.expect(await need()).toBe('starving');
    await bench.store.openBucket(node.ref, lane);
    bench.expect(await need()).toBe('served');
    await bench.store.setBucketStatus(real, 'active', 'completing');
    bench.expect(await need()).toBe('served');
  });
}
