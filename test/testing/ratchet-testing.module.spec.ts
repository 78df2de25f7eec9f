import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  defineJob,
  Job,
  type JobContext,
  JobScheduler,
  JobStore,
  LockStore,
  type PayloadOf,
  RatchetBuckets,
  RatchetModule,
  RatchetRuntime,
  RetryPolicy,
} from 'nestjs-ratchet';
import { RatchetTester, RatchetTestingModule, type RatchetTestingOptions } from 'nestjs-ratchet/testing';
import { Greet, Jobs, Script, Slow } from './jobs.js';

const apps: TestingModule[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** Stops at compile(), as unit tests do. */
async function compile(
  options: RatchetTestingOptions = {},
  metadata: ModuleMetadata = {},
): Promise<TestingModule> {
  const app = await Test.createTestingModule({
    imports: [RatchetTestingModule.forRoot(options), ...(metadata.imports ?? [])],
    providers: [Jobs, Script, ...(metadata.providers ?? [])],
  }).compile();
  apps.push(app);
  return app;
}

describe('RatchetTestingModule', () => {
  it('needs neither init() nor real time', async () => {
    const app = await compile({ startAt: new Date('2026-03-29T00:30:00Z') });
    const tester = app.get(RatchetTester);
    expect(RatchetTester.of(app)).toBe(tester);
    await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' }, { delay: '1d' });
    await tester.travelTo(new Date('2026-03-30T00:30:00Z'));
    expect((await tester.runNext()).outcome).toBe('succeeded');
    expect(await tester.now()).toEqual(new Date('2026-03-30T00:30:00Z'));
  });

  it('works under fake timers, and has none of its own', async () => {
    jest.useFakeTimers();
    try {
      const app = await compile();
      const tester = RatchetTester.of(app);
      await app.get(JobScheduler).enqueue(Slow);
      const run = tester.runNext();
      await tester.advance('2m');
      expect((await run).outcome).toBe('retried');
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('leaves nothing open', async () => {
    const app = await compile();
    const before = process.getActiveResourcesInfo().sort();
    await app.init();
    await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' });
    await RatchetTester.of(app).drain();
    expect(process.getActiveResourcesInfo().sort()).toEqual(before);
    expect(app.get(RatchetRuntime).state).toBe('running');
    await app.close();
    expect(app.get(RatchetRuntime).state).toBe('closed');
  });

  it.each([
    ['a transaction', (app: TestingModule) => enqueueIn(app, { isTransactionActive: true })],
    ['the store', (app: TestingModule) => app.get(JobStore).get('x')],
    ['the list of buckets', (app: TestingModule) => app.get(RatchetBuckets).list()],
    ['leases', (app: TestingModule) => app.get(LockStore).tryLock('x', 1, { id: 'a', epoch: '1' })],
  ])('says that %s needs a database, and how to get one', async (_what, use) => {
    const app = await compile();
    const used = async (): Promise<unknown> => await use(app);
    await expect(used()).rejects.toMatchObject({
      code: 'TESTING_NEEDS_DATABASE',
      message: expect.stringContaining('manualRatchet('),
    });
  });

  it.each(['dataSource', 'connection', 'transaction', 'jobStore', 'bucketStore', 'clock'])(
    'refuses the option %s',
    async (key) => {
      await expect(compile({ [key]: () => undefined })).rejects.toMatchObject({
        code: 'TESTING_NEEDS_DATABASE',
        what: `RatchetTestingModule.forRoot: ${key}`,
      });
    },
  );

  it('checks options as RatchetModule does', async () => {
    await expect(compile({ maxRetries: -1, concurency: 3 } as never)).rejects.toThrow(
      /INVALID_OPTION[^]*maxRetries[^]*concurency/,
    );
  });

  it('cannot stand beside RatchetModule, nor beside another of its kind', async () => {
    const real = RatchetModule.forRoot({ connection: 'postgres://localhost/none' });
    await expect(compile({}, { imports: [real] })).rejects.toMatchObject({ code: 'PORT_OUTSIDE_MODULE' });
    await expect(
      compile({}, { imports: [RatchetTestingModule.forRoot({ maxRetries: 1 })] }),
    ).rejects.toMatchObject({
      code: 'MODULE_IMPORTED_TWICE',
    });
  });

  it("asks the app's own retry policy", async () => {
    class Never extends RetryPolicy {
      override nextDelayMs(): number | undefined {
        return undefined;
      }
    }
    const app = await compile({ retryPolicy: Never });
    app.get(Script).act = () => {
      throw new Error('no');
    };
    await app.get(JobScheduler).enqueue(Greet, { name: 'Ana' });
    expect((await RatchetTester.of(app).runNext()).outcome).toBe('failed');
  });

  it('fails at boot as the engine does', async () => {
    @Injectable()
    class Double {
      @Job(Greet)
      run(): { text: string } {
        return { text: '' };
      }
    }
    const app = await compile({}, { providers: [Double] });
    await expect(app.init()).rejects.toMatchObject({ code: 'DUPLICATE_HANDLER' });
  });

  it('gives back what runs when the app is closed', async () => {
    const app = await compile();
    const tester = RatchetTester.of(app);
    const scheduler = app.get(JobScheduler);
    const { id } = await scheduler.enqueue(Slow);
    const run = tester.runNext();
    await tester.advance(0);
    expect(app.get(RatchetRuntime).running).toBe(1);
    await app.close();
    expect((await run).outcome).toBe('released');
    expect(await scheduler.get(id)).toMatchObject({ status: 'pending', failures: 0 });
    expect(await scheduler.executions(id)).toMatchObject([{ outcome: 'released', lateAt: expect.any(Date) }]);
  });

  it('reports a handler that ignores its timeout without waiting for it', async () => {
    const Deaf = defineJob('deaf', { timeout: '1m' });
    let finish = (): void => undefined;
    @Injectable()
    class DeafJobs {
      @Job(Deaf)
      async run(_: PayloadOf<typeof Deaf>, ctx: JobContext): Promise<void> {
        await new Promise<void>((resolve) => (finish = resolve));
        expect(ctx.signal.aborted).toBe(true);
      }
    }
    const app = await compile({}, { providers: [DeafJobs] });
    const tester = RatchetTester.of(app);
    await app.get(JobScheduler).enqueue(Deaf);
    const run = tester.runNext();
    await tester.advance('1m');
    expect((await run).outcome).toBe('retried');
    expect(tester.running).toBe(1);
    finish();
    await tester.advance(0);
    expect(tester.running).toBe(0);
  });

  it('runs a thousand jobs in one drain', async () => {
    const app = await compile();
    const payload = { name: 'Ana' };
    await app.get(JobScheduler).enqueueMany(
      Greet,
      Array.from({ length: 1_000 }, () => ({ payload })),
    );
    expect(await RatchetTester.of(app).drain()).toHaveLength(1_000);
  });
});

describe('RatchetTester.of', () => {
  it('says that an app runs by itself', async () => {
    const app = await Test.createTestingModule({}).compile();
    expect(() => RatchetTester.of(app)).toThrow(/TESTING_NO_TESTER.*manualRatchet/);
  });
});

describe('the main entry', () => {
  it('imports nothing of the test kit', () => {
    const lib = join(import.meta.dirname, '../../lib');
    const files = readdirSync(lib, { recursive: true, encoding: 'utf8' });
    const others = files.filter((file) => file.endsWith('.ts') && !file.startsWith('testing'));
    expect(others.length).toBeGreaterThan(100);
    const guilty = others.filter((file) =>
      /from '[^']*\/testing\//.test(readFileSync(join(lib, file), 'utf8')),
    );
    expect(guilty).toEqual([]);
  });
});

async function enqueueIn(app: TestingModule, transaction: unknown): Promise<unknown> {
  return app.get(JobScheduler).enqueue(Greet, { name: 'Ana' }, { transaction } as never);
}
