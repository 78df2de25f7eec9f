import { uuidv7 } from 'uuidv7';
import { type BucketBench } from './bucket-store-subject.js';

/** What people do, and what it says of it. */
export function describeActs(bench: BucketBench): void {
  bench.it('pauses a lane and lets it go on, and says whether that was new', async () => {
    const lane = bench.lane();
    const node = await bench.node([lane]);
    await bench.jobs.openBucket(node, lane);
    bench.expect(await bench.store.pauseLane(lane)).toBe(true);
    const since = (await bench.laneOf(lane))?.pausedAt;
    bench.expect(await bench.store.pauseLane(lane)).toBe(false);
    bench.expect((await bench.laneOf(lane))?.pausedAt).toEqual(since);
    bench.expect(await bench.bucketsOf(lane)).toMatchObject([{ lanePaused: true, status: 'active' }]);
    bench.expect(await bench.store.resumeLane(lane)).toBe(true);
    bench.expect(await bench.store.resumeLane(lane)).toBe(false);
    bench.expect(await bench.bucketsOf(lane)).toMatchObject([{ lanePaused: false }]);
  });

  bench.it('drains a bucket once; its owner keeps it, and ends it', async () => {
    const lane = bench.lane();
    const node = await bench.node([lane]);
    const bucket = await bench.jobs.openBucket(node, lane);
    const [id = ''] = await bench.insert(lane);
    const { claimed } = await bench.claim(bucket, 1);
    const moved = [{ id: bucket.id, lane, node }];
    bench.expect(await bench.store.drainBucket(bucket.id)).toEqual({ moved });
    bench.expect(await bench.store.drainBucket(bucket.id)).toEqual({ moved: [] });
    bench.expect(await bench.store.drainBucket(uuidv7())).toBe(undefined);
    bench.expect(await bench.store.drainBucket('no bucket')).toBe(undefined);
    await bench.insert(lane);
    const settle = claimed.map(({ claimSeq }) => ({ id, claimSeq, outcome: 'succeeded' as const }));
    bench
      .expect(await bench.claim(bucket, 5, { settle }))
      .toMatchObject({ owned: true, recorded: [id], claimed: [] });
    // Its owner has not heard of it yet.
    bench.expect(await bench.jobs.setBucketStatus(bucket, 'active', 'completing')).toBe(true);
    for (const [from, to] of [
      ['completing', 'ready_to_drain'],
      ['ready_to_drain', 'draining'],
      ['draining', 'ready_to_delete'],
    ] as const) {
      bench.expect(await bench.jobs.setBucketStatus(bucket, from, to)).toBe(true);
    }
    bench.expect(await bench.bucketsOf(lane)).toEqual([]);
  });

  bench.it('drains the buckets of a lane, of whatever node and priority, and no other', async () => {
    const [lane, other] = [bench.lane(), bench.lane()];
    const [a, b] = [await bench.node([lane]), await bench.node([lane, other])];
    const buckets = [
      await bench.jobs.openBucket(a, lane),
      await bench.jobs.openBucket(b, lane, 4),
      await bench.jobs.openBucket(b, lane, 0),
    ];
    await bench.jobs.openBucket(b, other);
    const { moved } = await bench.store.drainLane(lane);
    bench.expect(moved.map(({ id }) => id).sort()).toEqual(buckets.map(({ id }) => id).sort());
    bench.expect(await bench.store.drainLane(lane)).toEqual({ moved: [] });
    bench.expect(await bench.bucketsOf(other)).toMatchObject([{ status: 'active' }]);
  });

  bench.it('drains a node: no bucket of it stays active, and it opens none until it is let', async () => {
    const lane = bench.lane();
    const node = await bench.node([lane]);
    const bucket = await bench.jobs.openBucket(node, lane);
    bench.expect(await bench.store.drainNode(node.id)).toEqual({
      node,
      lanes: [lane],
      changed: true,
      moved: [{ id: bucket.id, lane, node }],
    });
    bench
      .expect(await bench.store.drainNode(node.id))
      .toEqual({ node, lanes: [lane], changed: false, moved: [] });
    const refusal = bench.jobs.openBucket(node, lane).then(
      () => undefined,
      (error: unknown) => (error as { code?: unknown }).code,
    );
    bench.expect(await refusal).toBe('NODE_CORDONED');
    const beat = { node, graceMs: 30_000, running: 0, lagMs: 0 };
    bench.expect((await bench.jobs.beat(beat)).cordoned).toBe(true);
    bench.expect(await bench.store.undrainNode(node.id)).toMatchObject({ changed: true });
    bench.expect(await bench.store.undrainNode(node.id)).toMatchObject({ changed: false });
    bench.expect((await bench.jobs.beat(beat)).cordoned).toBe(false);
    await bench.jobs.openBucket(node, lane);
    bench.expect(await bench.store.drainNode('no node')).toBe(undefined);
    bench.expect(await bench.store.undrainNode('no node')).toBe(undefined);
  });

  bench.it('a process that starts again under the id of a drained node is not drained', async () => {
    const lane = bench.lane();
    const node = await bench.node([lane]);
    await bench.store.drainNode(node.id);
    const next = await bench.node([lane], undefined, node.id);
    await bench.jobs.openBucket(next, lane);
    bench.expect(await bench.store.undrainNode(node.id)).toMatchObject({ node: next, changed: false });
  });

  bench.it('leaves out no bucket that a drained node is just opening', async () => {
    const lane = bench.lane();
    for (let round = 0; round < 10; round += 1) {
      const node = await bench.node([lane]);
      const opening = Array.from({ length: 4 }, () =>
        bench.jobs.openBucket(node, lane).then(
          ({ id }) => [id],
          () => [],
        ),
      );
      const drained = await bench.store.drainNode(node.id);
      const opened = (await Promise.all(opening)).flat();
      bench.expect(drained?.moved.map(({ id }) => id).sort()).toEqual(opened.sort());
      const left = (await bench.bucketsOf(lane)).filter((each) => each.node.id === node.id);
      bench.expect(left.every(({ status }) => status === 'completing')).toBe(true);
    }
  });
}
