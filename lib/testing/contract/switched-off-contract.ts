import { type BucketBench } from './bucket-store-subject.js';

/** What the nodes of a lane agree on. */
export function describeAgreement(bench: BucketBench): void {
  const off = async (lane: string): Promise<unknown> => (await bench.laneOf(lane))?.disabled ?? [];

  bench.it(
    'a priority is off in a lane while every node that serves the lane has switched it off',
    async () => {
      const [lane, other] = [bench.lane(), bench.lane()];
      const first = await bench.node([lane], { [lane]: [0, 1], [other]: [4] });
      bench.expect(await off(lane)).toEqual([0, 1]);
      bench.expect(await off(other)).toEqual([]);
      const second = await bench.node([lane, other], { [lane]: [1, 2] });
      bench.expect(await off(lane)).toEqual([1]);
      const third = await bench.node([lane]);
      bench.expect(await off(lane)).toEqual([]);
      await bench.jobs.removeNode(third);
      bench.expect(await off(lane)).toEqual([1]);
      await bench.jobs.removeNode(first);
      bench.expect(await off(lane)).toEqual([1, 2]);
      // It starts again with other settings.
      const again = await bench.node([lane], { [lane]: [4] }, second.id);
      bench.expect(await off(lane)).toEqual([4]);
      await bench.jobs.removeNode(again);
      bench.expect(await off(lane)).toEqual([]);
    },
  );

  bench.it('a node that is declared dead has no say any more', async () => {
    const lane = bench.lane();
    const row = { host: 'contract', pid: 1, version: '1', lanes: [lane], handlers: [] };
    await bench.jobs.registerNode({ ...row, id: `dead of ${lane}` });
    bench.jobs.travel(120_000);
    try {
      const node = await bench.node([lane], { [lane]: [0] });
      bench.expect(await off(lane)).toEqual([]);
      await bench.jobs.rescueLost({ node, maxCrashRedeliveries: 3, graceMs: 60_000 });
      bench.expect(await off(lane)).toEqual([0]);
    } finally {
      bench.jobs.travel(0);
    }
  });

  bench.it('comes out right when many come and go at once', async () => {
    const lane = bench.lane();
    for (let round = 0; round < 5; round += 1) {
      const nodes = await Promise.all(
        Array.from({ length: 8 }, (_, index) => bench.node([lane], { [lane]: index === 0 ? [0] : [0, 1] })),
      );
      bench.expect(await off(lane)).toEqual([0]);
      await Promise.all(nodes.slice(0, 4).map((node) => bench.jobs.removeNode(node)));
      bench.expect(await off(lane)).toEqual([0, 1]);
      await Promise.all(nodes.slice(4).map((node) => bench.jobs.removeNode(node)));
      bench.expect(await off(lane)).toEqual([]);
    }
  });
}
