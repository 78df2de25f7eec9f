import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, transactionOf, turn } from '../support/store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';

let database: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

const count = async (where: string, parameters: unknown[] = []): Promise<number> =>
  Number(
    (
      await database.query<{ n: string }>(`select count(*) as n from ratchet.job where ${where}`, parameters)
    )[0]?.n,
  );

/** Waits until somebody waits for a lock in our database. */
async function somebodyWaits(): Promise<void> {
  for (;;) {
    const rows = await database.query(`select 1 from pg_locks where not granted`);
    if (rows.length > 0) return;
  }
}

describe('insert', () => {
  it('takes thousands of jobs in one call, of every kind of key, in call order', async () => {
    const jobs = Array.from({ length: 5_000 }, (_, index) =>
      newJob({
        lane: 'bulk',
        ...(index % 3 === 1 ? { businessKey: `bulk-${String(index)}` } : {}),
        ...(index % 3 === 2 ? { idempotencyKey: { key: `bulk-${String(index)}`, expiresInMs: 60_000 } } : {}),
      }),
    );
    const answers = await store.insert(jobs);
    expect(answers).toEqual(jobs.map(({ id }) => ({ outcome: 'created', id })));
    expect(await count(`lane = 'bulk'`)).toBe(5_000);
  });

  it('is all or nothing over several statements', async () => {
    const jobs = Array.from({ length: 4_500 }, () => newJob({ lane: 'nothing' }));
    const bad = newJob({ lane: 'nothing', payload: '"\\u0000"' });
    await expect(store.insert([...jobs, bad])).rejects.toMatchObject({ kind: 'bad_row' });
    expect(await count(`lane = 'nothing'`)).toBe(0);
  });

  it('settles doubles within a call: the first wins a key', async () => {
    const businessKey = uuidv7();
    const idempotencyKey = { key: uuidv7(), expiresInMs: 60_000 };
    const [a, b, c, d] = [
      newJob({ businessKey }),
      newJob({ businessKey, onConflict: 'return' }),
      newJob({ idempotencyKey }),
      newJob({ idempotencyKey }),
    ];
    expect(await store.insert([a, b, c, d])).toEqual([
      { outcome: 'created', id: a.id },
      { outcome: 'existing', id: a.id },
      { outcome: 'created', id: c.id },
      { outcome: 'existing', id: c.id },
    ]);
    const key = uuidv7();
    const pair = [newJob({ businessKey: key }), newJob({ businessKey: key })];
    expect((await store.insert(pair))[1]).toEqual({ outcome: 'held', holder: pair[0]?.id, running: false });
    expect(await count('business_key = $1', [key])).toBe(0);
  });

  it('remembers under the idempotency key the job that its business key returned', async () => {
    const businessKey = uuidv7();
    const idempotencyKey = { key: uuidv7(), expiresInMs: 60_000 };
    const holder = newJob({ businessKey });
    await store.insert([holder]);
    const ask = () => store.insert([newJob({ businessKey, idempotencyKey, onConflict: 'return' })]);
    expect(await ask()).toEqual([{ outcome: 'existing', id: holder.id }]);
    await store.cancel(holder.id);
    expect(await ask()).toEqual([{ outcome: 'existing', id: holder.id }]);
  });

  it('replaces several holders in one call', async () => {
    const keys = [uuidv7(), uuidv7(), uuidv7()];
    const old = keys.slice(0, 2).map((businessKey) => newJob({ businessKey }));
    await store.insert(old);
    const next = keys.map((businessKey) => newJob({ businessKey, onConflict: 'replace' }));
    expect(await store.insert(next)).toEqual([
      { outcome: 'created', id: next[0]?.id, replaced: old[0]?.id },
      { outcome: 'created', id: next[1]?.id, replaced: old[1]?.id },
      { outcome: 'created', id: next[2]?.id },
    ]);
  });

  it.each([
    ['business', () => newJob({ businessKey: 'locked' })],
    ['idempotency', () => newJob({ idempotencyKey: { key: 'locked', expiresInMs: 60_000 } })],
    ['replaced business', () => newJob({ businessKey: 'locked-2', onConflict: 'replace' })],
    [
      'both',
      () => newJob({ businessKey: 'locked-3', idempotencyKey: { key: 'locked-3', expiresInMs: 60_000 } }),
    ],
  ])('waits two seconds for an open transaction that holds a %s key, no longer', async (_, make) => {
    const other = await database.connect();
    await other.query('begin');
    const transaction = transactionOf(other);
    await store.insert([make()], transaction);
    const startedAt = performance.now();
    await expect(store.insert([make()])).rejects.toMatchObject({ kind: 'unavailable', sourceCode: '55P03' });
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    await other.query('rollback');
    expect((await store.insert([make()]))[0]?.outcome).toBe('created');
  });

  it('takes the key of a transaction that rolls back while it waits', async () => {
    const other = await database.connect();
    await other.query('begin');
    const transaction = transactionOf(other);
    const businessKey = uuidv7();
    await store.insert([newJob({ businessKey })], transaction);
    const waiting = store.insert([newJob({ businessKey })]);
    await somebodyWaits();
    await other.query('rollback');
    expect((await waiting)[0]?.outcome).toBe('created');
  });

  it('does not let groups with the same keys deadlock', async () => {
    const keys = Array.from({ length: 30 }, () => uuidv7());
    const groups = Array.from({ length: 6 }, (_, index) => {
      const order = index % 2 === 0 ? keys : [...keys].reverse();
      return order.map((key) =>
        newJob({
          businessKey: key,
          idempotencyKey: { key: `g-${key}`, expiresInMs: 60_000 },
          onConflict: 'return',
        }),
      );
    });
    const answers = await Promise.all(groups.map((group) => store.insert(group)));
    const created = answers.flat().filter(({ outcome }) => outcome === 'created');
    expect(created).toHaveLength(keys.length);
  });

  it('leaves what the caller did beside a refused call in the same transaction', async () => {
    const businessKey = uuidv7();
    await store.insert([newJob({ businessKey })]);
    const other = await database.connect();
    await other.query('begin');
    await other.query('create table if not exists mine (id uuid)');
    const transaction = transactionOf(other);
    const kept = newJob();
    await store.insert([kept], transaction);
    const group = [newJob(), newJob({ businessKey: uuidv7() }), newJob({ businessKey })];
    const [refused] = await Promise.all([
      store.insert(group, transaction),
      other.query(`insert into mine values ('${kept.id}')`),
    ]);
    expect(refused[2]?.outcome).toBe('held');
    await other.query('commit');
    expect(await database.query('select id from mine')).toEqual([{ id: kept.id }]);
    expect((await store.get(kept.id))?.status).toBe('pending');
    expect(await Promise.all(group.map(({ id }) => store.get(id)))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('writes a large payload once and leaves it there', async () => {
    const node = await registerTestNode(store);
    const bucket = await store.openBucket(node, 'large');
    const payload = JSON.stringify('é'.repeat(600));
    const job = newJob({ lane: 'large', payload });
    await store.insert([job]);
    expect(await count(`id = $1 and payload is null`, [job.id])).toBe(1);
    const { claimed } = await store.exchange(turn(bucket));
    expect(claimed[0]?.payload).toBe('é'.repeat(600));
    await store.exchange(
      turn(bucket, { settle: [{ id: job.id, claimSeq: '1', outcome: 'failed', error: 'e' }], want: 0 }),
    );
    expect((await store.get(job.id))?.payload).toBe('é'.repeat(600));
    await store.redrive(job.id);
    expect((await store.exchange(turn(bucket))).claimed[0]?.payload).toBe('é'.repeat(600));
  });

  it('reckons due times from the moment of the call, also in a long transaction', async () => {
    const other = await database.connect();
    await other.query('begin');
    await other.query('select pg_sleep(0.2)');
    const job = newJob({ delayMs: 60_000 });
    const before = (await other.query<{ at: Date }>('select clock_timestamp() as at')).rows[0]?.at;
    await store.insert([job], transactionOf(other));
    await other.query('commit');
    const view = await store.get(job.id);
    expect(Number(view?.createdAt)).toBeGreaterThanOrEqual(Number(before) - 1);
    expect(Number(view?.scheduledAt) - Number(view?.createdAt)).toBe(60_000);
  });
});
