import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';
import { BUCKET_TRANSITIONS } from '../../lib/store/bucket-transitions.js';
import { type BucketRef, type NodeRef } from '../../lib/store/job-store.js';
import { StoreError, type StoreFaultKind } from '../../lib/store/store-fault.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';

const GRACE_MS = 30_000;

let database: TestDatabase;
let store: PostgresJobStore;
let other: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  other = createStore(database.url);
  await store.open();
  await other.open();
});
afterAll(async () => {
  await store.close();
  await other.close();
  await database.drop();
});
afterEach(async () => {
  await database.query(
    'truncate ratchet.node, ratchet.bucket, ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution, ratchet.notice',
  );
});

/** A node with `jobs` running in a bucket, whose last heartbeat was `ageMs` ago. */
async function nodeAtWork(
  id: string,
  jobs: number,
  ageMs: number,
): Promise<{ node: NodeRef; bucket: BucketRef; ids: string[] }> {
  const node = await registerTestNode(store, id);
  const bucket = await store.openBucket(node, id);
  const made = Array.from({ length: jobs }, () => newJob({ lane: id }));
  await store.insert(made);
  await store.exchange(turn(bucket, { want: jobs }));
  await age(id, ageMs);
  return { node, bucket, ids: made.map((job) => job.id) };
}

async function age(id: string, ageMs: number): Promise<void> {
  await database.query(
    `update ratchet.node set heartbeat_at = now() - $2 * interval '1 millisecond' where id = $1`,
    [id, ageMs],
  );
}

/** It was tried in vain long enough ago. */
async function longAgo({ id }: BucketRef): Promise<void> {
  await database.query(
    `update ratchet.bucket set status_at = now() - interval '5001 milliseconds' where id = $1`,
    [id],
  );
}

const rescue = (node: NodeRef, by = store, budget = 3): ReturnType<PostgresJobStore['rescueLost']> =>
  by.rescueLost({ node, graceMs: GRACE_MS, maxCrashRedeliveries: budget });

describe('a beat', () => {
  const beat = (node: NodeRef): ReturnType<PostgresJobStore['beat']> =>
    store.beat({ node, graceMs: GRACE_MS, running: 3, lagMs: 12.6 });

  it('keeps the node alive, and says so in the list of nodes', async () => {
    const node = await registerTestNode(store, 'a');
    await age('a', 60_000);
    expect(await beat(node)).toEqual({
      alive: true,
      nodes: 1,
      lost: false,
      notices: [],
      scheduleInMs: undefined,
      cordoned: false,
      buffersElsewhere: false,
    });
    const [view] = await store.nodes();
    expect(view).toMatchObject({ id: 'a', epoch: node.epoch, state: 'running', running: 3, lagMs: 13 });
    expect(view!.heartbeatAgeMs).toBeLessThan(30_000);
    expect(view!.heartbeatAt).toBeInstanceOf(Date);
  });

  it('tells a node that was declared dead, or that has a later epoch, and revives nobody', async () => {
    const old = await registerTestNode(store, 'a');
    await registerTestNode(store, 'a');
    expect((await beat(old)).alive).toBe(false);
    await database.query('delete from ratchet.node');
    expect((await beat(old)).alive).toBe(false);
    expect(await store.nodes()).toEqual([]);
  });

  it('brings the notices, once', async () => {
    const { node, ids } = await nodeAtWork('a', 1, 0);
    await store.cancel(ids[0]!);
    expect((await beat(node)).notices).toEqual([{ jobId: ids[0], claimSeq: '1', reason: 'canceled' }]);
    expect((await beat(node)).notices).toEqual([]);
  });

  it('says that something is lost: a stale node, a bucket without an owner', async () => {
    const node = await registerTestNode(store, 'watcher');
    const { bucket } = await nodeAtWork('b', 1, GRACE_MS - 5_000);
    expect((await beat(node)).lost).toBe(false);
    await age('b', GRACE_MS + 1_000);
    expect((await beat(node)).lost).toBe(true);
    await database.query(`delete from ratchet.node where id = 'b'`);
    expect((await beat(node)).lost).toBe(true);
    await database.query('delete from ratchet.bucket where id = $1', [bucket.id]);
    expect((await beat(node)).lost).toBe(false);
  });
});

