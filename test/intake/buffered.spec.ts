import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type TestingModule } from '@nestjs/testing';
import { Injectable } from '@nestjs/common';
import {
  defineJob,
  type EnqueueArgs,
  Job,
  JobContext,
  type JobHandle,
  JobScheduler,
  RatchetEvents,
  RatchetModule,
  RatchetRuntime,
  type RatchetSettings,
} from 'nestjs-ratchet';
import { DataSource } from 'typeorm';
import { compileLibrary, WorkerProcess } from '../chaos/worker-process.js';
import { Apps, ended, typeOrm } from '../module/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { captureLogs, deferred } from '../support/engine-node.js';
import { createFlakyNetwork, type FlakyNetwork } from '../support/flaky-network.js';

const Note = defineJob<{ n: number; text?: string }>('note');
const Slow = defineJob('slow');
const buffered = { durability: 'buffered' } as const;

const apps = new Apps();
let database: TestDatabase;
let network: FlakyNetwork;
let lines: ReturnType<typeof captureLogs>;
let unhandled: unknown[];
const hear = (reason: unknown): void => void unhandled.push(reason);

beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(async () => {
  network = await createFlakyNetwork(database.url);
  unhandled = [];
  process.on('unhandledRejection', hear);
});
afterEach(async () => {
  network.restore();
  await apps.closeAll();
  process.off('unhandledRejection', hear);
  expect(unhandled).toEqual([]);
  await network.close();
  await database.query('truncate ratchet.job, ratchet.job_payload, ratchet.idempotency_key');
});
afterAll(() => database.drop());

const boot = async (
  settings: RatchetSettings = {},
  providers: (new () => unknown)[] = [],
): Promise<TestingModule> => {
  const app = await apps.boot({
    imports: [RatchetModule.forRoot({ connection: network.url, worker: false, ...settings })],
    providers,
  });
  lines = captureLogs();
  return app;
};

/** Payload numbers of the live jobs, in claim order. */
const numbers = async (): Promise<number[]> => {
  const rows = await database.query<{ n: number }>(
    "select (payload ->> 'n')::int as n from ratchet.job order by scheduled_at, id",
  );
  return rows.map(({ n }) => n);
};

const notes = (scheduler: JobScheduler, count: number, from = 0): Promise<JobHandle[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => scheduler.enqueue(Note, { n: from + n }, buffered)));

const settled = async (handles: readonly JobHandle[]): Promise<unknown[]> => {
  const results = await Promise.allSettled(handles.map(({ saved }) => saved));
  return results.map((one) => (one.status === 'fulfilled' ? 'saved' : (one.reason as { code: string }).code));
};

