import { Injectable, Logger, Module, type OnModuleInit } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  defineJob,
  Job,
  type JobContext,
  JobScheduler,
  RatchetEvents,
  type RatchetEventMap,
  RatchetModule,
  UnrecoverableError,
} from 'nestjs-ratchet';
import { Apps, ended, typeOrm } from '../module/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { captureLogs } from '../support/engine-node.js';
import { ListKit, DatabaseKit } from '../testing/app.js';

const Greet = defineJob<{ name: string }>('greet', {
  maxRetries: 1,
  backoff: { type: 'fixed', delay: '1ms' },
});

@Injectable()
class GreetJobs {
  @Job(Greet)
  greet({ name }: { name: string }, { failures }: JobContext): string {
    if (name === 'nobody') throw new UnrecoverableError('there is nobody');
    if (name === 'deaf' && failures === 0) throw new Error('louder');
    return `hello ${name}`;
  }
}

/** Registers before anything has started, as an app does. */
@Injectable()
class Diary implements OnModuleInit {
  readonly lines: string[] = [];
  readonly durations: number[] = [];

  constructor(private readonly events: RatchetEvents) {}

  onModuleInit(): void {
    const write = (name: Extract<keyof RatchetEventMap, `job.${string}`>): void =>
      void this.events.on(name, ({ jobId }) => this.lines.push(`${name} ${jobId}`));
    write('job.enqueued');
    write('job.started');
    write('job.succeeded');
    write('job.retrying');
    write('job.failed');
    write('job.canceled');
    this.events.on('job.succeeded', ({ durationMs }) => this.durations.push(durationMs));
  }
}

const life = (id: string, ...names: string[]): string[] => names.map((name) => `job.${name} ${id}`);

describe('RatchetEvents in an app', () => {
  const apps = new Apps();
  let database: TestDatabase;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    database = await createTestDatabase();
  });
  afterEach(() => apps.closeAll());
  afterAll(() => database.drop());

  it('is injected, registers before the start, and is quiet after the end', async () => {
    const app = await apps.boot({
      imports: [typeOrm(database), RatchetModule.forRoot({ dataSource: 'default' })],
      providers: [GreetJobs, Diary],
    });
    const scheduler = app.get(JobScheduler);
    const { id } = await scheduler.enqueue(Greet, { name: 'Ada' });
    await ended(app, id);
    const diary = app.get(Diary);
    // The claim may be answered before the insert is.
    expect(diary.lines.sort()).toEqual(life(id, 'enqueued', 'started', 'succeeded'));
    expect(diary.durations).toEqual([expect.any(Number)]);
    const events = app.get(RatchetEvents);
    await apps.closeAll();
    const off = events.on('job.failed', () => undefined);
    off();
    off();
  });

  it('tells enqueues and cancels of a process that only enqueues', async () => {
    const app = await apps.boot({
      imports: [typeOrm(database), RatchetModule.forRoot({ dataSource: 'default', worker: false })],
      providers: [Diary],
    });
    const scheduler = app.get(JobScheduler);
    const { id } = await scheduler.enqueue(Greet, { name: 'Ada' }, { delay: '1h' });
    await scheduler.cancel(id);
    expect(app.get(Diary).lines).toEqual(life(id, 'enqueued', 'canceled'));
  });

  it('logs the error of a listener under the name of the event', async () => {
    const app = await apps.boot({
      imports: [typeOrm(database), RatchetModule.forRoot({ dataSource: 'default', worker: false })],
    });
    // Nest's testing module has set its own.
    const logs = captureLogs();
    app.get(RatchetEvents).on('job.enqueued', async () => {
      throw new Error('the metrics server is gone');
    });
    await app.get(JobScheduler).enqueue(Greet, { name: 'Ada' }, { delay: '1h' });
    await new Promise(setImmediate);
    Logger.overrideLogger(false);
    expect(logs.filter(({ level }) => level === 'error')).toEqual([
      {
        level: 'error',
        line: "a listener of 'job.enqueued' failed, which changes nothing else: the metrics server is gone",
      },
    ]);
  });

  it('is refused as a provider of a module of the app', async () => {
    @Module({ providers: [{ provide: RatchetEvents, useValue: {} }] })
    class Mine {}
    await expect(
      apps.boot({ imports: [typeOrm(database), RatchetModule.forRoot({ dataSource: 'default' }), Mine] }),
    ).rejects.toMatchObject({ code: 'PORT_OUTSIDE_MODULE' });
  });
});

describe.each([new ListKit(), new DatabaseKit()])('RatchetEvents under $name', (kit) => {
  beforeAll(() => kit.open());
  afterEach(() => kit.clear());
  afterAll(() => kit.close());

  it('tells what the tester runs', async () => {
    const { app, tester, scheduler } = await kit.boot([GreetJobs, Diary]);
    const diary = app.get(Diary);
    const told = async (name: string): Promise<string[]> => {
      diary.lines.length = 0;
      const { id } = await scheduler.enqueue(Greet, { name });
      await tester.drain({ within: '1m' });
      return diary.lines.map((line) => line.replace(` ${id}`, ''));
    };
    expect(await told('Ada')).toEqual(['job.enqueued', 'job.started', 'job.succeeded']);
    expect(await told('nobody')).toEqual(['job.enqueued', 'job.started', 'job.failed']);
    expect(await told('deaf')).toEqual([
      'job.enqueued',
      'job.started',
      'job.retrying',
      'job.started',
      'job.succeeded',
    ]);
    const { id } = await scheduler.enqueue(Greet, { name: 'Ada' });
    diary.lines.length = 0;
    await scheduler.cancel(id);
    expect(diary.lines).toEqual(life(id, 'canceled'));
  });
});
