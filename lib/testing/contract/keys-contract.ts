import { uuidv7 } from 'uuidv7';
import { type ContractBench } from './job-store-subject.js';

/** Business keys, idempotency keys, the caller's transaction, the parent's fence. */
export function describeKeys(bench: ContractBench): void {
  const { it } = bench.runner;

  it('refuses a second live job of a business key, and takes one after the first ended', async () => {
    const node = await bench.node();
    const businessKey = uuidv7();
    const first = await node.inserted({ businessKey });
    const second = node.job({ businessKey });
    bench
      .expect(await bench.store.insert([second]))
      .toEqual([{ outcome: 'held', holder: first.id, running: false }]);
    const [claimed] = await node.claim();
    bench
      .expect(await bench.store.insert([second]))
      .toEqual([{ outcome: 'held', holder: first.id, running: true }]);
    await node.settle({ id: first.id, claimSeq: claimed?.claimSeq ?? '' }, { outcome: 'succeeded' });
    bench.expect(await bench.store.insert([second])).toEqual([{ outcome: 'created', id: second.id }]);
  });

  it('returns the holder, or replaces one that does not run', async () => {
    const node = await bench.node();
    const businessKey = uuidv7();
    const first = await node.inserted({ businessKey });
    bench
      .expect(await bench.store.insert([node.job({ businessKey, onConflict: 'return' })]))
      .toEqual([{ outcome: 'existing', id: first.id }]);
    const next = node.job({ businessKey, onConflict: 'replace' });
    bench
      .expect(await bench.store.insert([next]))
      .toEqual([{ outcome: 'created', id: next.id, replaced: first.id }]);
    bench
      .expect(await bench.store.get(first.id))
      .toMatchObject({ status: 'canceled', error: `superseded by ${next.id}` });
    await node.claim();
    bench
      .expect(await bench.store.insert([node.job({ businessKey, onConflict: 'replace' })]))
      .toEqual([{ outcome: 'held', holder: next.id, running: true }]);
  });

  it('answers an idempotent repeat with the first job, also after it ended, until the key expires', async () => {
    const node = await bench.node();
    const idempotencyKey = { key: uuidv7(), expiresInMs: 60_000 };
    const first = await node.claimOne({ idempotencyKey });
    const repeat = node.job({ idempotencyKey });
    bench.expect(await bench.store.insert([repeat])).toEqual([{ outcome: 'existing', id: first.id }]);
    await node.settle(first, { outcome: 'succeeded' });
    bench.expect(await bench.store.insert([repeat])).toEqual([{ outcome: 'existing', id: first.id }]);
    await bench.later(61_000, async () => {
      bench.expect(await bench.store.insert([repeat])).toEqual([{ outcome: 'created', id: repeat.id }]);
    });
  });

  it('lets one of many simultaneous enqueues of a key win', async () => {
    const node = await bench.node();
    const keys = [{ businessKey: uuidv7() }, { idempotencyKey: { key: uuidv7(), expiresInMs: 60_000 } }];
    for (const key of keys) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => bench.store.insert([node.job(key)])));
      bench.expect(answers.flat().filter(({ outcome }) => outcome === 'created').length).toBe(1);
    }
  });

  it('forgets the idempotency key when the business key refuses', async () => {
    const node = await bench.node();
    const businessKey = uuidv7();
    const idempotencyKey = { key: uuidv7(), expiresInMs: 60_000 };
    const holder = await node.inserted({ businessKey });
    const both = node.job({ businessKey, idempotencyKey });
    bench
      .expect(await bench.store.insert([both]))
      .toEqual([{ outcome: 'held', holder: holder.id, running: false }]);
    await bench.store.cancel(holder.id);
    bench.expect(await bench.store.insert([both])).toEqual([{ outcome: 'created', id: both.id }]);
    bench
      .expect(await bench.store.insert([node.job({ businessKey, idempotencyKey })]))
      .toEqual([{ outcome: 'existing', id: both.id }]);
  });

  it('inserts all of a call or nothing', async () => {
    const node = await bench.node();
    const businessKey = uuidv7();
    await node.inserted({ businessKey });
    const replaced = await node.inserted({ businessKey: uuidv7() });
    const jobs = [
      node.job(),
      node.job({ idempotencyKey: { key: uuidv7(), expiresInMs: 60_000 } }),
      node.job({ businessKey: uuidv7() }),
      node.job({ businessKey: replaced.businessKey ?? '', onConflict: 'replace' }),
      node.job({ businessKey }),
    ];
    const refused = await bench.store.insert(jobs);
    bench.expect(refused[4]?.outcome).toBe('held');
    bench
      .expect(await Promise.all(jobs.map(({ id }) => bench.store.get(id))))
      .toEqual(jobs.map(() => undefined));
    bench.expect((await bench.store.get(replaced.id))?.status).toBe('pending');
    const answers = await bench.store.insert(jobs.slice(0, 4));
    bench.expect(answers.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created', 'created']);
  });

  it('joins the transaction of the caller, which a refusal leaves usable', async () => {
    const node = await bench.node();
    const businessKey = uuidv7();
    const lost = node.job();
    await bench
      .transaction(async (transaction) => {
        await bench.store.insert([lost], transaction);
        throw new Error('rolled back on purpose');
      })
      .catch(() => undefined);
    bench.expect(await bench.store.get(lost.id)).toBe(undefined);
    const holder = await node.inserted({ businessKey });
    const kept = node.job();
    await bench.transaction(async (transaction) => {
      const answers = await bench.store.insert([node.job({ businessKey }), node.job()], transaction);
      bench.expect(answers[0]).toEqual({ outcome: 'held', holder: holder.id, running: false });
      await bench.store.insert([kept], transaction);
    });
    bench.expect((await node.claim()).map(({ id }) => id)).toEqual([holder.id, kept.id]);
  });

  it('writes nothing for a transaction that the connection is not in, and leaves the one that it is in usable', async () => {
    const node = await bench.node();
    const kept = node.job();
    await bench.transaction(async (transaction) => {
      const marked = (mark: string): typeof transaction => ({
        mark,
        query: (text, parameters) => transaction.query(text, parameters),
      });
      const over = marked(uuidv7());
      const here = marked(uuidv7());
      await bench.store.enlist(here);
      for (const keys of [
        {},
        { businessKey: uuidv7() },
        { idempotencyKey: { key: uuidv7(), expiresInMs: 60_000 } },
        { businessKey: uuidv7(), idempotencyKey: { key: uuidv7(), expiresInMs: 60_000 } },
      ]) {
        const refused = bench.store.insert([node.job(keys)], over).catch((error: unknown) => error);
        bench.expect(await refused).toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
      }
      bench.expect(await bench.store.insert([kept], here)).toEqual([{ outcome: 'created', id: kept.id }]);
    });
    bench.expect((await node.claim()).map(({ id }) => id)).toEqual([kept.id]);
  });

  it('inserts a child only while the claim of its parent stands', async () => {
    const node = await bench.node();
    const parent = await node.claimOne();
    const fence = { parent: { id: parent.id, claimSeq: parent.claimSeq } };
    const child = await node.inserted(fence);
    bench.expect(await bench.store.get(child.id)).toMatchObject({ parentId: parent.id });
    await node.settle(parent, { outcome: 'succeeded' });
    for (const late of [node.job(fence), node.job({ ...fence, businessKey: uuidv7() })]) {
      bench.expect(await bench.store.insert([late])).toEqual([{ outcome: 'fenced' }]);
      bench.expect(await bench.store.get(late.id)).toBe(undefined);
    }
  });
}
