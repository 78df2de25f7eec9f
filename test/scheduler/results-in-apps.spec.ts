import { afterEach, beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { Inject, Injectable } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import { DataSource } from 'typeorm';
import {
  defineJob,
  Job,
  type JobContext,
  type JobHandle,
  JobScheduler,
  JobStore,
  type PayloadOf,
  RatchetModule,
  type RatchetSettings,
} from '../../lib/index.js';
import { Apps, typeOrm } from '../module/app.js';
import { captureLogs, deferred } from '../support/engine-node.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';

const Double = defineJob<{ n: number }, { doubled: number }>('double', { maxRetries: 0 });
const Fail = defineJob('fail', { maxRetries: 1, backoff: { type: 'none' } });
const Forget = defineJob<undefined, { kept: boolean }>('forget', { history: 'drop' });
const Parent = defineJob<{ children: number; wait: boolean }, number[]>('parent', { lane: 'family' });
const Child = defineJob<{ n: number }, number>('child', { lane: 'family' });
const Narcissus = defineJob<undefined, string>('narcissus');

/** What the handlers wait for, set by each test. */
class Gate {
  open: Promise<void> = Promise.resolve();
  parents = (): void => undefined;
}

@Injectable()
class Jobs {
  constructor(
    private readonly gate: Gate,
    @Inject(JobScheduler) private readonly scheduler: JobScheduler,
  ) {}

  @Job(Double)
  async double({ n }: PayloadOf<typeof Double>): Promise<{ doubled: number }> {
    await this.gate.open;
    return { doubled: n * 2 };
  }

  @Job(Fail)
  fail(): void {
    throw new Error('no luck');
  }

  @Job(Forget)
  forget(): { kept: boolean } {
    return { kept: false };
  }

  @Job(Child)
  child({ n }: PayloadOf<typeof Child>): number {
    return n;
  }

  @Job(Parent)
  async parent({ children, wait }: PayloadOf<typeof Parent>, ctx: JobContext): Promise<number[]> {
    const handles: JobHandle<number>[] = [];
    for (let n = 0; n < children; n += 1) handles.push(await ctx.enqueue(Child, { n }));
    this.gate.parents();
    if (wait) await this.gate.open;
    return Promise.all(handles.map((handle) => handle.result({ signal: ctx.signal })));
  }

  @Job(Narcissus)
  async narcissus(_: PayloadOf<typeof Narcissus>, ctx: JobContext): Promise<string> {
    return this.scheduler
      .handle(ctx.jobId)
      .result()
      .then(
        () => 'no error',
        (error: unknown) => (error as { code: string }).code,
      );
  }
}

describe('results in applications', () => {
  const apps = new Apps();
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => apps.closeAll());
  afterAll(() => database.drop());

  async function boot(settings: RatchetSettings = {}, gate = new Gate()): Promise<TestingModule> {
    return apps.boot({
      imports: [typeOrm(database), RatchetModule.forRoot({ dataSource: DataSource, ...settings })],
      providers: [Jobs, { provide: Gate, useValue: gate }],
    });
  }

  it('are the handler’s return value, also for a process that runs nothing, and by the id alone', async () => {
    const desk = (await boot({ worker: false })).get(JobScheduler);
    const handles = await desk.enqueueMany(
      Double,
      Array.from({ length: 50 }, (_, n) => ({ payload: { n } })),
    );
    const waiting = Promise.all(handles.map((handle) => handle.result({ timeout: '20s' })));
    const worker = (await boot()).get(JobScheduler);
    expect(await waiting).toEqual(handles.map((_, n) => ({ doubled: n * 2 })));
    const [, one] = handles;
    await expect(worker.handle(Double, one!.id.toUpperCase()).result()).resolves.toEqual({ doubled: 2 });
    await expect(desk.handle<{ doubled: number }>(one!.id).result()).resolves.toEqual({ doubled: 2 });
    expect(desk.handle(one!.id)).toMatchObject({ id: one!.id, created: false });
  });

  it('reject by how the job ended', async () => {
    const gate = new Gate();
    const scheduler = (await boot({}, gate)).get(JobScheduler);
    const failed = await scheduler.enqueue(Fail);
    await expect(failed.result()).rejects.toMatchObject({
      code: 'JOB_FAILED',
      jobId: failed.id,
      jobName: 'fail',
      executions: 2,
      failures: 2,
      crashes: 0,
      error: expect.stringContaining('Error: no luck\n'),
    });
    const later = await scheduler.enqueue(Double, { n: 1 }, { delay: '1h' });
    await expect(later.result({ timeout: 100 })).rejects.toMatchObject({ code: 'RESULT_TIMEOUT' });
    const canceled = expect(later.result()).rejects.toMatchObject({
      code: 'JOB_CANCELED',
      jobName: 'double',
    });
    await scheduler.cancel(later.id);
    await canceled;
    const dropped = await scheduler.enqueue(Forget);
    await expect(dropped.result()).rejects.toMatchObject({
      code: 'JOB_NOT_FOUND',
      message: expect.stringMatching(
        /never committed, retention has removed it, or it succeeded .*history: 'drop'/,
      ),
    });
    const held = deferred();
    gate.open = held.promise;
    const again = await scheduler.enqueue(Double, { n: 4 }, { idempotencyKey: 'one' });
    const repeat = await scheduler.enqueue(Double, { n: 5 }, { idempotencyKey: 'one' });
    expect(repeat.created).toBe(false);
    held.resolve();
    expect(await Promise.all([again.result(), repeat.result()])).toEqual([{ doubled: 8 }, { doubled: 8 }]);
  });

  it('wait on through a redrive that comes before the answer', async () => {
    const app = await boot({ worker: false });
    const scheduler = app.get(JobScheduler);
    const { id } = await scheduler.enqueue(Double, { n: 3 });
    // To the dead letter and back, while nobody has been told.
    await database.query(
      `with gone as (delete from ratchet.job where id = $1 returning *)
       insert into ratchet.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, ended_at, outcome,
              error, executions, failures, crashes)
       select id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, now(), 'failed', 'no', 1, 1, 0 from gone`,
      [id],
    );
    await scheduler.redrive(id);
    const result = scheduler.handle(Double, id).result();
    await boot();
    await expect(result).resolves.toEqual({ doubled: 6 });
  });

  it('of a job that is purged while it is awaited are one of two things', async () => {
    const app = await boot();
    const scheduler = app.get(JobScheduler);
    const store = app.get(JobStore);
    const handle = await scheduler.enqueue(Double, { n: 1 });
    await handle.result();
    // The real one, of another process whose clock is days ahead.
    const ahead = createStore(database.url);
    await ahead.open();
    ahead.travel(5 * 86_400_000);
    const ages = { historyMs: 86_400_000, executionMs: 86_400_000, deadLetterMs: 86_400_000 };
    const purge = async () => {
      await ahead.retain(ages);
      await store.ensurePartitions(14);
    };
    const original = store.ended.bind(store);
    // Asked before the purge, answered after it: what it says is told.
    store.ended = async (...question) => {
      const answer = await original(...question);
      await purge();
      return answer;
    };
    await expect(handle.result()).resolves.toEqual({ doubled: 2 });
    store.ended = original;
    await expect(handle.result()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    await ahead.close();
  });

  describe('of a transaction', () => {
    it('wait for the commit, and are not found after a rollback', async () => {
      const app = await boot();
      const scheduler = app.get(JobScheduler);
      const source = app.get(DataSource);
      const results: Promise<unknown>[] = [];
      await source.transaction(async (transaction) => {
        const one = await scheduler.enqueue(Double, { n: 1 }, { transaction });
        results.push(one.result());
        await transaction
          .transaction(async (inner) => {
            results.push((await scheduler.enqueue(Double, { n: 2 }, { transaction: inner })).result());
            await transaction.query('select pg_sleep(0.5)');
            throw new Error('of the savepoint');
          })
          .catch(() => undefined);
        // Long enough for a question, or several, whose answer must not count.
        await transaction.query('select pg_sleep(0.5)');
        expect(await Promise.race([...results, Promise.resolve('none yet')])).toBe('none yet');
      });
      await source
        .transaction(async (transaction) => {
          results.push((await scheduler.enqueue(Double, { n: 3 }, { transaction })).result());
          throw new Error('of the whole');
        })
        .catch(() => undefined);
      expect(await Promise.allSettled(results)).toMatchObject([
        { value: { doubled: 2 } },
        { reason: { code: 'JOB_NOT_FOUND' } },
        { reason: { code: 'JOB_NOT_FOUND' } },
      ]);
    });

    it('whose connection is lost are not found', async () => {
      const app = await boot({ worker: false });
      const scheduler = app.get(JobScheduler);
      const runner = app.get(DataSource).createQueryRunner();
      await runner.startTransaction();
      const handle = await scheduler.enqueue(Double, { n: 1 }, { transaction: runner });
      const result = expect(handle.result()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
      const [{ pid }] = (await runner.query('select pg_backend_pid() as pid')) as [{ pid: number }];
      await database.query('select pg_terminate_backend($1)', [pid]);
      await runner.rollbackTransaction().catch(() => undefined);
      await runner.release().catch(() => undefined);
      await result;
    });

    it('are told apart from those of the next one on the same connection', async () => {
      const app = await boot({ worker: false });
      const scheduler = app.get(JobScheduler);
      const runner = app.get(DataSource).createQueryRunner();
      await runner.startTransaction();
      const first = await scheduler.enqueue(Double, { n: 1 }, { transaction: runner });
      await runner.rollbackTransaction();
      await runner.startTransaction();
      const second = await scheduler.enqueue(Double, { n: 2 }, { transaction: runner });
      const later = second.result();
      await expect(first.result()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
      await runner.commitTransaction();
      await runner.release();
      await boot();
      await expect(later).resolves.toEqual({ doubled: 4 });
    });
  });

  describe('awaited by a handler', () => {
    it('in its own lane are warned of, louder when every slot waits', async () => {
      const gate = new Gate();
      const scheduler = (await boot({ lanes: { family: { concurrency: 3 } } }, gate)).get(JobScheduler);
      const lines = captureLogs();
      const two = await scheduler.enqueueMany(
        Parent,
        [0, 1].map(() => ({ payload: { children: 2, wait: false } })),
      );
      expect(await Promise.all(two.map((handle) => handle.result()))).toEqual([
        [0, 1],
        [0, 1],
      ]);
      const told = (level: string) =>
        lines
          .filter((entry) => entry.level === level && entry.line.includes('"family"'))
          .map(({ line }) => line);
      expect(told('warn')).toEqual([
        expect.stringMatching(/parent awaits the result of child .*concurrency 3.*defineJob\('child'/),
      ]);
      expect(told('error')).toEqual([]);
      // Three parents hold the three slots, then wait: only a cancel makes room.
      const held = deferred();
      gate.open = held.promise;
      const all = deferred();
      let waiting = 0;
      gate.parents = () => {
        waiting += 1;
        if (waiting === 3) all.resolve();
      };
      const three = await scheduler.enqueueMany(
        Parent,
        [0, 1, 2].map(() => ({ payload: { children: 1, wait: true } })),
      );
      await all.promise;
      held.resolve();
      const results = Promise.allSettled(three.map((handle) => handle.result()));
      await expect(three[0]!.result({ timeout: 500 })).rejects.toMatchObject({ code: 'RESULT_TIMEOUT' });
      expect(told('warn')).toHaveLength(1);
      expect(told('error')).toEqual([
        expect.stringMatching(/all 3 slots of lane "family" .*defineJob\('child'/),
      ]);
      await scheduler.cancel(three[0]!.id);
      expect(await results).toMatchObject([
        { reason: { code: 'JOB_CANCELED' } },
        { value: [0] },
        { value: [0] },
      ]);
    });

    it('are refused when they are its own', async () => {
      const scheduler = (await boot()).get(JobScheduler);
      await expect((await scheduler.enqueue(Narcissus)).result()).resolves.toBe('RESULT_OF_ITSELF');
    });
  });

  it('leave nobody waiting when the application closes', async () => {
    const app = await boot({ worker: false });
    const handle = await app.get(JobScheduler).enqueue(Double, { n: 1 }, { delay: '1h' });
    const result = expect(handle.result()).rejects.toMatchObject({
      code: 'RESULT_ABANDONED',
      jobId: handle.id,
    });
    // Nobody looks at this one.
    void handle.result({ timeout: '1h' });
    await app.close();
    await result;
    await expect(handle.result()).rejects.toMatchObject({ code: 'RESULT_ABANDONED' });
  });

  it.each([['nope'], [null], [undefined], [7], ['']])('have no handle to %j', async (id) => {
    const scheduler = (await boot({ worker: false })).get(JobScheduler);
    expect(() => scheduler.handle(id as string)).toThrow(expect.objectContaining({ code: 'INVALID_JOB_ID' }));
    expect(() => scheduler.handle(Double, id as string)).toThrow(
      expect.objectContaining({ code: 'INVALID_JOB_ID' }),
    );
    expect(() => scheduler.handle(null as never, id as string)).toThrow(
      expect.objectContaining({ code: 'INVALID_ENQUEUE_OPTION' }),
    );
  });
});
