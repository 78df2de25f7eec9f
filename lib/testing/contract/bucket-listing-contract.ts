import { type BucketBench } from './bucket-store-subject.js';

/** What the lists show. */
export function describeListing(bench: BucketBench): void {
  bench.it('shows a bucket: whose it is, what it serves, and since when', async () => {
    const [lane, other] = [bench.lane(), bench.lane()];
    const node = await bench.node([lane, other]);
    const all = await bench.jobs.openBucket(node, lane);
    const low = await bench.jobs.openBucket(node, other, 1);
    const [shown] = await bench.bucketsOf(lane);
    bench.expect(shown).toMatchObject({
      id: all.id,
      lane,
      kind: 'standard',
      status: 'active',
      node,
      begun: 0,
      buffered: 0,
      lanePaused: false,
    });
    bench.expect('priority' in (shown ?? {})).toBe(false);
    bench.expect('drainer' in (shown ?? {})).toBe(false);
    bench.expect('oldestBegunMs' in (shown ?? {})).toBe(false);
    bench.expect(await bench.bucketsOf(other)).toMatchObject([{ id: low.id, priority: 1 }]);
    bench.jobs.travel(60_000);
    try {
      const [later] = await bench.bucketsOf(lane);
      bench.expect((later?.ageMs ?? 0) >= 60_000).toBe(true);
      bench.expect((later?.statusAgeMs ?? 0) >= 60_000).toBe(true);
      bench.expect(later?.createdAt).toEqual(shown?.createdAt);
    } finally {
      bench.jobs.travel(0);
    }
  });

  bench.it(
    'counts what has begun, by its claim or by a start mark, apart from what waits in a buffer',
    async () => {
      const lane = bench.lane();
      const bucket = await bench.jobs.openBucket(await bench.node([lane]), lane);
      await bench.insert(lane, 6);
      const ahead = { beginNow: 2, begin: [], mark: 1, forget: [] };
      const { claimed } = await bench.claim(bucket, 6, { ahead });
      const [first] = claimed;
      const buffered = claimed.filter(({ begun }) => !begun);
      bench.expect(await bench.bucketsOf(lane)).toMatchObject([{ begun: 2, buffered: 4 }]);

      const [next, canceled] = buffered;
      const begin = [next, canceled].flatMap((job) => (job ? [{ id: job.id, claimSeq: job.claimSeq }] : []));
      await bench.claim(bucket, 0, { ahead: { ...ahead, beginNow: 0, begin, mark: 2 } });
      bench.expect(await bench.bucketsOf(lane)).toMatchObject([{ begun: 4, buffered: 2 }]);

      // A mark goes on naming what has ended.
      await bench.jobs.cancel(canceled?.id ?? '');
      bench.expect(await bench.bucketsOf(lane)).toMatchObject([{ begun: 3, buffered: 2 }]);
      const settle = [
        { id: first?.id ?? '', claimSeq: first?.claimSeq ?? '', outcome: 'succeeded' as const },
      ];
      await bench.claim(bucket, 0, { settle });
      bench.jobs.travel(90_000);
      try {
        const [shown] = await bench.bucketsOf(lane);
        bench.expect(shown).toMatchObject({ begun: 2, buffered: 2 });
        bench.expect((shown?.oldestBegunMs ?? 0) >= 90_000).toBe(true);
      } finally {
        bench.jobs.travel(0);
      }
    },
  );

  bench.it(
    'shows lanes that are served, that have jobs, running or paused ones too, or that were spoken of',
    async () => {
      const [served, waits, paused, runs, spoken] = Array.from({ length: 5 }, () => bench.lane()) as [
        string,
        string,
        string,
        string,
        string,
      ];
      const node = await bench.node([served]);
      await bench.insert(waits);
      const held = await bench.insert(paused);
      await bench.jobs.control({ kind: 'pause' }, { ids: held });
      await bench.insert(runs);
      await bench.claim(await bench.jobs.openBucket(node, runs), 1);
      await bench.store.pauseLane(spoken);

      bench.expect(await bench.laneOf(served)).toEqual({
        name: served,
        disabled: [],
        nodes: [node.id],
        buckets: 0,
      });
      for (const lane of [waits, paused]) {
        bench.expect(await bench.laneOf(lane)).toEqual({ name: lane, disabled: [], nodes: [], buckets: 0 });
      }
      bench.expect(await bench.laneOf(runs)).toMatchObject({ nodes: [], buckets: 1 });
      bench.expect((await bench.laneOf(spoken))?.pausedAt instanceof Date).toBe(true);
      await bench.store.resumeLane(spoken);
      bench.expect(await bench.laneOf(spoken)).toBe(undefined);
    },
  );
}