describe('rescueLost', () => {
  it('leaves the living alone, whatever they hold', async () => {
    const { node } = await nodeAtWork('alive', 3, GRACE_MS - 5_000);
    expect(await rescue(node)).toEqual({ dead: [], drained: [], faults: [] });
    expect(await database.query('select 1 from ratchet.job where status = 1')).toHaveLength(3);
  });

  it('takes everything from a node past the grace, charges each claim once, and forgets the node', async () => {
    const watcher = await registerTestNode(store, 'watcher');
    const { node, bucket, ids } = await nodeAtWork('dead', 2_500, GRACE_MS + 1_000);
    const report = await rescue(watcher);
    expect(report.dead).toMatchObject([{ ...node, pid: expect.any(Number) }]);
    expect(report.dead[0]!.heartbeatAgeMs).toBeGreaterThan(GRACE_MS);
    expect(report.drained).toEqual([
      { id: bucket.id, lane: 'dead', node, was: 'active', recovered: 2_500, failed: 0, stuck: [] },
    ]);
    expect(report.faults).toEqual([]);
    expect((await store.nodes()).map(({ id }) => id)).toEqual(['watcher']);
    expect(await database.query('select 1 from ratchet.bucket')).toEqual([]);
    const [charges] = await database.query(
      `select count(*)::int as n, min(crashes) as least, max(crashes) as most, max(claim_seq)::int as seq from ratchet.job where status = 0`,
    );
    expect(charges).toEqual({ n: 2_500, least: 1, most: 1, seq: 2 });
    expect((await store.executions(ids[0]!))[0]).toMatchObject({
      outcome: 'crashed',
      node: 'dead',
      error: 'node dead stopped; outcome unknown',
    });
  });

  it('is done by one node only, however many try', async () => {
    const { ids } = await nodeAtWork('dead', 1_500, GRACE_MS + 1_000);
    const watchers = [await registerTestNode(store, 'w1'), await registerTestNode(store, 'w2')];
    const reports = await Promise.all([
      rescue(watchers[0]!),
      rescue(watchers[1]!, other),
      rescue(watchers[0]!),
      rescue(watchers[1]!, other),
    ]);
    expect(reports.flatMap(({ faults }) => faults)).toEqual([]);
    expect(reports.flatMap(({ dead }) => dead)).toHaveLength(1);
    expect(reports.flatMap(({ drained }) => drained).reduce((sum, { recovered }) => sum + recovered, 0)).toBe(
      ids.length,
    );
    const [charges] = await database.query(
      `select max(crashes) as most, count(*)::int as n from ratchet.job`,
    );
    expect(charges).toEqual({ most: 1, n: ids.length });
  });

  it('fails the claims beyond the budget by the completion path; a budget of 0 fails them at the first crash', async () => {
    const watcher = await registerTestNode(store, 'watcher');
    const { ids } = await nodeAtWork('dead', 2, GRACE_MS + 1_000);
    expect((await rescue(watcher, store, 0)).drained).toMatchObject([{ recovered: 0, failed: 2 }]);
    expect(await store.get(ids[0]!)).toMatchObject({
      status: 'failed',
      crashes: 1,
      failures: 0,
      error: 'node dead stopped; outcome unknown; crash 1, the budget is 0 redeliveries',
    });
  });

  it('waits for the exchange in flight, whose claims it then finds', async () => {
    const watcher = await registerTestNode(store, 'watcher');
    const { bucket } = await nodeAtWork('dead', 0, GRACE_MS + 1_000);
    const job = newJob({ lane: 'dead' });
    await store.insert([job]);
    const flight = await database.connect();
    await flight.query('begin');
    await flight.query('select 1 from ratchet.bucket where id = $1 for share', [bucket.id]);
    const rescued = rescue(watcher);
    while ((await database.query(`select 1 from pg_locks where not granted`)).length === 0);
    await flight.query(
      `update ratchet.job set status = 1, bucket = $1, claim_seq = 1, begun_at = now(), executions = 1 where id = $2`,
      [bucket.id, job.id],
    );
    await flight.query('commit');
    expect((await rescued).drained).toMatchObject([{ recovered: 1 }]);
  });

  it('takes over from a drainer that died', async () => {
    const { bucket } = await nodeAtWork('dead', 4, GRACE_MS + 1_000);
    const first = await registerTestNode(store, 'first');
    await database.query(
      `update ratchet.bucket set status = 'draining', epoch = 2, drainer_id = 'first', drainer_epoch = $2 where id = $1`,
      [bucket.id, first.epoch],
    );
    const second = await registerTestNode(store, 'second');
    // While the drainer lives, its bucket is its own.
    expect((await rescue(second)).drained).toEqual([]);
    await age('first', GRACE_MS + 1_000);
    expect((await rescue(second)).drained).toMatchObject([{ id: bucket.id, recovered: 4 }]);
  });

  it('takes back what belongs to no node at all', async () => {
    const watcher = await registerTestNode(store, 'watcher');
    await nodeAtWork('gone', 2, 0);
    await database.query(`delete from ratchet.node where id = 'gone'`);
    expect((await rescue(watcher)).drained).toMatchObject([{ lane: 'gone', recovered: 2 }]);
  });

  it('goes on past a row that cannot be given back, and comes back for it', async () => {
    const watcher = await registerTestNode(store, 'watcher');
    const { ids, bucket } = await nodeAtWork('dead', 10, GRACE_MS + 1_000);
    await database.query('update ratchet.job set claim_seq = 9223372036854775807 where id = $1', [ids[3]]);
    expect((await rescue(watcher)).drained).toMatchObject([{ recovered: 9, stuck: [ids[3]] }]);
    expect(await database.query('select status from ratchet.bucket where id = $1', [bucket.id])).toEqual([
      { status: 'lost' },
    ]);
    await database.query('update ratchet.job set claim_seq = 7 where id = $1', [ids[3]]);
    await longAgo(bucket);
    expect((await rescue(watcher)).drained).toMatchObject([{ recovered: 1, stuck: [] }]);
    expect(await database.query('select 1 from ratchet.bucket')).toEqual([]);
  });

  it('leaves a bucket with such a row alone for a while, whichever node looks; other buckets do not wait', async () => {
    const watchers = [await registerTestNode(store, 'w1'), await registerTestNode(store, 'w2')];
    const { ids, bucket } = await nodeAtWork('dead', 2, GRACE_MS + 1_000);
    await database.query('update ratchet.job set claim_seq = 9223372036854775807 where id = $1', [ids[0]]);
    expect((await rescue(watchers[0]!)).drained).toMatchObject([{ recovered: 1, stuck: [ids[0]] }]);
    const isLost = async (node: NodeRef): Promise<boolean> =>
      (await store.beat({ node, graceMs: GRACE_MS, running: 0, lagMs: 0 })).lost;
    for (const [index, watcher] of watchers.entries()) {
      expect(await isLost(watcher)).toBe(false);
      await nodeAtWork(`also-dead-${String(index)}`, 1, GRACE_MS + 1_000);
      expect(await isLost(watcher)).toBe(true);
      expect((await rescue(watcher, other)).drained).toMatchObject([{ recovered: 1, stuck: [] }]);
    }
    // Neither does the process that comes back under the id: it has other things to do.
    expect(await store.rescueOwn(await registerTestNode(store, 'dead'), 3)).toMatchObject({ buckets: 0 });
    await longAgo(bucket);
    expect(await isLost(watchers[1]!)).toBe(true);
    expect((await rescue(watchers[1]!, other)).drained).toMatchObject([{ id: bucket.id, stuck: [ids[0]] }]);
    expect(await isLost(watchers[0]!)).toBe(false);
    // A clock that was set back prolongs nothing.
    await database.query(`update ratchet.bucket set status_at = now() + interval '1 hour'`);
    expect(await isLost(watchers[0]!)).toBe(true);
  });

  it('takes a bucket that somebody else let go of meanwhile only when it did not try in vain', async () => {
    const { ids, bucket } = await nodeAtWork('dead', 1, GRACE_MS + 1_000);
    await database.query('update ratchet.job set claim_seq = 9223372036854775807 where id = $1', [ids[0]]);
    const watchers = [await registerTestNode(store, 'w1'), await registerTestNode(store, 'w2')];
    const reports = await Promise.all([rescue(watchers[0]!), rescue(watchers[1]!, other)]);
    expect(reports.flatMap(({ drained }) => drained)).toMatchObject([{ id: bucket.id, stuck: ids }]);
  });

  describe('with a fault at any of its statements', () => {
    /** Fails the n-th statement of the service connection, before or after it was carried out. */
    function failAt(n: number, when: 'before' | 'after', kind: StoreFaultKind): () => boolean {
      const real = store.session.service.bind(store.session);
      let count = 0;
      let failed = false;
      store.session.service = async (...given) => {
        const rows = when === 'after' ? await real(...given) : [];
        if ((count += 1) === n) {
          failed = true;
          throw new StoreError(kind, 'STORE_FAULT: made by a test', undefined);
        }
        return when === 'after' ? rows : real(...given);
      };
      return () => {
        store.session.service = real;
        return failed;
      };
    }

    const settle = async (work: Promise<unknown>): Promise<void> => {
      await work.catch(() => undefined);
    };
    const left = async (): Promise<unknown[]> =>
      database.query(`select 1 from ratchet.job where status = 1 union all select 1 from ratchet.bucket`);

    it.each([
      ['before', 'unavailable'],
      ['before', 'unknown'],
      ['after', 'unknown'],
    ] as const)(
      '%s it is carried out (%s): a later round finishes, each claim is charged once',
      async (when, kind) => {
        for (let n = 1, failed = true; failed; n += 1) {
          const watcher = await registerTestNode(store, 'watcher');
          await nodeAtWork('dead', 3, GRACE_MS + 1_000);
          const restore = failAt(n, when, kind);
          await settle(rescue(watcher));
          failed = restore();
          const beat = await store.beat({ node: watcher, graceMs: GRACE_MS, running: 0, lagMs: 0 });
          expect([n, beat.lost]).toEqual([n, (await left()).length > 0]);
          await rescue(watcher);
          expect([n, await left()]).toEqual([n, []]);
          const charges = await database.query('select crashes from ratchet.job');
          expect(charges).toEqual([{ crashes: 1 }, { crashes: 1 }, { crashes: 1 }]);
          await database.query('truncate ratchet.node, ratchet.bucket, ratchet.job, ratchet.execution');
        }
      },
    );

    it.each(['before', 'after'] as const)(
      '%s it, at a start: the next try takes back what is left',
      async (when) => {
        for (let n = 1, failed = true; failed; n += 1) {
          await nodeAtWork('same', 3, 0);
          const next = await registerTestNode(store, 'same');
          const restore = failAt(n, when, 'unknown');
          await settle(store.rescueOwn(next, 3));
          failed = restore();
          await store.rescueOwn(next, 3);
          expect([n, await left()]).toEqual([n, []]);
          await database.query('truncate ratchet.node, ratchet.bucket, ratchet.job, ratchet.execution');
        }
      },
    );

    it('makes the partition of the day that a long absence has left missing', async () => {
      for (const how of ['lost', 'own'] as const) {
        await nodeAtWork('dead', 2, GRACE_MS + 1_000);
        const [{ parts }] = (await database.query(
          `select string_agg(inhrelid::regclass::text, ', ') as parts from pg_inherits where inhparent = 'ratchet.execution'::regclass`,
        )) as [{ parts: string }];
        await database.query(`drop table ${parts}`);
        if (how === 'lost')
          expect((await rescue(await registerTestNode(store, 'watcher'))).faults).toEqual([]);
        else await store.rescueOwn(await registerTestNode(store, 'dead'), 3);
        expect(await left()).toEqual([]);
        await database.query('truncate ratchet.node, ratchet.bucket, ratchet.job');
      }
      await store.ensurePartitions(3);
    });
  });

  it('leaves a node whose beat is on its way', async () => {
    const watcher = await registerTestNode(store, 'watcher');
    await nodeAtWork('late', 1, GRACE_MS + 1_000);
    const beating = await database.connect();
    await beating.query('begin');
    await beating.query(`update ratchet.node set heartbeat_at = now() where id = 'late'`);
    expect((await rescue(watcher)).dead).toEqual([]);
    await beating.query('commit');
    expect((await rescue(watcher)).dead).toEqual([]);
  });
});

