import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger, Module } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import { ClusterCoordinator, Job, JobScheduler, NoCoordinator, RatchetModule } from 'nestjs-ratchet';
import { Apps } from '../../module/app.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { MemoryCoordinator, MemoryHub } from './memory-coordinator.js';
import { LISTENERS } from './postgres-fixture.js';
import { pollOption } from '../../support/poll.js';

const hub = new MemoryHub();

@Module({ providers: [{ provide: MemoryHub, useValue: hub }], exports: [MemoryHub] })
class HubModule {}

@Injectable()
class MailJobs {
  onMail: () => void = () => {};

  @Job('mail.send')
  send(): void {
    this.onMail();
  }
}

const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  Logger.overrideLogger(false);
  database = await createTestDatabase();
});
afterEach(() => apps.closeAll());
afterAll(() => database.drop());

/** Nothing is found by polling while a test runs. */
const settings = (rest: object) => ({ connection: database.url, poll: pollOption('1h'), ...rest });

/** Two processes with that coordinator: what one enqueues, the other runs at once; both close what was made for them. */
async function tells(
  boot: (rest: object, providers: (typeof MailJobs)[]) => Promise<TestingModule>,
): Promise<void> {
  const runner = await boot({}, [MailJobs]);
  const enqueuer = await boot({ worker: false }, []);
  const started = new Promise<void>((resolve) => {
    runner.get(MailJobs).onMail = resolve;
  });
  await enqueuer.get(JobScheduler).enqueueNamed('mail.send');
  await started;
  expect(await database.query(LISTENERS)).toEqual([]);
  const coordinators = [runner, enqueuer].map((app) => app.get<MemoryCoordinator>(ClusterCoordinator));
  await apps.closeAll();
  expect(coordinators.map(({ closed }) => closed)).toEqual([1, 1]);
  expect(hub.receivers.size).toBe(0);
}

describe('a coordinator of the app’s own', () => {
  it.each([
    ['a class', { coordinator: MemoryCoordinator, imports: [HubModule] }],
    ['useClass', { coordinator: { useClass: MemoryCoordinator }, imports: [HubModule] }],
    [
      'a factory that injects from imports',
      {
        coordinator: {
          useFactory: (shared: MemoryHub) => new MemoryCoordinator(shared),
          inject: [MemoryHub],
        },
        imports: [HubModule],
      },
    ],
    ['a factory that injects nothing', { coordinator: { useFactory: () => new MemoryCoordinator(hub) } }],
  ])('is given by %s', async (_how, extras) => {
    await tells((rest, providers) =>
      apps.boot({ imports: [RatchetModule.forRoot(settings({ ...extras, ...rest }))], providers }),
    );
  });

  it('is given beside a factory of options', async () => {
    await tells((rest, providers) => {
      const ratchet = RatchetModule.forRootAsync({
        useFactory: () => settings(rest),
        coordinator: MemoryCoordinator,
        imports: [HubModule],
      });
      return apps.boot({ imports: [ratchet], providers });
    });
  });

  it('is given by overrideProvider in a test', async () => {
    await tells((rest, providers) =>
      apps.boot({ imports: [RatchetModule.forRoot(settings(rest))], providers }, (builder) =>
        builder
          .overrideProvider(ClusterCoordinator)
          .useFactory({ factory: () => new MemoryCoordinator(hub) }),
      ),
    );
  });
});

describe('no coordinator', () => {
  it.each([
    ['the class', NoCoordinator],
    ['useClass', { useClass: NoCoordinator }],
  ])('is chosen by %s: nothing listens, and the boot line says so', async (_how, coordinator) => {
    const lines: string[] = [];
    const collector = {
      log: (line: unknown) => void lines.push(String(line)),
      warn: () => {},
      error: () => {},
    };
    const app = await apps.boot(
      { imports: [RatchetModule.forRoot(settings({ coordinator }))], providers: [MailJobs] },
      (builder) => builder.setLogger(collector),
    );
    expect(app.get(ClusterCoordinator).health()).toEqual({ state: 'none' });
    expect(await database.query(LISTENERS)).toEqual([]);
    expect(lines.join('\n')).toMatch(/schema ratchet, NoCoordinator, \d+ connections of its own/);
  });
});
