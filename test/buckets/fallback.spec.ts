import { describe, expect, it } from '@jest/globals';
import { type LaneSettings } from '../../lib/buckets/lane-settings.js';
import { type EngineEventMap } from '../../lib/observability/engine-events.js';
import { type NewJob } from '../../lib/store/job-store.js';
import { engineFixture, type Node } from '../engine/engine-fixture.js';
import { deferred, laneOf, type EngineNodeOptions } from '../support/engine-node.js';
import { createStore, newJob, turn } from '../support/store.js';

/** Nodes look every 200 ms or so for what has been due for a second. */
const QUICK = { fallbackAfterMs: 1_000 };
/** Due for longer than that. */
const old = (overrides: Partial<NewJob> = {}): NewJob =>
  newJob({ name: 'work', lane: 'mial', runAt: new Date(Date.now() - 200_000), ...overrides });

describe('fallback buckets', () => {
  const fixture = engineFixture();

  const boot = async (options: EngineNodeOptions): Promise<Node> => {
    const node = await fixture.node({ ...options, settings: { ...QUICK, ...options.settings } });
    await node.runtime.start();
    return node;
  };
  const fallbacks = (): Promise<{ lane: string; node: string; status: string }[]> =>
    fixture.database.query(
      "select lane, node_id as node, status from ratchet.bucket where kind = 'fallback' order by lane",
    );
  const looks = (node: Node, count: number): Promise<void> => node.count('fallback_looked', count);
  const change = (
    node: Node,
    kind: EngineEventMap['fallback']['change'],
  ): Promise<EngineEventMap['fallback']> => node.events.next('fallback', (event) => event.change === kind);
  const gone = (node: Node, bucket: string): Promise<unknown> =>
    node.events.next('bucket', (event) => event.bucket === bucket && event.to === 'ready_to_delete');

  it('exactly one of three nodes serves a lane that nobody does, and says what is missing', async () => {
    const hold = deferred();
    const ran: string[] = [];
    const handlers = (name: string) => ({
      work: async () => {
        ran.push(name);
        await hold.promise;
      },
      mail: { policy: { lane: 'mail' }, run: () => {} },
    });
    const nodes = await Promise.all(
      ['a', 'b', 'c'].map((name) => boot({ nodeId: name, handlers: handlers(name) })),
    );
    const opened = Promise.race(nodes.map((node) => change(node, 'opened')));
    const begun = Promise.race(nodes.map((node) => node.count('claimed', 3, ({ lane }) => lane === 'mial')));
    const later = newJob({ name: 'work', lane: 'mial', delayMs: 3_600_000 });
    await nodes[0]!.store.insert([old(), old({ priority: 4 }), old({ priority: 0 }), later]);
    await opened;
    await begun;
    await Promise.all(nodes.map((node) => looks(node, 3)));
    const [bucket, ...others] = await fallbacks();
    expect(others).toEqual([]);
    expect(bucket).toMatchObject({ lane: 'mial', status: 'active' });
    expect(new Set(ran)).toEqual(new Set([bucket!.node]));
    const lines = fixture.logs.filter(({ line }) => line.startsWith('no live node serves'));
    expect(lines).toEqual([
      {
        level: 'warn',
        line: expect.stringMatching(
          /^no live node serves lane "mial": 1 due job of priority critical, the oldest for 20\d s \(work\); 1 due job of priority normal, .*; 1 due job of priority lowest, .*; a fallback bucket of this node runs them until one does; add it to lanes, or fix the name where they are enqueued; nearest: mail$/,
        ),
      },
    ]);
    const snapshot = nodes.find(({ id }) => id === bucket!.node)!.runtime.snapshot();
    expect(snapshot.buckets).toContainEqual(expect.objectContaining({ lane: 'mial', kind: 'fallback' }));
    hold.resolve();
  });

  it('goes when a bucket of a live node serves what waits there, and leaves the rest to that', async () => {
    const maker = await boot({ nodeId: 'maker', handlers: { work: () => {} } });
    const opened = change(maker, 'opened');
    const ran = maker.count('settled', 1);
    await maker.store.insert([old(), newJob({ name: 'work', lane: 'mial', delayMs: 3_600_000 })]);
    const { bucket } = await opened;
    await ran;
    // The one that is due later would be missed again.
    await looks(maker, 5);
    expect(await fallbacks()).toMatchObject([{ status: 'active' }]);
    const retired = change(maker, 'retired');
    const removed = gone(maker, bucket);
    await boot({ handlers: { work: () => {} }, settings: { lanes: new Map([['mial', laneOf({})]]) } });
    expect(await retired).toMatchObject({ bucket });
    await removed;
    await looks(maker, 3);
    expect(await fallbacks()).toEqual([]);
  });

  it('goes when there is nothing to run for some looks, after what runs has ended', async () => {
    const hold = deferred();
    const one = await boot({ handlers: { work: () => hold.promise } });
    const opened = change(one, 'opened');
    const ran = one.count('settled', 1);
    await one.store.insert([old()]);
    const { bucket } = await opened;
    await looks(one, 5);
    expect(await fallbacks()).toMatchObject([{ lane: 'mial', status: 'active' }]);
    const removed = gone(one, bucket);
    hold.resolve();
    await ran;
    await removed;
    await looks(one, 2);
    expect(await fallbacks()).toEqual([]);
    // And comes again when it has to.
    const again = one.count('settled', 1);
    await one.store.insert([old()]);
    await again;
  });

  it('of a node that died is taken back like any other: its jobs run elsewhere, in one of another node', async () => {
    const store = createStore(fixture.database.url);
    await store.open();
    try {
      const dead = await store.registerNode({
        id: 'dead',
        host: 'h',
        pid: 1,
        version: '1',
        lanes: [],
        handlers: ['work'],
      });
      await store.insert([old(), old()]);
      const bucket = await store.openFallback({ node: dead, lane: 'mial', known: [] });
      const handlers = [{ name: 'work', version: 1 }];
      expect((await store.exchange(turn(bucket!, { want: 1, handlers }))).claimed).toHaveLength(1);
      const heartbeat = { baseMs: 100, graceMs: 900, stallMs: 300_000 };
      const heir = await fixture.node({
        nodeId: 'heir',
        handlers: { work: () => {} },
        settings: { ...QUICK, heartbeat },
      });
      const ran = heir.count('settled', 2, ({ lane }) => lane === 'mial');
      const opened = change(heir, 'opened');
      await heir.runtime.start();
      await opened;
      await ran;
      expect(await fallbacks()).toMatchObject([{ node: 'heir' }]);
    } finally {
      await store.close();
    }
  });

  it('that only finishes, for however long, keeps its lane from no other one, and is never served twice', async () => {
    const hold = deferred();
    const maker = await boot({ nodeId: 'maker', handlers: { work: () => hold.promise, quick: () => {} } });
    const opened = change(maker, 'opened');
    const begun = maker.count('claimed', 1);
    await maker.store.insert([old(), newJob({ name: 'work', lane: 'mial', delayMs: 3_600_000 })]);
    const { bucket } = await opened;
    await begun;
    const struck = maker.faults.fail('setBucketStatus', { kind: 'unavailable', when: 'before' });
    const completing = maker.events.next('bucket', ({ to }) => to === 'completing');
    const other = await boot({
      handlers: { work: () => {} },
      settings: { lanes: new Map([['mial', laneOf({})]]) },
    });
    await struck;
    await completing;
    await other.runtime.close();
    const reopened = change(maker, 'opened');
    const ran = maker.count('settled', 1);
    await maker.store.insert([old({ name: 'quick' })]);
    const second = await reopened;
    await ran;
    expect(second.bucket).not.toBe(bucket);
    expect((await fallbacks()).map(({ status }) => status).sort()).toEqual(['active', 'completing']);
    const removed = gone(maker, bucket);
    hold.resolve();
    await removed;
  });

  it('stays while more jobs of others wait before its own than anybody reads', async () => {
    const store = createStore(fixture.database.url);
    await store.open();
    try {
      const row = { host: 'h', pid: 1, version: '1', lanes: [], handlers: [] };
      const node = await store.registerNode({ id: 'n', ...row });
      const bucket = await store.openFallback({ node, lane: 'mial', known: [] });
      const handlers = [{ name: 'work', version: 1 }];
      const need = () => store.fallbackNeeded({ bucket: bucket!, handlers });
      await store.insert([old({ name: 'foreign' })]);
      expect(await need()).toBe('idle');
      await fixture.database.query(
        `insert into ratchet.job select (jsonb_populate_record(j, jsonb_build_object('id', gen_random_uuid()))).*
           from ratchet.job j cross join generate_series(1, 10000)`,
      );
      expect(await need()).toBe('starving');
      await store.openBucket(node, 'mial');
      expect(await need()).toBe('served');
    } finally {
      await store.close();
    }
  });

  it('is made by no node that has not the handlers', async () => {
    const other = await boot({ handlers: { other: () => {} } });
    await other.store.insert([old()]);
    await looks(other, 4);
    expect(await fallbacks()).toEqual([]);
    const able = await fixture.node({ nodeId: 'able', handlers: { work: () => {} }, settings: QUICK });
    const ran = able.count('settled', 1);
    await able.runtime.start();
    await ran;
    expect(await fallbacks()).toMatchObject([{ node: 'able' }]);
  });

  it('serves old jobs of a priority that is switched off', async () => {
    const buckets: LaneSettings['buckets'] = { lowest: 0, low: 1, normal: 1, high: 1, critical: 1 };
    const one = await fixture.node({
      handlers: { work: () => {} },
      settings: { ...QUICK, lanes: new Map([['default', laneOf({ buckets })]]) },
    });
    await one.store.open();
    await one.store.insert([old({ lane: 'default', priority: 0 })]);
    const ran = one.count('settled', 1);
    await one.runtime.start();
    await ran;
    expect(fixture.logs.map(({ line }) => line)).toContainEqual(
      expect.stringMatching(
        /^no live node serves priority lowest of lane "default": 1 due job of priority lowest, .*; give lanes\.default\.buckets\.lowest a bucket on some node, or cancel them$/,
      ),
    );
  });

  it('is not made for a paused lane', async () => {
    const one = await boot({ handlers: { work: () => {} } });
    await fixture.database.query("insert into ratchet.lane (name, paused_at) values ('mial', now())");
    try {
      await one.store.insert([old()]);
      await looks(one, 4);
      expect(await fallbacks()).toEqual([]);
    } finally {
      await fixture.database.query('delete from ratchet.lane');
    }
  });

  it('leaves with its node, which looks no more once it drains', async () => {
    const hold = deferred();
    const one = await boot({ nodeId: 'one', handlers: { work: () => hold.promise } });
    const begun = one.count('claimed', 1);
    await one.store.insert([old()]);
    await begun;
    let looked = 0;
    const drained = one.runtime.drain();
    await one.events.next('drain', ({ step }) => step === 'timers');
    one.events.on('fallback_looked', () => (looked += 1));
    hold.resolve();
    await drained;
    expect(looked).toBe(0);
    expect(await fixture.database.query('select from ratchet.bucket')).toEqual([]);
    expect(await fixture.database.query('select from ratchet.node')).toEqual([]);
  });

  it('that somebody drains by hand is not followed by another, until its lane starves again', async () => {
    const one = await boot({ handlers: { work: () => {} } });
    const opened = change(one, 'opened');
    const ran = one.count('settled', 1);
    await one.store.insert([old(), newJob({ name: 'work', lane: 'mial', delayMs: 3_600_000 })]);
    const { bucket } = await opened;
    await ran;
    const removed = gone(one, bucket);
    await fixture.database.query("update ratchet.bucket set status = 'completing' where id = $1", [bucket]);
    one.messages.newWork('mial', 2);
    await removed;
    await looks(one, 3);
    expect(await fallbacks()).toEqual([]);
    const again = one.count('settled', 1);
    await one.store.insert([old()]);
    await again;
  });
});
