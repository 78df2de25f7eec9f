import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RatchetModule, StartupCoordinator } from 'nestjs-ratchet';
import { RatchetTestingModule } from 'nestjs-ratchet/testing';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps } from '../module/app.js';

@Injectable()
class Warmer implements OnModuleInit, OnApplicationBootstrap {
  warmed: boolean[] = [];

  constructor(private readonly startup: StartupCoordinator) {}

  async onModuleInit(): Promise<void> {
    this.warmed.push(await this.startup.tryAcquire('warm', '10m'));
  }

  async onApplicationBootstrap(): Promise<void> {
    this.warmed.push(await this.startup.tryAcquire('warm', 600_000));
  }
}

describe('StartupCoordinator', () => {
  const apps = new Apps();
  let database: TestDatabase;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await apps.closeAll();
    await database.query('truncate ratchet.lease');
  });
  afterAll(() => database.drop());

  /** The same node id everywhere: it is the process that counts. */
  const replica = async (
    options: object = {},
  ): Promise<{ startup: StartupCoordinator; warmed: boolean[] }> => {
    const ratchet = RatchetModule.forRoot({ connection: database.url, nodeId: 'pod-0', ...options });
    const app = await apps.boot({ imports: [ratchet], providers: [Warmer] });
    return { startup: app.get(StartupCoordinator), warmed: app.get(Warmer).warmed };
  };

  it.each([{ worker: true }, { worker: false }])(
    'lets one of several replicas act, from any hook, also again: %j',
    async (options) => {
      const replicas = await Promise.all([replica(options), replica(options), replica(options)]);
      const warmed = replicas.map((one) => one.warmed.join());
      expect(warmed.sort()).toEqual(['false,false', 'false,false', 'true,true']);
    },
  );

  it('serves workers and others together; a release lets the next one act, once it is the holder’s', async () => {
    const one = await replica({ worker: false });
    const other = await replica();
    expect([one.warmed, other.warmed]).toEqual([
      [true, true],
      [false, false],
    ]);
    await other.startup.release('warm');
    expect(await other.startup.tryAcquire('warm', '1m')).toBe(false);
    await one.startup.release('warm');
    expect(await other.startup.tryAcquire('warm', '1m')).toBe(true);
    expect(await one.startup.tryAcquire('warm', '1m')).toBe(false);
    expect(await one.startup.tryAcquire('another', '1m')).toBe(true);
  });

  it('lets the next one act when the time is over', async () => {
    const one = await replica();
    await database.query("update ratchet.lease set expires_at = now() where name = 'startup:warm'");
    const other = await replica();
    expect(other.warmed).toEqual([true, true]);
    expect(await one.startup.tryAcquire('warm', '1m')).toBe(false);
  });

  it('can be asked in a factory of the app, before any hook', async () => {
    const ratchet = RatchetModule.forRoot({ connection: database.url });
    const app = await apps.boot({
      imports: [ratchet],
      providers: [
        {
          provide: 'MAY_SEED',
          inject: [StartupCoordinator],
          useFactory: (startup: StartupCoordinator) => startup.tryAcquire('seed', '1m'),
        },
      ],
    });
    expect(app.get<boolean>('MAY_SEED')).toBe(true);
  });

  it('names what is wrong with an action or a time', async () => {
    const { startup } = await replica();
    const code = 'INVALID_STARTUP_ACTION';
    for (const action of ['', 'x'.repeat(201), 'a\0b', null, 5] as string[]) {
      await expect(startup.tryAcquire(action, '1m')).rejects.toMatchObject({ code, argument: 'action' });
      await expect(startup.release(action)).rejects.toMatchObject({ code, argument: 'action' });
    }
    for (const ttl of [0, -1, Number.NaN, '1 minute', undefined, null] as never[]) {
      await expect(startup.tryAcquire('x', ttl)).rejects.toMatchObject({ code, argument: 'ttl' });
    }
  });

  it('is replaced by the option, and by overrideProvider', async () => {
    class Never extends StartupCoordinator {
      override tryAcquire(): Promise<boolean> {
        return Promise.resolve(false);
      }
      override release(): Promise<void> {
        return Promise.resolve();
      }
    }
    expect((await replica({ startupCoordinator: Never })).warmed).toEqual([false, false]);
    const ratchet = RatchetModule.forRoot({ connection: database.url });
    const app = await Test.createTestingModule({ imports: [ratchet], providers: [Warmer] })
      .overrideProvider(StartupCoordinator)
      .useClass(Never)
      .compile();
    try {
      await app.init();
      expect(app.get(Warmer).warmed).toEqual([false, false]);
    } finally {
      await app.close();
    }
  });

  it('always says yes in tests without a database', async () => {
    const app = await Test.createTestingModule({
      imports: [RatchetTestingModule.forRoot()],
      providers: [Warmer],
    }).compile();
    await app.init();
    expect(app.get(Warmer).warmed).toEqual([true, true]);
    await app.close();
  });
});
