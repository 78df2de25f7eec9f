import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type DataSource } from 'typeorm';
import { Enlistment } from '../../lib/intake/enlistment.js';
import { JoinedTransaction } from '../../lib/intake/joined-transaction.js';
import { TransactionEnd } from '../../lib/intake/transaction-end.js';
import { type QueryRunnerShape } from '../../lib/intake/typeorm-shapes.js';
import { type StoreTransaction } from '../../lib/store/job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { TYPEORM_VERSIONS } from './typeorm-versions.js';

describe.each(TYPEORM_VERSIONS)('Enlistment with TypeORM $version', ({ make }) => {
  let database: TestDatabase;
  let source: DataSource;
  let ambient: unknown;
  let reached: boolean;
  let asked: number;
  let enlistment: Enlistment;

  const reaches = (transaction: StoreTransaction): Promise<boolean> => {
    asked += 1;
    return transaction.query('select 1', []).then(() => reached);
  };

  const join = (runner: QueryRunnerShape): JoinedTransaction =>
    new JoinedTransaction(runner, new TransactionEnd(runner));
  const find = async (given: unknown): Promise<JoinedTransaction | undefined> => {
    const joined = enlistment.find(given);
    if (joined) await enlistment.requireReach(joined);
    return joined;
  };

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query('create table note (id int)');
    source = make(database.url);
    await source.initialize();
  });
  afterAll(async () => {
    await source.destroy();
    await database.drop();
  });
  beforeEach(() => {
    ambient = undefined;
    reached = true;
    asked = 0;
    enlistment = new Enlistment({ dataSource: source, ambient: () => ambient, reaches, join });
  });

  it('finds none when none is given and none is ambient', async () => {
    await expect(find(undefined)).resolves.toBeUndefined();
    ambient = source.manager;
    await expect(find(undefined)).resolves.toBeUndefined();
    ambient = null;
    await expect(find(undefined)).resolves.toBeUndefined();
  });

  it('joins by manager, by query runner, and by what the module option returns', async () => {
    await source.transaction(async (tx) => {
      expect((await find(tx))?.runner).toBe(tx.queryRunner);
      expect((await find(tx.queryRunner))?.runner).toBe(tx.queryRunner);
      ambient = tx;
      expect((await find(undefined))?.runner).toBe(tx.queryRunner);
    });
    expect(asked).toBe(0);
  });

  it('writes into that transaction, and gets rows for every kind of statement', async () => {
    await source
      .transaction(async (tx) => {
        const transaction = (await find(tx))!;
        expect(await transaction.query('insert into note values ($1) returning id', [1])).toEqual([
          { id: 1 },
        ]);
        expect(await transaction.query('update note set id = 2 returning id', [])).toEqual([{ id: 2 }]);
        expect(await transaction.query('delete from note where false returning id', [])).toEqual([]);
        throw new Error('roll back');
      })
      .catch(() => undefined);
    expect(await database.query('select * from note')).toEqual([]);
  });

  it('refuses what is given and in no transaction', async () => {
    const runner = source.createQueryRunner();
    const strangers = [source.manager, source, runner, runner.manager, () => undefined, {}, 'tx', 1];
    for (const given of strangers) {
      await expect(find(given)).rejects.toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
    }
    await runner.release();
  });

  it('refuses a runner whose transaction is over or whose connection is gone', async () => {
    const runner = source.createQueryRunner();
    await runner.startTransaction();
    await runner.commitTransaction();
    await expect(find(runner)).rejects.toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
    await runner.release();
    await expect(find(runner)).rejects.toMatchObject({ code: 'TRANSACTION_RELEASED' });
    const over = await source.transaction((tx) => Promise.resolve(tx));
    await expect(find(over)).rejects.toMatchObject({ code: 'TRANSACTION_RELEASED' });
  });

  it('says that a transaction whose backend died must run again', async () => {
    const runner = source.createQueryRunner();
    await runner.startTransaction();
    const [backend] = (await runner.query('select pg_backend_pid() as pid')) as { pid: number }[];
    await database.query('select pg_terminate_backend($1)', [backend!.pid]);
    while (!runner.isReleased) await new Promise((resolve) => setImmediate(resolve));
    await expect(find(runner)).rejects.toMatchObject({
      code: 'TRANSACTION_NOT_ACTIVE',
      message: expect.stringContaining('its connection was lost'),
    });
    // Nor is it passed over when it is the ambient one: the job would be committed although its transaction is not.
    ambient = runner.manager;
    await expect(find(undefined)).rejects.toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
  });

  it('asks once whether the transaction of another DataSource reaches the tables', async () => {
    enlistment = new Enlistment({ dataSource: undefined, ambient: undefined, reaches, join });
    await source.transaction(async (tx) => {
      expect(await find(tx)).toBeDefined();
      expect(await find(tx)).toBeDefined();
    });
    expect(asked).toBe(1);
  });

  it('names the database of a transaction that does not reach them', async () => {
    reached = false;
    enlistment = new Enlistment({ dataSource: undefined, ambient: undefined, reaches, join });
    await source.transaction(async (tx) => {
      await expect(find(tx)).rejects.toMatchObject({
        code: 'FOREIGN_TRANSACTION',
        message: expect.stringContaining(database.name),
      });
      await tx.query('select 1');
    });
  });

  it('passes on what the module option throws', async () => {
    enlistment = new Enlistment({
      dataSource: source,
      ambient: () => {
        throw new Error('no store');
      },
      reaches,
      join,
    });
    await expect(find(undefined)).rejects.toThrow('no store');
  });
});
