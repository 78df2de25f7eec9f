import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { JobScheduler, RatchetModule, type RatchetModuleOptions, RatchetRuntime } from 'nestjs-ratchet';
import { manualRatchet, RatchetTester } from 'nestjs-ratchet/testing';
import { DataSource } from 'typeorm';
import { typeOrm } from '../module/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Greet, Jobs, Script, Slow } from './jobs.js';

let database: TestDatabase;
const apps: TestingModule[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
  await database.query('truncate ratchet.job');
});
afterAll(() => database.drop());

async function boot(options: Partial<RatchetModuleOptions> = {}): Promise<TestingModule> {
  const ratchet = RatchetModule.forRoot({ dataSource: 'default', ...options } as RatchetModuleOptions);
  const app = await manualRatchet(
    Test.createTestingModule({ imports: [typeOrm(database), ratchet], providers: [Jobs, Script] }),
  ).compile();
  apps.push(app);
  return app.init();
}

describe('manualRatchet', () => {
  it('keeps the transactions of the app: committed together, or not at all', async () => {
    const app = await boot();
    const tester = RatchetTester.of(app);
    const scheduler = app.get(JobScheduler);
    const dataSource = app.get(DataSource);
    const lost = dataSource.transaction(async (transaction) => {
      await scheduler.enqueue(Greet, { name: 'lost' }, { transaction });
      throw new Error('rolled back');
    });
    await expect(lost).rejects.toThrow('rolled back');
    expect(await tester.enqueued()).toEqual([]);
    await dataSource.transaction(async (transaction) => {
      await scheduler.enqueue(Greet, { name: 'kept' }, { transaction });
      expect(await tester.drain()).toEqual([]);
    });
    expect((await tester.enqueued(Greet)).map(({ payload }) => payload.name)).toEqual(['kept']);
    expect(await tester.drain()).toMatchObject([{ outcome: 'succeeded', payload: { name: 'kept' } }]);
  });

  it('starts nothing by itself and leaves nothing behind', async () => {
    const app = await boot();
    const rows = (): Promise<unknown[]> =>
      database.query('select id::text from ratchet.node union all select id::text from ratchet.bucket');
    await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' });
    expect(await rows()).toEqual([]);
    await RatchetTester.of(app).runNext();
    expect((await rows()).length).toBeGreaterThan(0);
    await app.close();
    expect(await rows()).toEqual([]);
    expect(app.get(RatchetRuntime).state).toBe('closed');
    const [open] = await database.query<{ count: number }>(
      `select count(*)::int from pg_stat_activity where datname = $1 and application_name like 'ratchet%'
          and application_name <> 'ratchet-test'`,
      [database.name],
    );
    expect(open?.count).toBe(0);
  });

  it('takes back what an earlier start of its node id left, and charges the crash', async () => {
    const killed = await boot({ nodeId: 'pod-1' });
    const { id } = await killed.get(JobScheduler).enqueue(Slow);
    void RatchetTester.of(killed).runNext();
    await RatchetTester.of(killed).advance(0);

    const app = await boot({ nodeId: 'pod-1' });
    const tester = RatchetTester.of(app);
    const run = tester.runNext();
    await tester.advance('2m');
    expect(await run).toMatchObject({ id, execution: 2, outcome: 'retried' });
    expect(await app.get(JobScheduler).executions(id)).toMatchObject([
      { outcome: 'crashed', number: 1 },
      { outcome: 'retried', number: 2 },
    ]);
    expect(await app.get(JobScheduler).get(id)).toMatchObject({ crashes: 1, failures: 1 });
  });

  it('tells a worker that has lost its job', async () => {
    const app = await boot();
    const tester = RatchetTester.of(app);
    const { id } = await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' });
    app.get(Script).act = () => database.query('delete from ratchet.job where id = $1', [id]);
    expect(await tester.runNext()).toMatchObject({ outcome: 'lost', result: undefined });
  });

  it('has records for as far as the clock goes', async () => {
    const app = await boot();
    const tester = RatchetTester.of(app);
    await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' }, { delay: '200d' });
    expect(await tester.drain({ within: '300d' })).toMatchObject([{ outcome: 'succeeded' }]);
  });

  it('works with an HTTP application too', async () => {
    const ratchet = RatchetModule.forRoot({ connection: database.url, worker: false });
    const module = await manualRatchet(
      Test.createTestingModule({ imports: [ratchet], providers: [Jobs, Script] }),
    ).compile();
    const app = await module.createNestApplication().init();
    try {
      await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' });
      expect((await RatchetTester.of(app).runNext(Greet)).result?.text).toBe('hello Ana');
    } finally {
      await app.close();
    }
  });
});
