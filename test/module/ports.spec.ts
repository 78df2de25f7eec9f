import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger, Module } from '@nestjs/common';
import {
  BucketStore,
  Clock,
  ClusterCoordinator,
  type FailedExecution,
  Job,
  JobScheduler,
  JobStore,
  LockStore,
  NoCoordinator,
  NodeIdentityProvider,
  RatchetModule,
  RetryPolicy,
  ScheduleStore,
  SystemClock,
} from 'nestjs-ratchet';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps, ended } from './app.js';

const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  Logger.overrideLogger(false);
  database = await createTestDatabase();
});
afterEach(() => apps.closeAll());
afterAll(() => database.drop());

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

class Redis {
  readonly host = 'redis';
}

@Injectable()
class RedisCoordinator extends NoCoordinator {
  closed = 0;
  constructor(readonly redis: Redis) {
    super();
  }
  override close(): Promise<void> {
    this.closed += 1;
    return super.close();
  }
}

@Module({ providers: [Redis], exports: [Redis] })
class RedisModule {}

class NoMercy extends RetryPolicy {
  override nextDelayMs({ name }: FailedExecution): number | undefined {
    return name === 'fails' ? undefined : 0;
  }
}

@Injectable()
class FailingJobs {
  @Job('fails', { maxRetries: 100 })
  run(): never {
    throw new Error('as always');
  }
}

const connection = () => ({ connection: database.url });

describe('ports', () => {
  it.each([
    ['a class', { coordinator: RedisCoordinator }],
    ['useClass', { coordinator: { useClass: RedisCoordinator } }],
    [
      'useFactory',
      { coordinator: { useFactory: (redis: Redis) => new RedisCoordinator(redis), inject: [Redis] } },
    ],
    ['useValue', { coordinator: { useValue: new RedisCoordinator(new Redis()) } }],
    ['useExisting', { coordinator: { useExisting: RedisCoordinator }, extraProviders: [RedisCoordinator] }],
  ])('are replaced by %s, in forRoot and in forRootAsync', async (_how, extras) => {
    for (const ratchet of [
      RatchetModule.forRoot({ ...connection(), ...extras, imports: [RedisModule] }),
      RatchetModule.forRootAsync({ useFactory: connection, ...extras, imports: [RedisModule] }),
    ]) {
      const app = await apps.boot({ imports: [ratchet] });
      expect(app.get(ClusterCoordinator)).toBeInstanceOf(RedisCoordinator);
      expect(app.get<RedisCoordinator>(ClusterCoordinator).redis.host).toBe('redis');
      await apps.closeAll();
    }
  });

  it('inject what extraProviders offer', async () => {
    const ratchet = RatchetModule.forRoot({
      ...connection(),
      coordinator: RedisCoordinator,
      extraProviders: [Redis],
    });
    const app = await apps.boot({ imports: [ratchet] });
    const coordinator = app.get<RedisCoordinator>(ClusterCoordinator);
    await apps.closeAll();
    expect(coordinator.closed).toBe(1);
  });

  it('are not closed when they are the app’s own objects', async () => {
    const coordinator = new RedisCoordinator(new Redis());
    await apps.boot({
      imports: [RatchetModule.forRoot({ ...connection(), coordinator: { useValue: coordinator } })],
    });
    await apps.closeAll();
    expect(coordinator.closed).toBe(0);
  });

  it('decide: a retry policy of the app’s own', async () => {
    const ratchet = RatchetModule.forRoot({ ...connection(), retryPolicy: NoMercy });
    const app = await apps.boot({ imports: [ratchet], providers: [FailingJobs] });
    const { id } = await app.get(JobScheduler).enqueueNamed('fails');
    expect(await ended(app, id)).toMatchObject({ status: 'failed' });
    expect(await app.get(JobScheduler).executions(id)).toHaveLength(1);
  });

  it('are replaced by overrideProvider in tests', async () => {
    class Fixed extends NodeIdentityProvider {
      override nodeId(): string {
        return 'fixed-in-a-test';
      }
    }
    const app = await apps.boot({ imports: [RatchetModule.forRoot(connection())] }, (builder) =>
      builder
        .overrideProvider(RetryPolicy)
        .useClass(NoMercy)
        .overrideProvider(NodeIdentityProvider)
        .useValue(new Fixed())
        .overrideProvider(Clock)
        .useFactory({ factory: () => new SystemClock() }),
    );
    expect(app.get(RetryPolicy)).toBeInstanceOf(NoMercy);
    expect(app.get(NodeIdentityProvider).nodeId()).toBe('fixed-in-a-test');
  });

  it.each([
    ['retryPolicy', {}],
    ['clock', 5],
    ['clock', null],
    ['coordinator', new RedisCoordinator(new Redis())],
    ['jobStore', { useClass: undefined }],
    ['lockStore', { useFactory: 'x' }],
    ['lockStore', { useValue: {}, useClass: Redis }],
  ])('say that %s cannot be %p', (port, value) => {
    const wrong = refusal(
      'INVALID_OPTION',
      new RegExp(`^INVALID_OPTION: RatchetModule: ${port}: .*useFactory`),
    );
    expect(() => RatchetModule.forRoot({ ...connection(), [port]: value })).toThrow(wrong);
    expect(() => RatchetModule.forRootAsync({ useFactory: connection, [port]: value })).toThrow(wrong);
  });

  it('say which id of a node cannot be', async () => {
    const long = { useValue: { nodeId: () => 'x'.repeat(65) } };
    await expect(
      apps.boot({ imports: [RatchetModule.forRoot({ ...connection(), nodeIdentity: long })] }),
    ).rejects.toEqual(refusal('INVALID_OPTION', /nodeIdentity: nodeId\(\) returned "x+.*1 to 64 characters/));
  });

  it('ask for a lockStore beside a jobStore of the app’s own', async () => {
    const jobStore = {
      useValue: { open: async () => undefined, close: async () => undefined } as unknown as JobStore,
    };
    await expect(
      apps.boot({ imports: [RatchetModule.forRoot({ ...connection(), jobStore })] }),
    ).rejects.toEqual(refusal('INVALID_OPTION', /lockStore/));
  });

  it.each([
    [ClusterCoordinator, 'coordinator'],
    [JobStore, 'jobStore'],
    [LockStore, 'lockStore'],
    [ScheduleStore, 'scheduleStore'],
    [BucketStore, 'bucketStore'],
    [NodeIdentityProvider, 'nodeIdentity'],
    [RetryPolicy, 'retryPolicy'],
    [Clock, 'clock'],
  ])('refuse %p in a module of the app, and name the option', async (provide, option) => {
    @Module({ providers: [{ provide, useValue: {} }] })
    class Elsewhere {}
    await expect(apps.boot({ imports: [RatchetModule.forRoot(connection()), Elsewhere] })).rejects.toEqual(
      refusal(
        'PORT_OUTSIDE_MODULE',
        new RegExp(`Elsewhere: provides ${provide.name}.*forRoot\\(\\{ ${option}: `),
      ),
    );
  });

  it('refuse a JobScheduler of the app’s own', async () => {
    await expect(
      apps.boot({
        imports: [RatchetModule.forRoot(connection())],
        providers: [{ provide: JobScheduler, useValue: {} }],
      }),
    ).rejects.toEqual(
      refusal('PORT_OUTSIDE_MODULE', /RootTestModule: provides JobScheduler.*remove it there/),
    );
  });
});
