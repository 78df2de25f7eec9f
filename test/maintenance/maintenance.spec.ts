import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LeasedTask } from '../../lib/maintenance/leased-task.js';
import { Maintenance } from '../../lib/maintenance/maintenance.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type NodeRef } from '../../lib/store/job-store.js';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeClock } from '../support/fake-clock.js';
import { createStore, newJob, registerTestNode } from '../support/store.js';

describe('maintenance', () => {
  let database: TestDatabase;
  let store: PostgresJobStore;
  let locks: PostgresLockStore;
  let one: NodeRef;
  let two: NodeRef;

  beforeAll(async () => {
    database = await createTestDatabase();
    store = createStore(database.url);
    await store.open();
    locks = new PostgresLockStore(store);
    one = await registerTestNode(store);
    two = await registerTestNode(store);
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  function task(
    node: NodeRef,
    work: (signal: AbortSignal) => Promise<void>,
    clock = new FakeClock(),
  ): { task: LeasedTask; events: EngineEvents; errors: unknown[] } {
    const events = new EngineEvents();
    const errors: unknown[] = [];
    const onError = (_task: string, error: unknown): void => void errors.push(error);
    const parts = { name: 'test', everyMs: 1_000, node, locks, clock, events, work, onError };
    return { task: new LeasedTask(parts), events, errors };
  }

  it('one node does the work, the other passes', async () => {
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    let began: () => void = () => {};
    const begun = new Promise<void>((resolve) => (began = resolve));
    const first = task(one, () => {
      began();
      return held;
    });
    const second = task(two, () => Promise.resolve());
    const round = first.task.runOnce();
    await begun;
    const elsewhere = second.events.next('maintenance');
    await second.task.runOnce();
    expect(await elsewhere).toMatchObject({ outcome: 'elsewhere' });
    release();
    await round;
    const done = second.events.next('maintenance');
    await second.task.runOnce();
    expect(await done).toMatchObject({ outcome: 'done' });
  });

  it('keeps the lease between its rounds when told so, and gives it up when it stops', async () => {
    const events = new EngineEvents();
    const outcomes: string[] = [];
    events.on('maintenance', ({ outcome }) => outcomes.push(outcome));
    const kept = (node: NodeRef): LeasedTask =>
      new LeasedTask({
        ...{ name: 'kept', everyMs: 60_000, keepMs: 50_000, node, locks, events, clock: new FakeClock() },
        work: () => Promise.resolve(),
        onError: (_task, error) => outcomes.push(String(error)),
      });
    const [first, second] = [kept(one), kept(two)];
    await first.runOnce();
    await second.runOnce();
    await first.runOnce();
    expect(outcomes).toEqual(['done', 'elsewhere', 'done']);
    await Promise.all([first.stop(), second.runOnce()]);
    expect(outcomes[3]).toBe('done');
    await second.stop();
    expect(await database.query('select 1 from ratchet.lease')).toEqual([]);
  });

  it('a round that fails is told, gives up its lease, and the next one comes', async () => {
    const clock = new FakeClock();
    let rounds = 0;
    const failing = task(
      one,
      async () => {
        rounds += 1;
        if (rounds === 1) throw new Error('once');
      },
      clock,
    );
    const failed = failing.events.next('maintenance');
    failing.task.start();
    failing.task.start();
    expect(await failed).toMatchObject({ outcome: 'failed' });
    expect(failing.errors).toHaveLength(1);
    await new Promise((resolve) => setImmediate(resolve));
    const done = failing.events.next('maintenance');
    clock.advance(1_000);
    expect(await done).toMatchObject({ outcome: 'done' });
    await failing.task.stop();
    await failing.task.stop();
    expect(clock.pending).toBe(0);
    failing.task.start();
    expect(clock.pending).toBe(0);
  });

  it('renews its lease while it works, and calls the round off when it has lost it', async () => {
    const clock = new FakeClock();
    let began: () => void = () => {};
    const begun = new Promise<void>((resolve) => (began = resolve));
    const long = task(
      one,
      (signal) => {
        began();
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      },
      clock,
    );
    const round = long.task.runOnce();
    await begun;
    const lease = async (): Promise<string> =>
      (
        await database.query<{ at: string }>(
          `select expires_at::text as at from ratchet.lease where name = 'test'`,
        )
      )[0]!.at;
    const first = await lease();
    clock.advance(100_000);
    while ((await lease()) === first);
    await database.query(`update ratchet.lease set node_id = 'thief' where name = 'test'`);
    // The timer of the next renewal is set when the reply to this one has arrived.
    while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(100_000);
    await round;
    expect(long.errors).toEqual([expect.objectContaining({ message: 'another node took the lease' })]);
    expect(clock.pending).toBe(0);
    await database.query('delete from ratchet.lease');
  });

  it('a stop calls the running round off, which is no news', async () => {
    let began: () => void = () => {};
    const begun = new Promise<void>((resolve) => (began = resolve));
    const long = task(one, (signal) => {
      began();
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
    long.task.start();
    await begun;
    await long.task.stop();
    expect(long.errors).toEqual([]);
    expect(await database.query('select 1 from ratchet.lease')).toEqual([]);
  });

  it('tells of due jobs in a lane that nobody serves, once, at the second look', async () => {
    const clock = new FakeClock();
    const events = new EngineEvents();
    const warnings: string[] = [];
    const day = 86_400_000;
    const maintenance = new Maintenance({
      node: one,
      store,
      locks,
      clock,
      events,
      retention: { historyMs: day, executionMs: day, deadLetterMs: day },
      maxCrashRedeliveries: 3,
      logger: { log: () => {}, warn: (line) => warnings.push(line), error: () => {} },
      onError: (name, error) => warnings.push(`${name} ${String(error)}`),
    });
    const looked = (): Promise<void> =>
      new Promise((resolve) => {
        const off = events.on('maintenance', ({ task: name }) => {
          if (name !== 'ratchet:sweeps') return;
          off();
          resolve();
        });
      });
    const lookAgain = async (): Promise<void> => {
      // Each of the four tasks has set its timer.
      while (clock.pending < 4) await new Promise((resolve) => setImmediate(resolve));
      const look = looked();
      clock.advance(60_000);
      await look;
    };
    await store.insert([newJob({ lane: 'mial', name: 'b' }), newJob({ lane: 'mial', name: 'a' })]);
    const first = looked();
    maintenance.start();
    await first;
    expect(warnings).toEqual([]);
    await lookAgain();
    expect(warnings).toEqual([
      expect.stringMatching(
        /^lane "mial": 2 due jobs that no running node serves, the oldest for \d+ s: a, b; let/,
      ),
    ]);
    await lookAgain();
    expect(warnings).toHaveLength(1);
    await store.insert([newJob({ lane: 'mial', name: 'c' })]);
    await lookAgain();
    expect(warnings).toEqual([warnings[0], expect.stringContaining(' a, b, c; ')]);
    await database.query(`update ratchet.node set lanes = '{mial}' where id = '${one.id}'`);
    await lookAgain();
    await database.query(`update ratchet.node set lanes = '{}' where id = '${one.id}'`);
    await lookAgain();
    expect(warnings).toHaveLength(2);
    await lookAgain();
    expect(warnings).toHaveLength(3);
    await maintenance.stop();
    await database.query('delete from ratchet.job');
  });

  it('makes partitions and retains at start', async () => {
    const parts = await database.query<{ part: string }>(
      `select inhrelid::regclass::text as part from pg_inherits where inhparent = 'ratchet.job_history'::regclass order by 1 desc`,
    );
    await database.query(`drop table ${parts[0]!.part}`);
    const events = new EngineEvents();
    const outcomes: string[] = [];
    const all = new Promise<void>((resolve) => {
      events.on('maintenance', ({ task: name, outcome }) => {
        outcomes.push(`${name} ${outcome}`);
        if (outcomes.length === 4) resolve();
      });
    });
    const maintenance = new Maintenance({
      node: one,
      store,
      locks,
      clock: new FakeClock(),
      events,
      retention: { historyMs: 86_400_000, executionMs: 86_400_000, deadLetterMs: 86_400_000 },
      maxCrashRedeliveries: 3,
      logger: { log: () => {}, warn: () => {}, error: () => {} },
      onError: (name, error) => outcomes.push(`${name} ${String(error)}`),
    });
    maintenance.start();
    await all;
    await maintenance.stop();
    expect(outcomes.sort()).toEqual([
      'ratchet:failure-handlers done',
      'ratchet:partitions done',
      'ratchet:retention done',
      'ratchet:sweeps done',
    ]);
    const after = await database.query(
      `select 1 from pg_inherits where inhparent = 'ratchet.job_history'::regclass`,
    );
    expect(after).toHaveLength(parts.length);
  });
});
