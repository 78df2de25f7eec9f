import { type BucketBench } from './bucket-store-subject.js';

/** Jobs that change their lane. */
export function describeMoves(bench: BucketBench): void {
  bench.it('moves what waits, and nothing else of it', async () => {
    const [from, to] = [bench.lane(), bench.lane()];
    const bucket = await bench.jobs.openBucket(await bench.node([from]), from);
    const [running = ''] = await bench.insert(from);
    await bench.claim(bucket, 1);
    const [pending = ''] = await bench.insert(from, 1, { priority: 4, businessKey: `key of ${from}` });
    const [later = ''] = await bench.insert(from, 1, { delayMs: 3_600_000, priority: 0 });
    const [paused = ''] = await bench.insert(from);
    await bench.jobs.control({ kind: 'pause' }, { ids: [paused] });
    const waiting = [pending, later, paused];
    const before = await Promise.all(waiting.map((id) => bench.jobs.get(id)));
    bench.expect(await bench.store.move({ from, to })).toEqual({ moved: 3, more: false });
    bench
      .expect(await Promise.all(waiting.map((id) => bench.jobs.get(id))))
      .toEqual(before.map((job) => ({ ...job, lane: to })));
    bench.expect(await bench.jobs.get(running)).toMatchObject({ lane: from, status: 'running' });
    bench.expect(await bench.store.move({ from, to })).toEqual({ moved: 0, more: false });
  });

  bench.it('moves one priority alone, if it is asked to', async () => {
    const [from, to] = [bench.lane(), bench.lane()];
    const [low = ''] = await bench.insert(from, 1, { priority: 1 });
    const [normal = ''] = await bench.insert(from);
    bench.expect(await bench.store.move({ from, to, priority: 1 })).toEqual({ moved: 1, more: false });
    bench.expect(await bench.jobs.get(low)).toMatchObject({ lane: to });
    bench.expect(await bench.jobs.get(normal)).toMatchObject({ lane: from });
  });

  bench.it('moves a thousand at most in one step, and says that there is more', async () => {
    const [from, to] = [bench.lane(), bench.lane()];
    await bench.insert(from, 1_001);
    bench.expect(await bench.store.move({ from, to })).toEqual({ moved: 1_000, more: true });
    bench.expect(await bench.store.move({ from, to })).toEqual({ moved: 1, more: false });
    bench.expect(await bench.jobs.count({ lanes: [to] })).toBe(1_001);
  });

  bench.it('two movers and a claimer never have one job', async () => {
    const [from, to] = [bench.lane(), bench.lane()];
    const bucket = await bench.jobs.openBucket(await bench.node([from]), from);
    await bench.insert(from, 1_500);
    const moves = [bench.store.move({ from, to }), bench.store.move({ from, to })];
    const claims = [await bench.claim(bucket, 100), await bench.claim(bucket, 100)];
    const steps = await Promise.all(moves);
    const claimed = claims.reduce((sum, each) => sum + each.claimed.length, 0);
    let moved = steps.reduce((sum, each) => sum + each.moved, 0);
    for (let more = true; more;) {
      const step = await bench.store.move({ from, to });
      moved += step.moved;
      more = step.moved > 0;
    }
    bench.expect(moved + claimed).toBe(1_500);
    bench.expect(await bench.jobs.count({ lanes: [to], statuses: ['pending'] })).toBe(moved);
  });

  bench.it('says which priorities of the target are switched off, and by whom', async () => {
    const [from, to] = [bench.lane(), bench.lane()];
    const node = await bench.node([to], { [to]: [0, 3] });
    bench.expect(await bench.store.moveObstacles({ from, to })).toEqual([]);
    bench
      .expect(await bench.store.moveObstacles({ from, to, priority: 3 }))
      .toEqual([{ priority: 3, nodes: [node.id] }]);
    bench.expect(await bench.store.moveObstacles({ from, to, priority: 2 })).toEqual([]);
    await bench.insert(from);
    bench.expect(await bench.store.moveObstacles({ from, to })).toEqual([]);
    await bench.insert(from, 1, { priority: 0 });
    bench.expect(await bench.store.moveObstacles({ from, to })).toEqual([{ priority: 0, nodes: [node.id] }]);
  });
}
