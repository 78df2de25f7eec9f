import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { type DataSource, type EntityManager } from 'typeorm';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type EnqueueOptions, type JobHandle } from '../../lib/jobs/enqueue-options.js';
import { createRatchetDatabase, type RatchetDatabase, somebodyWaitsForALock } from './ratchet-database.js';
import { TYPEORM_VERSIONS } from './typeorm-versions.js';

const Note = defineJob<{ n: number }>('note');
const LEVELS = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;
const KEY_KINDS = ['none', 'business', 'idempotency', 'both'] as const;

function keysFor(kind: (typeof KEY_KINDS)[number]): { businessKey?: string; idempotencyKey?: string } {
  const key = randomUUID();
  return {
    ...(kind === 'business' || kind === 'both' ? { businessKey: key } : {}),
    ...(kind === 'idempotency' || kind === 'both' ? { idempotencyKey: key } : {}),
  };
}

describe.each(TYPEORM_VERSIONS)('enqueue in a transaction of TypeORM $version', ({ make }) => {
  let app: RatchetDatabase;
  let source: DataSource;
  let ambient: EntityManager | undefined;

  beforeAll(async () => {
    app = await createRatchetDatabase({ make, ambient: () => ambient });
    source = app.source;
    await app.database.query('create table purchase (id serial primary key, note text)');
    await app.database.query(
      'create table line (purchase_id int references purchase deferrable initially deferred)',
    );
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    ambient = undefined;
    await app.database.query('truncate ratchet.job, ratchet.idempotency_key, purchase, line');
    app.wakeups.length = 0;
  });

  const enqueue = (options: EnqueueOptions): Promise<JobHandle> =>
    app.scheduler.enqueue(Note, { n: 1 }, options);
  const purchases = async (): Promise<number> => (await app.database.query('select 1 from purchase')).length;
  const keysKept = async (): Promise<number> =>
    (await app.database.query('select 1 from ratchet.idempotency_key')).length;
  const buy = (tx: EntityManager): Promise<unknown> => tx.query("insert into purchase (note) values ('x')");

  describe.each(LEVELS)('%s', (level) => {
    describe.each(KEY_KINDS)('key: %s', (kind) => {
      const keyed = kind === 'idempotency' || kind === 'both' ? 1 : 0;

      it('commits with the transaction, and wakes only then', async () => {
        const keys = keysFor(kind);
        const handle = await source.transaction(level, async (tx) => {
          await buy(tx);
          const made = await enqueue({ ...keys, transaction: tx });
          expect(await app.live()).toEqual([]);
          expect(app.wakeups).toEqual([]);
          return made;
        });
        expect(handle.created).toBe(true);
        expect((await app.live()).map(({ id }) => id)).toEqual([handle.id]);
        expect(await purchases()).toBe(1);
        expect(await keysKept()).toBe(keyed);
        expect(app.wakeups).toHaveLength(1);
      });

      it('vanishes with a rollback', async () => {
        const keys = keysFor(kind);
        const rolledBack = source.transaction(level, async (tx) => {
          await buy(tx);
          await enqueue({ ...keys, transaction: tx });
          throw new Error('changed my mind');
        });
        await expect(rolledBack).rejects.toThrow('changed my mind');
        expect(await app.live()).toEqual([]);
        expect(await keysKept()).toBe(0);
        expect(app.wakeups).toEqual([]);
        // Its keys are free again.
        expect((await enqueue(keys)).created).toBe(true);
      });

      it('vanishes with a savepoint, and the rest is committed', async () => {
        const keys = keysFor(kind);
        const outer = await source.transaction(level, async (tx) => {
          const kept = await enqueue({ transaction: tx });
          await tx
            .transaction(async (inner) => {
              await enqueue({ ...keys, transaction: inner });
              throw new Error('inner');
            })
            .catch(() => undefined);
          return [kept.id, (await enqueue({ ...keys, transaction: tx })).id];
        });
        expect((await app.live()).map(({ id }) => id)).toEqual(outer);
        expect(app.wakeups.length).toBeGreaterThan(0);
      });

      it('commits with a released savepoint', async () => {
        const keys = keysFor(kind);
        const handle = await source.transaction(level, async (tx) => {
          const made = await tx.transaction((inner) => enqueue({ ...keys, transaction: inner }));
          expect(app.wakeups).toEqual([]);
          return made;
        });
        expect((await app.live()).map(({ id }) => id)).toEqual([handle.id]);
        expect(app.wakeups).toHaveLength(1);
      });

      it('vanishes when the commit fails', async () => {
        const failed = source.transaction(level, async (tx) => {
          await enqueue({ ...keysFor(kind), transaction: tx });
          await tx.query('insert into line values (4711)');
        });
        await expect(failed).rejects.toMatchObject({ code: '23503' });
        expect(await app.live()).toEqual([]);
        expect(await keysKept()).toBe(0);
        expect(app.wakeups).toEqual([]);
      });
    });

    it('refuses a held key, and the transaction can go on', async () => {
      const holder = await enqueue({ businessKey: 'k' });
      await source.transaction(level, async (tx) => {
        await buy(tx);
        await expect(enqueue({ businessKey: 'k', transaction: tx })).rejects.toMatchObject({
          code: 'BUSINESS_KEY_HELD',
          holder: holder.id,
        });
        await expect(
          enqueue({ businessKey: 'k', idempotencyKey: 'i', transaction: tx }),
        ).rejects.toMatchObject({ code: 'BUSINESS_KEY_HELD' });
        await buy(tx);
      });
      expect(await purchases()).toBe(2);
      expect(await app.live()).toHaveLength(1);
      // The idempotency row of a refused job is gone again.
      expect(await keysKept()).toBe(0);
    });

    it('answers a repeat and onConflict inside the transaction', async () => {
      const first = await enqueue({ businessKey: 'k', idempotencyKey: 'i' });
      await source.transaction(level, async (tx) => {
        const repeat = await enqueue({ idempotencyKey: 'i', transaction: tx });
        expect(repeat).toEqual({ id: first.id, created: false });
        const returned = await enqueue({ businessKey: 'k', onConflict: 'return', transaction: tx });
        expect(returned).toEqual({ id: first.id, created: false });
        const own = await enqueue({ businessKey: 'mine', transaction: tx });
        const again = await enqueue({ businessKey: 'mine', onConflict: 'return', transaction: tx });
        expect(again).toEqual({ id: own.id, created: false });
        const successor = await enqueue({ businessKey: 'k', onConflict: 'replace', transaction: tx });
        expect(successor.created).toBe(true);
        await buy(tx);
        return successor;
      });
      expect((await app.live()).map(({ business_key }) => business_key).sort()).toEqual(['k', 'mine']);
      expect((await app.live()).map(({ id }) => id)).not.toContain(first.id);
      expect(await purchases()).toBe(1);
    });

    it('enqueues many, all or nothing, and can go on after a refusal', async () => {
      await enqueue({ businessKey: 'held' });
      await source.transaction(level, async (tx) => {
        const items = ['a', 'held', 'b'].map((businessKey) => ({
          payload: { n: 1 },
          options: { businessKey },
        }));
        await expect(app.scheduler.enqueueMany(Note, items, { transaction: tx })).rejects.toMatchObject({
          code: 'BUSINESS_KEY_HELD',
          businessKey: 'held',
        });
        await app.scheduler.enqueueMany(Note, [{ payload: { n: 2 } }, { payload: { n: 3 } }], {
          transaction: tx,
        });
      });
      expect((await app.live()).map(({ business_key }) => business_key)).toEqual(['held', null, null]);
    });
  });

  it('tells a conflict when a key was committed behind the snapshot of the transaction', async () => {
    for (const level of ['REPEATABLE READ', 'SERIALIZABLE'] as const) {
      for (const key of ['businessKey', 'idempotencyKey'] as const) {
        const value = randomUUID();
        const conflict = source.transaction(level, async (tx) => {
          await tx.query('select 1 from purchase');
          await enqueue({ [key]: value });
          await enqueue({ [key]: value, transaction: tx });
        });
        await expect(conflict).rejects.toMatchObject({ code: 'ENQUEUE_CONFLICT', retryable: true });
      }
    }
  });

  it('sees such a key under READ COMMITTED, and can go on', async () => {
    await source.transaction('READ COMMITTED', async (tx) => {
      await tx.query('select 1 from purchase');
      const { id } = await enqueue({ businessKey: 'k', idempotencyKey: 'i' });
      await expect(enqueue({ businessKey: 'k', transaction: tx })).rejects.toMatchObject({ holder: id });
      await expect(enqueue({ idempotencyKey: 'i', transaction: tx })).resolves.toEqual({
        id,
        created: false,
      });
      await buy(tx);
    });
    expect(await purchases()).toBe(1);
  });

  describe('two transactions that want one key', () => {
    it.each(['commits', 'rolls back'] as const)(
      'the second gets its answer when the first %s',
      async (end) => {
        const first = source.createQueryRunner();
        await first.startTransaction();
        const { id } = await enqueue({ businessKey: 'k', transaction: first });
        const second = source.transaction(async (tx) => {
          const outcome = await enqueue({ businessKey: 'k', onConflict: 'return', transaction: tx });
          await buy(tx);
          return outcome;
        });
        await somebodyWaitsForALock(app.database);
        await (end === 'commits' ? first.commitTransaction() : first.rollbackTransaction());
        await first.release();
        const handle = await second;
        expect(handle.created).toBe(end === 'rolls back');
        if (end === 'commits') expect(handle.id).toBe(id);
        expect(await app.live()).toHaveLength(1);
      },
    );

    it('a deadlock over two keys is a conflict of one, and the other commits', async () => {
      const [one, two] = [source.createQueryRunner(), source.createQueryRunner()];
      await Promise.all([one.startTransaction(), two.startTransaction()]);
      await enqueue({ businessKey: 'a', transaction: one });
      await enqueue({ businessKey: 'b', transaction: two });
      const crossed = [
        enqueue({ businessKey: 'b', transaction: one }).then(() => one.commitTransaction()),
        enqueue({ businessKey: 'a', transaction: two }).then(() => two.commitTransaction()),
      ].map((attempt, index) =>
        attempt.catch(async (error: unknown) => {
          await [one, two][index]!.rollbackTransaction();
          throw error;
        }),
      );
      const results = await Promise.allSettled(crossed);
      await Promise.all([one.release(), two.release()]);
      const failed = results.filter((result) => result.status === 'rejected');
      expect(failed).toHaveLength(1);
      expect(failed[0]).toMatchObject({ reason: { code: 'ENQUEUE_CONFLICT', retryable: true } });
      expect((await app.live()).map(({ business_key }) => business_key).sort()).toEqual(['a', 'b']);
    });

    it('an enqueue outside a transaction does not wait for ever', async () => {
      const holder = source.createQueryRunner();
      await holder.startTransaction();
      await enqueue({ businessKey: 'k', transaction: holder });
      await expect(enqueue({ businessKey: 'k' })).rejects.toMatchObject({
        code: 'ENQUEUE_CONFLICT',
        retryable: true,
      });
      // Neighbours were not in its way.
      await expect(enqueue({ businessKey: 'other' })).resolves.toMatchObject({ created: true });
      await holder.rollbackTransaction();
      await holder.release();
      await expect(enqueue({ businessKey: 'k' })).resolves.toMatchObject({ created: true });
    });
  });

  describe('the ambient transaction of the module option', () => {
    it('is joined by enqueue and enqueueMany that name none', async () => {
      const rolledBack = source.transaction(async (tx) => {
        ambient = tx;
        await enqueue({});
        await app.scheduler.enqueueMany(Note, [{ payload: { n: 1 } }]);
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      // The manager is still returned, and in no transaction any more.
      await enqueue({});
      ambient = source.manager;
      await enqueue({});
      expect(await app.live()).toHaveLength(2);
    });

    it('gives way to a transaction that is named', async () => {
      await source
        .transaction(async (outer) => {
          ambient = outer;
          await source.transaction((tx) => enqueue({ transaction: tx }));
          throw new Error('no');
        })
        .catch(() => undefined);
      expect(await app.live()).toHaveLength(1);
    });
  });

  it('joins by a query runner that was started by hand, many calls at once', async () => {
    const runner = source.createQueryRunner();
    await runner.startTransaction();
    const handles = await Promise.all(Array.from({ length: 20 }, () => enqueue({ transaction: runner })));
    expect(await app.live()).toEqual([]);
    await runner.commitTransaction();
    await runner.release();
    expect((await app.live()).map(({ id }) => id)).toEqual(handles.map(({ id }) => id));
  });

  it('accepts another DataSource of the same database, and names one of another database', async () => {
    const same = await make(app.database.url).initialize();
    const handle = await same.transaction((tx) => enqueue({ transaction: tx }));
    expect((await app.live()).map(({ id }) => id)).toEqual([handle.id]);
    expect(app.wakeups).toHaveLength(1);
    await same.destroy();

    // One that has a schema of the same name, even.
    const other = await createRatchetDatabase({ make });
    await other.source.transaction(async (tx) => {
      await expect(enqueue({ transaction: tx })).rejects.toMatchObject({
        code: 'FOREIGN_TRANSACTION',
        message: expect.stringContaining(other.database.name),
      });
      await tx.query('select 1');
    });
    expect(await other.live()).toEqual([]);
    await other.close();
  });
});