describe('removeNode', () => {
  it('waits for the turn in flight, and leaves a bucket that it filled to the rescue', async () => {
    const { node, bucket } = await nodeAtWork('leaves', 0, 0);
    const job = newJob({ lane: 'leaves' });
    await store.insert([job]);
    const flight = await database.connect();
    await flight.query('begin');
    await flight.query('select 1 from ratchet.bucket where id = $1 for share', [bucket.id]);
    const removed = store.removeNode(node);
    while ((await database.query(`select 1 from pg_locks where not granted`)).length === 0);
    await flight.query(
      `update ratchet.job set status = 1, bucket = $1, claim_seq = 1, begun_at = now(), executions = 1 where id = $2`,
      [bucket.id, job.id],
    );
    await flight.query('commit');
    await removed;
    expect(await database.query('select status from ratchet.bucket')).toEqual([{ status: 'lost' }]);
    expect((await rescue(await registerTestNode(store, 'watcher'))).drained).toMatchObject([
      { recovered: 1 },
    ]);
  });
});

describe('returnNode', () => {
  const registration = { host: 'h', pid: 7, version: '1', lanes: [], handlers: [] };

  it('gives a node that was declared dead its id back, under a later epoch', async () => {
    const node = await registerTestNode(store, 'a');
    await database.query('delete from ratchet.node');
    const again = await store.returnNode({ id: 'a', ...registration });
    expect(Number(again!.epoch)).toBeGreaterThan(Number(node.epoch));
  });

  it('never takes the id from another process', async () => {
    const node = await registerTestNode(store, 'a');
    expect(await store.returnNode({ id: 'a', ...registration })).toBeUndefined();
    expect((await store.nodes())[0]!.epoch).toBe(node.epoch);
  });

  it('finds its own row after a lost reply, and nobody else’s on the same host with the same pid', async () => {
    const first = await store.returnNode({ id: 'a', process: 'p1', ...registration });
    expect(await store.returnNode({ id: 'a', process: 'p1', ...registration })).toEqual(first);
    expect(await store.returnNode({ id: 'a', process: 'p2', ...registration })).toBeUndefined();
  });
});

