import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type DataSource, type EntityManager, type QueryRunner } from 'typeorm';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type EnqueueOptions, type JobHandle } from '../../lib/jobs/enqueue-options.js';
import { createRatchetDatabase, type RatchetDatabase } from './ratchet-database.js';
import { TYPEORM_VERSIONS } from './typeorm-versions.js';

const Note = defineJob<{ n: number }>('note');
const KEY_KINDS = ['none', 'business', 'idempotency', 'both'] as const;
const CODES = expect.stringMatching(/TRANSACTION_NOT_ACTIVE|BUSINESS_KEY_HELD|STORE_FAULT|ENQUEUE_CONFLICT/);

type Outcome = PromiseSettledResult<JobHandle>;

const matrix = TYPEORM_VERSIONS.flatMap((typeorm) => [
  { ...typeorm, events: 'heard' },
  { ...typeorm, events: 'out of reach' },
]);

describe.each(matrix)('the end of a transaction of TypeORM $version, events $events', ({ make, events }) => {
  let app: RatchetDatabase;
  let source: DataSource;
  let runner: QueryRunner;
  let ambient: EntityManager | undefined;

  beforeAll(async () => {
    app = await createRatchetDatabase({ make, ambient: () => ambient });
    source = app.source;
    if (events !== 'heard') Object.freeze(source.subscribers);
    await app.database.query('create table purchase (id int primary key)');
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    ambient = undefined;
    await app.database.query('truncate ratchet.job, ratchet.idempotency_key, purchase');
    runner = source.createQueryRunner();
  });
  afterEach(() => runner.release());

  const liveIds = async (): Promise<string[]> => (await app.live()).map(({ id }) => id);
  const idsOf = (outcomes: readonly Outcome[]): string[] =>
    outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.id] : []));
  const keysLeft = (): Promise<unknown[]> => app.database.query('select 1 from ratchet.idempotency_key');

  describe.each(KEY_KINDS)('key: %s', (kind) => {
    const enqueue = (n: number, options: EnqueueOptions): Promise<JobHandle> =>
      app.scheduler.enqueue(
        Note,
        { n },
        {
          ...(kind === 'business' || kind === 'both' ? { businessKey: `b${n}` } : {}),
          ...(kind === 'idempotency' || kind === 'both' ? { idempotencyKey: `i${n}` } : {}),
          ...options,
        },
      );
    /** Many at once, and nobody waits for them yet. */
    const wave = (
      count: number,
      transaction: unknown,
      from = 0,
    ): { each: Promise<JobHandle>[]; settled: Promise<Outcome[]> } => {
      const each = Array.from({ length: count }, (_, n) =>
        enqueue(from + n, { transaction: transaction as EntityManager }),
      );
      return { each, settled: Promise.allSettled(each) };
    };

    it('takes along what waits when another call of a Promise.all is refused', async () => {
      const holder = await enqueue(99, { businessKey: 'held', idempotencyKey: 'held' });
      let others: Promise<Outcome[]> | undefined;
      const failing = source.transaction(async (tx) => {
        const refused = enqueue(0, { transaction: tx, businessKey: 'held', idempotencyKey: 'new' });
        const { each, settled } = wave(5, tx, 1);
        others = settled;
        await Promise.all([refused, ...each]);
      });
      await expect(failing).rejects.toMatchObject({ code: 'BUSINESS_KEY_HELD' });
      for (const outcome of (await others)!) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: CODES });
      }
      expect(await liveIds()).toEqual([holder.id]);
      expect(await keysLeft()).toHaveLength(1);
    });

    it('takes along what waits when a statement of the app fails beside it', async () => {
      await app.database.query('insert into purchase values (1)');
      let others: Promise<Outcome[]> | undefined;
      const failing = source.transaction(async (tx) => {
        const save = tx.query('insert into purchase values (1)');
        const { each, settled } = wave(5, tx);
        others = settled;
        await Promise.all([save, ...each]);
      });
      await expect(failing).rejects.toMatchObject({ code: '23505' });
      await others;
      expect(await liveIds()).toEqual([]);
      expect(await keysLeft()).toEqual([]);
    });

    it('takes along what waits when a transaction is rolled back by hand, or as text', async () => {
      for (const rollBack of [() => runner.rollbackTransaction(), () => runner.query('rollback')]) {
        await runner.startTransaction();
        const { each, settled } = wave(20, runner);
        await each[0];
        await rollBack();
        const outcomes = await settled;
        expect(idsOf(outcomes).length).toBeLessThan(20);
        for (const { reason } of outcomes.filter((outcome) => outcome.status === 'rejected')) {
          expect(reason).toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
        }
        expect(await liveIds()).toEqual([]);
        expect(await keysLeft()).toEqual([]);
        if (runner.isTransactionActive) await runner.rollbackTransaction();
      }
    });

    it('commits what it acknowledges when a commit is asked for while enqueues wait', async () => {
      await runner.startTransaction();
      const { each, settled } = wave(20, runner);
      await each[0];
      await runner.commitTransaction();
      const outcomes = await settled;
      expect(await liveIds()).toEqual(idsOf(outcomes));
      if (events === 'heard') expect(idsOf(outcomes)).toHaveLength(20);
    });

    it('keeps a savepoint and its transaction apart', async () => {
      let inner: Promise<Outcome[]> | undefined;
      const outer = await source.transaction(async (tx) => {
        const before = await enqueue(100, { transaction: tx });
        const nested = tx.transaction(async (same) => {
          const { each, settled } = wave(20, same);
          inner = settled;
          await each[0];
          throw new Error('inner');
        });
        await expect(nested).rejects.toThrow('inner');
        const after = wave(3, tx, 200);
        return [before.id, ...idsOf(await after.settled)];
      });
      await inner;
      expect(outer).toHaveLength(4);
      expect((await liveIds()).sort()).toEqual(outer.sort());
    });

    it('keeps the next transaction of the same runner apart', async () => {
      await runner.startTransaction();
      const first = wave(20, runner);
      await first.each[0];
      await runner.rollbackTransaction();
      await runner.startTransaction();
      const second = wave(5, runner, 100);
      const outcomes = await second.settled;
      await runner.commitTransaction();
      await first.settled;
      expect(idsOf(outcomes)).toHaveLength(5);
      expect(await liveIds()).toEqual(idsOf(outcomes));
      expect(await keysLeft()).toHaveLength(kind === 'idempotency' || kind === 'both' ? 5 : 0);
    });

    it('takes along what is left of many', async () => {
      const items = Array.from({ length: 4_500 }, (_, n) => ({
        payload: { n },
        options: {
          ...(kind === 'business' || kind === 'both' ? { businessKey: `b${n}` } : {}),
          ...(kind === 'idempotency' || kind === 'both' ? { idempotencyKey: `i${n}` } : {}),
        },
      }));
      await runner.startTransaction();
      const [one, two] = [0, 1].map(() =>
        app.scheduler.enqueueMany(Note, items, { transaction: runner }).then(
          () => 'written',
          (error: unknown) => error,
        ),
      );
      await app.scheduler
        .enqueueMany(Note, items.slice(0, 1), { transaction: runner })
        .catch(() => undefined);
      await runner.rollbackTransaction();
      await Promise.all([one, two]);
      expect(await liveIds()).toEqual([]);
      expect(await keysLeft()).toEqual([]);
    });
  });

  // Out of reach, it may run inside the savepoint, as any statement of the app that waits for the connection would.
  if (events === 'heard') {
    it('lets what was enqueued before a savepoint go before it', async () => {
      let outer: Promise<Outcome[]> | undefined;
      await source.transaction(async (tx) => {
        outer = Promise.allSettled(
          Array.from({ length: 20 }, (_, n) => app.scheduler.enqueue(Note, { n }, { transaction: tx })),
        );
        const nested = tx.transaction(() => Promise.reject(new Error('inner')));
        await expect(nested).rejects.toThrow('inner');
        await outer;
      });
      const ids = idsOf((await outer)!);
      expect(ids).toHaveLength(20);
      expect(await liveIds()).toEqual(ids);
    });
  }

  describe('a check that lasts longer than the transaction', () => {
    const slow = () => {
      let pass = (): void => undefined;
      const passed = new Promise<void>((resolve) => (pass = resolve));
      const schema = {
        '~standard': {
          version: 1 as const,
          vendor: 'test',
          validate: async (value: unknown) => {
            await passed;
            return { value: value as number };
          },
        },
      };
      return { Slow: defineJob('slow', { schema }), pass: () => pass() };
    };

    it('ends in a refusal, whatever the runner does by then', async () => {
      const { Slow, pass } = slow();
      await runner.startTransaction();
      const late = Promise.allSettled([app.scheduler.enqueue(Slow, 1, { transaction: runner })]);
      await runner.rollbackTransaction();
      await runner.startTransaction();
      pass();
      const [outcome] = await late;
      await runner.commitTransaction();
      expect(outcome).toMatchObject({ reason: { code: 'TRANSACTION_NOT_ACTIVE' } });
      expect(await liveIds()).toEqual([]);
    });

    it('does not turn an ambient enqueue into an independent one', async () => {
      const { Slow, pass } = slow();
      let late: Promise<Outcome[]> | undefined;
      const failing = source.transaction(async (tx) => {
        ambient = tx;
        late = Promise.allSettled([app.scheduler.enqueue(Slow, 1)]);
        await tx.query('select 1');
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      pass();
      expect((await late)?.[0]?.status).toBe('rejected');
      expect(await liveIds()).toEqual([]);
    });
  });

  it('works again after a rollback', async () => {
    for (let round = 0; round < 3; round += 1) {
      await runner.startTransaction();
      await app.scheduler.enqueue(Note, { n: round }, { transaction: runner });
      await (round === 1 ? runner.rollbackTransaction() : runner.commitTransaction());
    }
    expect(await liveIds()).toHaveLength(2);
  });
});