describe("durability: 'buffered'", () => {
  it('resolves before the job is there, and saved when it is; the order is that of the calls', async () => {
    const scheduler = (await boot()).get(JobScheduler);
    const lock = await database.connect();
    await lock.query('begin');
    await lock.query('lock table ratchet.job in exclusive mode');
    const handles = await notes(scheduler, 2_500);
    expect(handles.every(({ created }) => created)).toBe(true);
    expect(await numbers()).toEqual([]);
    await lock.query('commit');
    expect(new Set(await settled(handles))).toEqual(new Set(['saved']));
    expect(await numbers()).toEqual(handles.map((_, n) => n));
    expect(handles.map(({ id }) => id)).toEqual(handles.map(({ id }) => id).sort());
  });

  it('is what saved is for: the handle of a plain enqueue has it done', async () => {
    const scheduler = (await boot()).get(JobScheduler);
    const [plain, named] = [
      await scheduler.enqueue(Note, { n: 1 }, { durability: 'saved' }),
      await scheduler.enqueueNamed('note', { n: 2 }, buffered),
    ];
    await plain.saved;
    await named.saved;
    expect(await numbers()).toEqual([1, 2]);
  });

  it('of many saves all or none', async () => {
    const app = await boot();
    const scheduler = app.get(JobScheduler);
    const told: string[] = [];
    app.get(RatchetEvents).on('job.unsaved', ({ jobId }) => told.push(jobId));
    await database.query(
      `alter table ratchet.job add constraint no_thirteen check (payload is null or payload ->> 'n' <> '13')`,
    );
    try {
      const items = (from: number) => [0, 1, 2].map((n) => ({ payload: { n: from + n } }));
      const [good, bad] = [
        await scheduler.enqueueMany(Note, items(1), buffered),
        await scheduler.enqueueMany(Note, items(11), buffered),
      ];
      const [single] = await notes(scheduler, 1, 20);
      expect(await settled([...good, ...bad, single!])).toEqual([
        ...good.map(() => 'saved'),
        ...bad.map(() => 'STORE_FAULT'),
        'saved',
      ]);
      expect(await numbers()).toEqual([1, 2, 3, 20]);
      expect(told).toEqual(bad.map(({ id }) => id));
    } finally {
      await database.query('alter table ratchet.job drop constraint no_thirteen');
    }
    await app.close();
    expect(lines.filter(({ level }) => level === 'error')).toEqual([
      { level: 'error', line: expect.stringMatching(/^3 buffered jobs could not be saved: note \(3\); /) },
    ]);
  });

  it('refuses keys, transactions and other words, before anything is taken', async () => {
    const ambient: { manager: DataSource['manager'] | undefined } = { manager: undefined };
    const app = await apps.boot({
      imports: [
        typeOrm(database),
        RatchetModule.forRoot({ dataSource: 'default', worker: false, transaction: () => ambient.manager }),
      ],
    });
    const scheduler = app.get(JobScheduler);
    const refused = async (...[options]: [unknown]): Promise<string> => {
      const args = [{ n: 1 }, options] as unknown as EnqueueArgs<{ n: number }>;
      const error: unknown = await scheduler.enqueue(Note, ...args).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'INVALID_ENQUEUE_OPTION', option: 'durability' });
      return (error as Error).message;
    };
    expect(await refused({ ...buffered, businessKey: 'k' })).toContain("'saved' with a key (businessKey)");
    expect(await refused({ ...buffered, idempotencyKey: 'k' })).toContain('(idempotencyKey)');
    expect(await refused({ durability: 'none' })).toContain("allowed: 'saved', 'buffered'");
    await app.get(DataSource).transaction(async (transaction) => {
      expect(await refused({ ...buffered, transaction })).toContain("'saved' in a transaction");
      ambient.manager = transaction;
      expect(await refused(buffered)).toContain("'saved' in a transaction");
      ambient.manager = undefined;
    });
    const items = [{ payload: { n: 1 } }, { payload: { n: 2 }, options: { businessKey: 'k' } }];
    await expect(scheduler.enqueueMany(Note, items, buffered)).rejects.toMatchObject({
      code: 'INVALID_ENQUEUE_OPTION',
      message: expect.stringContaining('(businessKey of items[1])') as unknown,
    });
    expect(await numbers()).toEqual([]);
  });

  it('of a child is refused: it would be saved when its parent has ended', async () => {
    @Injectable()
    class Parents {
      @Job(Slow)
      async run(_payload: unknown, context: JobContext): Promise<string> {
        const options = buffered as object;
        return context.enqueue(Note, { n: 1 }, options).then(
          () => 'taken',
          (error: unknown) => (error as Error).message,
        );
      }
    }
    const app = await boot({ worker: true }, [Parents]);
    const { id } = await app.get(JobScheduler).enqueue(Slow);
    const job = await ended(app, id);
    expect(job?.result).toEqual(expect.stringContaining("'saved' for a child"));
  });

  it('survives an outage within its bounds: callers wait in order, those beyond are refused, and nothing is lost or doubled', async () => {
    const scheduler = (await boot({ intake: { bufferedJobs: 5, bufferedBytes: 1_000_000 } })).get(
      JobScheduler,
    );
    await (
      await scheduler.enqueue(Note, { n: -1 })
    ).saved;
    // The first insert is committed, and its reply is lost.
    const lost = network.loseReplyTo(/insert into "ratchet"\.job/);
    const [first] = await notes(scheduler, 1);
    await lost;
    network.refuse();
    const taken = await notes(scheduler, 4, 1);
    const waiting = notes(scheduler, 5, 5);
    await expect(scheduler.enqueue(Note, { n: 10 }, buffered)).rejects.toMatchObject({ code: 'INTAKE_FULL' });
    network.restore();
    const handles = [first!, ...taken, ...(await waiting)];
    expect(new Set(await settled(handles))).toEqual(new Set(['saved']));
    expect(await numbers()).toEqual([-1, ...handles.map((_, n) => n)]);
  });

  it('lets result() wait for the job to be there', async () => {
    @Injectable()
    class Jobs {
      @Job(Slow)
      run(): string {
        return 'done';
      }
    }
    const app = await boot({ worker: true }, [Jobs]);
    const lock = await database.connect();
    await lock.query('begin');
    await lock.query('lock table ratchet.job in exclusive mode');
    const handle = await app.get(JobScheduler).enqueue(Slow, undefined, buffered);
    await expect(handle.result({ timeout: '300ms' })).rejects.toMatchObject({ code: 'RESULT_TIMEOUT' });
    const result = handle.result();
    await lock.query('commit');
    expect(await result).toBe('done');
  });

  describe('at a drain', () => {
    it('is flushed first, and what handlers enqueue meanwhile is flushed too', async () => {
      const begun = deferred();
      const gate = deferred();
      @Injectable()
      class Jobs {
        scheduler!: JobScheduler;
        @Job(Slow)
        async run(): Promise<void> {
          begun.resolve();
          await gate.promise;
          await notes(this.scheduler, 30, 100);
        }
      }
      const app = await boot({ worker: true }, [Jobs]);
      const scheduler = app.get(JobScheduler);
      app.get(Jobs).scheduler = scheduler;
      await scheduler.enqueue(Slow);
      await begun.promise;
      const lock = await database.connect();
      await lock.query('begin');
      await lock.query('lock table ratchet.job_payload in exclusive mode');
      const big = await scheduler.enqueue(Note, { n: 1, text: 'x'.repeat(5_000) }, buffered);
      const drained = app.get(RatchetRuntime).drain();
      await lock.query('commit');
      // Before the job that runs has ended.
      await big.saved;
      gate.resolve();
      await drained;
      const rows = await database.query('select from ratchet.job where name = $1', ['note']);
      expect(rows).toHaveLength(31);
    });

    it('refuses what comes after it while the database is away: nothing waits for ever', async () => {
      const app = await boot({ drainTimeout: '300ms' });
      const scheduler = app.get(JobScheduler);
      const [first] = await notes(scheduler, 1);
      await first!.saved;
      await app.get(RatchetRuntime).drain();
      network.refuse();
      const handles = await notes(scheduler, 3, 1);
      await app.close();
      const codes = new Set(await settled(handles));
      expect([['ENQUEUE_ABANDONED'], ['ENQUEUE_IN_DOUBT']]).toContainEqual([...codes]);
      const late = scheduler.enqueue(Note, { n: 4 }, buffered);
      await expect(late).rejects.toMatchObject({ code: 'ENQUEUE_ABANDONED' });
    });

    it.each([{ worker: true }, { worker: false }])(
      'with $worker and the database away ends in time, and refuses and counts what is not saved',
      async ({ worker }) => {
        const app = await boot({ worker, drainTimeout: '300ms' });
        const scheduler = app.get(JobScheduler);
        await (
          await notes(scheduler, 1)
        )[0]!.saved;
        network.refuse();
        const handles = await notes(scheduler, 20, 1);
        const beganMs = performance.now();
        await app.close();
        expect(performance.now() - beganMs).toBeLessThan(8_000);
        // Whether the first attempt met a connection that was just being cut is not ours to say.
        const codes = new Set(await settled(handles));
        expect([['ENQUEUE_ABANDONED'], ['ENQUEUE_IN_DOUBT']]).toContainEqual([...codes]);
        expect(lines.map(({ line }) => line)).toContainEqual(
          expect.stringMatching(
            /^20 buffered jobs could not be saved: note \(20\); of the last one: ENQUEUE_/,
          ),
        );
        expect(await numbers()).toEqual([0]);
      },
    );
  });
});

