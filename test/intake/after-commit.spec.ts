import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type DataSource, type QueryRunner } from 'typeorm';
import { AfterCommit } from '../../lib/intake/after-commit.js';
import { type QueryRunnerShape } from '../../lib/intake/typeorm-shapes.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { TYPEORM_VERSIONS } from './typeorm-versions.js';

describe.each(TYPEORM_VERSIONS)('AfterCommit with TypeORM $version', ({ make }) => {
  let database: TestDatabase;
  let source: DataSource;
  let afterCommit: AfterCommit;
  let heard: string[];

  const listen = (runner: QueryRunner | undefined, name: string): void =>
    afterCommit.listen(runner as unknown as QueryRunnerShape, () => heard.push(name));

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query('create table parent (id int primary key)');
    await database.query('create table child (id int references parent deferrable initially deferred)');
    source = make(database.url);
    await source.initialize();
  });
  afterAll(async () => {
    await source.destroy();
    await database.drop();
  });
  beforeEach(() => {
    afterCommit = new AfterCommit();
    heard = [];
  });
  afterEach(() => afterCommit.close());

  it('tells after the commit, once', async () => {
    await source.transaction(async (tx) => {
      listen(tx.queryRunner, 'a');
      listen(tx.queryRunner, 'b');
      await tx.query('select 1');
      expect(heard).toEqual([]);
    });
    expect(heard).toEqual(['a', 'b']);
    await source.transaction((tx) => tx.query('select 1'));
    expect(heard).toEqual(['a', 'b']);
  });

  it('tells nothing of a rollback, then or later', async () => {
    const runner = source.createQueryRunner();
    await runner.startTransaction();
    listen(runner, 'rolled back');
    await runner.rollbackTransaction();
    await runner.startTransaction();
    listen(runner, 'committed');
    await runner.commitTransaction();
    await runner.release();
    expect(heard).toEqual(['committed']);
  });

  it('waits for the outer commit when a savepoint is released', async () => {
    await source.transaction(async (tx) => {
      await tx.transaction(async (inner) => {
        listen(inner.queryRunner, 'inner');
        await inner.query('select 1');
      });
      expect(heard).toEqual([]);
    });
    expect(heard).toEqual(['inner']);
  });

  it('keeps the listeners of the outer transaction when a savepoint is rolled back', async () => {
    await source.transaction(async (tx) => {
      listen(tx.queryRunner, 'outer');
      await tx
        .transaction(async () => {
          throw new Error('inner fails');
        })
        .catch(() => undefined);
      expect(heard).toEqual([]);
    });
    expect(heard).toEqual(['outer']);
  });

  it('tells nothing when the commit fails', async () => {
    const failing = source.transaction(async (tx) => {
      listen(tx.queryRunner, 'never');
      await tx.query('insert into child values (1)');
    });
    await expect(failing).rejects.toMatchObject({ code: '23503' });
    expect(heard).toEqual([]);
  });

  it('works by hand: startTransaction and commitTransaction', async () => {
    const runner = source.createQueryRunner();
    await runner.startTransaction('SERIALIZABLE');
    listen(runner, 'manual');
    await runner.commitTransaction();
    await runner.release();
    expect(heard).toEqual(['manual']);
  });

  it('cannot reject a committed transaction', async () => {
    const result = source.transaction(async (tx) => {
      afterCommit.listen(tx.queryRunner as unknown as QueryRunnerShape, () => {
        throw new Error('ours');
      });
      listen(tx.queryRunner, 'next');
      return 'theirs';
    });
    await expect(result).resolves.toBe('theirs');
    expect(heard).toEqual(['next']);
  });

  it('is heard although a subscriber of the app throws', async () => {
    const broken = {
      afterTransactionCommit: () => {
        throw new Error('of the app');
      },
    };
    source.subscribers.push(broken);
    try {
      const result = source.transaction(async (tx) => listen(tx.queryRunner, 'ours'));
      await expect(result).rejects.toThrow('of the app');
      expect(heard).toEqual(['ours']);
    } finally {
      source.subscribers.splice(source.subscribers.indexOf(broken), 1);
    }
  });

  it('is there again after initialize() has made a new list', async () => {
    await source.transaction(async (tx) => listen(tx.queryRunner, 'before'));
    await source.destroy();
    await source.initialize();
    await source.transaction(async (tx) => listen(tx.queryRunner, 'after'));
    expect(heard).toEqual(['before', 'after']);
  });

  it('keeps transactions apart that run at once, and leaves nothing in the DataSource when it closes', async () => {
    const before = source.subscribers.length;
    const rollback = source
      .transaction(async (tx) => {
        listen(tx.queryRunner, 'rolled back');
        await tx.query('select 1');
        throw new Error('no');
      })
      .catch(() => undefined);
    await Promise.all([
      rollback,
      source.transaction(async (tx) => listen(tx.queryRunner, 'one')),
      source.transaction(async (tx) => listen(tx.queryRunner, 'two')),
    ]);
    expect(heard.sort()).toEqual(['one', 'two']);
    expect(source.subscribers).toHaveLength(before + 1);
    afterCommit.close();
    expect(source.subscribers).toHaveLength(before);
  });
});