describe('the moves of buckets in the database', () => {
  it('are those of the table, whoever rescues what from whom', async () => {
    await database.query(`
      create table public.move (bucket uuid, was text, now text);
      create function public.note_move() returns trigger language plpgsql as $$
        begin insert into public.move values (old.id, old.status, new.status); return new; end $$;
      create trigger note_move after update on ratchet.bucket for each row
        when (old.status is distinct from new.status) execute function public.note_move()`);
    const watcher = await registerTestNode(store, 'watcher');
    for (const status of ['active', 'completing', 'ready_to_drain', 'draining', 'ready_to_delete', 'lost']) {
      const { bucket } = await nodeAtWork(`dead-${status}`, 2, GRACE_MS + 1_000);
      await database.query('alter table ratchet.bucket disable trigger note_move');
      await database.query('update ratchet.bucket set status = $2 where id = $1', [bucket.id, status]);
      await database.query('alter table ratchet.bucket enable trigger note_move');
    }
    await rescue(watcher);
    const clean = await nodeAtWork('clean', 0, 0);
    await store.removeNode(clean.node);
    const moves = await database.query('select distinct was, now from public.move');
    expect(moves.length).toBeGreaterThan(5);
    for (const { was, now } of moves) {
      expect([was, now, BUCKET_TRANSITIONS.some(({ from, to }) => from === was && to === now)]).toEqual([
        was,
        now,
        true,
      ]);
    }
    expect(await database.query('select 1 from ratchet.bucket')).toEqual([]);
  });
});