describe('a process with buffered enqueues', () => {
  let library: string;
  const jobs = (worker: WorkerProcess, event: string): string[] =>
    worker.events.filter((one) => one.event === event).map(({ job }) => job!);

  beforeAll(() => {
    library = compileLibrary('buffered');
  }, 120_000);

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    '%s: whatever was said to be saved is there, and after a drain all that was taken',
    async (signal) => {
      const worker = new WorkerProcess({
        library,
        url: database.url,
        sideUrl: database.url,
        nodeId: 'buffered',
        options: { worker: false },
        script: '../intake/buffered-worker.mjs',
      });
      await worker.until(({ event }) => event === 'ended', 500);
      worker.kill(signal);
      await worker.exited;
      const rows = await database.query<{ id: string }>("select id from ratchet.job where name = 'click'");
      const there = new Set(rows.map(({ id }) => id));
      expect(there.size).toBe(rows.length);
      expect(jobs(worker, 'ended').filter((id) => !there.has(id))).toEqual([]);
      expect(jobs(worker, 'failed')).toEqual([]);
      expect(jobs(worker, 'unhandledRejection')).toEqual([]);
      const missing = jobs(worker, 'begin').filter((id) => !there.has(id));
      if (signal === 'SIGTERM') expect(missing).toEqual([]);
      else expect(there.size).toBeGreaterThanOrEqual(500);
    },
    60_000,
  );
});
