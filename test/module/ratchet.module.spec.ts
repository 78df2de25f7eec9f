import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Logger, Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import {
  defineJob,
  Job,
  JobContext,
  JobScheduler,
  NodeIdentityProvider,
  RatchetModule,
  type RatchetOptions,
  type RatchetOptionsFactory,
  RatchetRuntime,
} from 'nestjs-ratchet';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps, ended, typeOrm } from './app.js';

const Greet = defineJob<{ name: string }, string>('greet');

@Injectable()
class GreetJobs {
  @Job(Greet)
  greet({ name }: { name: string }, context: JobContext): string {
    return `hello ${name}, execution ${context.execution}`;
  }
}

const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  Logger.overrideLogger(['error', 'warn']);
  database = await createTestDatabase();
});
afterEach(() => apps.closeAll());
afterAll(() => database.drop());

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

describe('RatchetModule', () => {
  const ratchet = () => RatchetModule.forRoot({ dataSource: 'default' });
  const orders = {
    'after TypeOrmModule': () => [typeOrm(database), ratchet()],
    'before TypeOrmModule': () => [ratchet(), typeOrm(database)],
  };

  describe.each(Object.entries(orders))('imported %s', (_order, imports) => {
    it('runs a job of a decorated method', async () => {
      const app = await apps.boot({ imports: imports(), providers: [GreetJobs] });
      const { id, created } = await app.get(JobScheduler).enqueue(Greet, { name: 'Ada' });
      expect(created).toBe(true);
      expect(await ended(app, id)).toMatchObject({ status: 'succeeded', result: 'hello Ada, execution 1' });
    });

    it('has the database alive while it drains', async () => {
      const Slow = defineJob('slow');
      const order: string[] = [];
      let begun: () => void = () => {};
      const running = new Promise<void>((resolve) => (begun = resolve));
      let finish: () => void = () => {};
      const gate = new Promise<void>((resolve) => (finish = resolve));
      @Injectable()
      class SlowJobs {
        constructor(private readonly dataSource: DataSource) {}
        @Job(Slow)
        async run(): Promise<unknown> {
          begun();
          await gate;
          const rows: unknown = await this.dataSource.query('select 7 as seven');
          order.push('queried');
          return rows;
        }
      }
      const app = await apps.boot({ imports: imports(), providers: [SlowJobs] });
      const { id } = await app.get(JobScheduler).enqueue(Slow);
      await running;
      const closed = app.close().then(() => order.push('closed'));
      expect(app.get(RatchetRuntime).state).toBe('running');
      finish();
      await closed;
      expect(order).toEqual(['queried', 'closed']);
      const [job] = await database.query(`select status, result from ratchet.jobs where id = $1`, [id]);
      expect(job).toMatchObject({ result: [{ seven: 7 }] });
    });

    it('lets every onModuleInit enqueue', async () => {
      @Injectable()
      class Eager implements OnModuleInit {
        id = '';
        constructor(private readonly scheduler: JobScheduler) {}
        async onModuleInit(): Promise<void> {
          this.id = (await this.scheduler.enqueue(Greet, { name: 'early' })).id;
        }
      }
      @Module({ providers: [Eager] })
      class EagerModule {}
      const app = await apps.boot({ imports: [EagerModule, ...imports()], providers: [GreetJobs] });
      expect(await ended(app, app.get(Eager).id)).toMatchObject({ status: 'succeeded' });
    });
  });

  it('starts nothing before bootstrap', async () => {
    const app = await apps.boot(
      { imports: orders['after TypeOrmModule'](), providers: [GreetJobs] },
      (builder) => builder,
    );
    expect(app.get(RatchetRuntime).state).toBe('running');
    await apps.closeAll();
    const { Test } = await import('@nestjs/testing');
    const cold = await Test.createTestingModule({
      imports: orders['after TypeOrmModule'](),
      providers: [GreetJobs],
    }).compile();
    expect(cold.get(RatchetRuntime).state).toBe('idle');
    await cold.close();
  });

  it('takes its options from a factory, and the DataSource of a name whose module comes later', async () => {
    @Module({
      providers: [{ provide: 'CONFIG', useValue: { dataSource: 'jobs', nodeId: 'from-config' } }],
      exports: ['CONFIG'],
    })
    class ConfigModule {}
    const app = await apps.boot({
      imports: [
        RatchetModule.forRootAsync({
          imports: [ConfigModule],
          inject: ['CONFIG'],
          useFactory: async (config: { dataSource: string; nodeId: string }) => config,
        }),
        TypeOrmModule.forRootAsync({
          name: 'jobs',
          useFactory: async () => {
            await new Promise(setImmediate);
            return { type: 'postgres' as const, url: database.url, retryAttempts: 0 };
          },
        }),
      ],
      providers: [GreetJobs],
    });
    expect(app.get(NodeIdentityProvider).nodeId()).toBe('from-config');
    const { id } = await app.get(JobScheduler).enqueue(Greet, { name: 'async' });
    expect(await ended(app, id)).toMatchObject({ status: 'succeeded' });
  });

  it('takes its options from a class', async () => {
    @Injectable()
    class Config implements RatchetOptionsFactory {
      createRatchetOptions(): RatchetOptions {
        return { connection: database.url, nodeId: 'from-a-class' };
      }
    }
    const app = await apps.boot({ imports: [RatchetModule.forRootAsync({ useClass: Config })] });
    expect(app.get(NodeIdentityProvider).nodeId()).toBe('from-a-class');
  });

  it.each([
    ['a token of a module that exports nothing', () => ({ dataSource: 'SHOP' })],
    ['a class', () => ({ dataSource: ShopDataSource })],
  ])('finds the DataSource by %s', async (_how, options) => {
    @Module({
      providers: [
        {
          provide: 'SHOP',
          useFactory: () => new DataSource({ type: 'postgres', url: database.url }).initialize(),
        },
        {
          provide: ShopDataSource,
          useFactory: () => new DataSource({ type: 'postgres', url: database.url }).initialize(),
        },
      ],
    })
    class ShopModule {
      constructor(
        @Inject('SHOP') readonly shop: DataSource,
        readonly other: ShopDataSource,
      ) {}
      async onApplicationShutdown(): Promise<void> {
        await this.shop.destroy();
        await (this.other as unknown as DataSource).destroy();
      }
    }
    const app = await apps.boot({
      imports: [RatchetModule.forRoot(options()), ShopModule],
      providers: [GreetJobs],
    });
    const { id } = await app.get(JobScheduler).enqueue(Greet, { name: 'token' });
    expect(await ended(app, id)).toMatchObject({ status: 'succeeded' });
  });

  it('takes a DataSource as it is, and never closes it', async () => {
    const dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
    const app = await apps.boot({ imports: [RatchetModule.forRoot({ dataSource })], providers: [GreetJobs] });
    const { id } = await app.get(JobScheduler).enqueue(Greet, { name: 'instance' });
    expect(await ended(app, id)).toMatchObject({ status: 'succeeded' });
    await apps.closeAll();
    expect(dataSource.isInitialized).toBe(true);
    await dataSource.destroy();
  });

  it.each([
    ['a URL', () => database.url],
    ['settings', () => ({ url: database.url, ssl: false })],
  ])('takes a connection of its own as %s', async (_how, connection) => {
    const app = await apps.boot({
      imports: [RatchetModule.forRoot({ connection: connection() })],
      providers: [GreetJobs],
    });
    const { id } = await app.get(JobScheduler).enqueue(Greet, { name: 'pool' });
    expect(await ended(app, id)).toMatchObject({ status: 'succeeded' });
  });

  it('with worker: false enqueues and runs nothing', async () => {
    const web = await apps.boot({
      imports: [RatchetModule.forRoot({ connection: database.url, worker: false, nodeId: 'web-only' })],
      providers: [GreetJobs],
    });
    const { id } = await web.get(JobScheduler).enqueue(Greet, { name: 'later' });
    expect(await database.query(`select 1 from ratchet.node where id = 'web-only'`)).toEqual([]);
    expect(
      await database.query(
        `select 1 from pg_stat_activity where datname = $1 and application_name = 'ratchet/web-only'`,
        [database.name],
      ),
    ).toEqual([]);
    expect(await web.get(JobScheduler).get(id)).toMatchObject({ status: 'pending' });
    const worker = await apps.boot({
      imports: [RatchetModule.forRoot({ connection: database.url })],
      providers: [GreetJobs],
    });
    expect(await ended(worker, id)).toMatchObject({ status: 'succeeded' });
  });

  it('leaves no connection behind', async () => {
    await apps.boot({ imports: orders['before TypeOrmModule'](), providers: [GreetJobs] });
    await apps.closeAll();
    // A backend is gone a moment after its client is: what was left open would stay, and the test time out.
    const open = () =>
      database.query(
        `select 1 from pg_stat_activity
          where datname = $1 and backend_type = 'client backend' and application_name <> 'ratchet-test'`,
        [database.name],
      );
    while ((await open()).length > 0);
  });

  it('is one engine when one module object is imported twice', async () => {
    const shared = RatchetModule.forRoot({ connection: database.url });
    @Module({ imports: [shared] })
    class Feature {}
    const app = await apps.boot({ imports: [shared, Feature], providers: [GreetJobs] });
    expect(app.get(RatchetRuntime).state).toBe('running');
  });

  describe('refuses to boot', () => {
    const boot = (metadata: Parameters<Apps['boot']>[0]): Promise<unknown> => apps.boot(metadata);

    it('two engines', async () => {
      @Module({ imports: [RatchetModule.forRoot({ connection: database.url })] })
      class Feature {}
      await expect(
        boot({ imports: [RatchetModule.forRoot({ connection: database.url }), Feature] }),
      ).rejects.toEqual(refusal('MODULE_IMPORTED_TWICE', /called 2 times/));
    });

    it('options that are wrong, of forRoot and of a factory', async () => {
      const wrong = { connection: database.url, concurrency: -5 };
      await expect(boot({ imports: [RatchetModule.forRoot(wrong)] })).rejects.toEqual(
        refusal('INVALID_OPTION', /concurrency: -5 is wrong/),
      );
      await expect(
        boot({ imports: [RatchetModule.forRootAsync({ useFactory: () => wrong })] }),
      ).rejects.toEqual(refusal('INVALID_OPTION', /concurrency: -5 is wrong/));
    });

    it('a port that a factory of options returns', async () => {
      const late = { connection: database.url, clock: class {} };
      await expect(
        boot({ imports: [RatchetModule.forRootAsync({ useFactory: () => late })] }),
      ).rejects.toEqual(refusal('INVALID_OPTION', /clock: .*beside useFactory/));
    });

    it('a DataSource that nobody provides, and names those that are there', async () => {
      const others = [
        { provide: DataSource, useValue: {} },
        { provide: 'billingDataSource', useValue: {} },
      ];
      const named = { imports: [RatchetModule.forRoot({ dataSource: 'orders' })], providers: others };
      await expect(boot(named)).rejects.toEqual(
        refusal(
          'DATA_SOURCE_NOT_FOUND',
          /"orders" .*ordersDataSource.*the app provides DataSource, billingDataSource/,
        ),
      );
      await expect(boot({ imports: [RatchetModule.forRoot({ dataSource: 'default' })] })).rejects.toEqual(
        refusal('DATA_SOURCE_NOT_FOUND', /the app provides none.*TypeOrmModule\.forRoot/),
      );
    });

    it('a DataSource that is none, is not ready, or is no PostgreSQL', async () => {
      const NOT_ONE = { provide: 'NOT_ONE', useValue: {} };
      await expect(
        boot({ imports: [RatchetModule.forRoot({ dataSource: 'NOT_ONE' })], providers: [NOT_ONE] }),
      ).rejects.toEqual(refusal('DATA_SOURCE_UNFIT', /"NOT_ONE" is no TypeORM DataSource/));
      const cold = new DataSource({ type: 'postgres', url: database.url });
      await expect(boot({ imports: [RatchetModule.forRoot({ dataSource: cold })] })).rejects.toEqual(
        refusal('DATA_SOURCE_UNFIT', /not initialized/),
      );
      const sqlite = { options: { type: 'sqlite' }, isInitialized: true, createQueryRunner: () => ({}) };
      await expect(
        boot({ imports: [RatchetModule.forRoot({ dataSource: sqlite as unknown as DataSource })] }),
      ).rejects.toEqual(refusal('DATA_SOURCE_UNSUPPORTED', /sqlite/));
    });

    it('with the error of TypeOrmModule when the database is not there', async () => {
      const away = TypeOrmModule.forRoot({ type: 'postgres', host: '127.0.0.1', port: 1, retryAttempts: 0 });
      await expect(
        boot({ imports: [RatchetModule.forRoot({ dataSource: 'default' }), away] }),
      ).rejects.toMatchObject({
        code: 'ECONNREFUSED',
      });
    });
  });
});

class ShopDataSource {
  readonly isShop = true;
}
