import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import {
  defineJob,
  Job,
  JobContext,
  JobScheduler,
  RatchetModule,
  type RatchetSettings,
} from 'nestjs-ratchet';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { Apps, ended } from '../module/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { captureLogs, deferred } from '../support/engine-node.js';
import { pollOption } from '../support/poll.js';

const Held = defineJob<{ n: number }, string>('held', { maxRetries: 0 });
const Flaky = defineJob('flaky', { backoff: { type: 'none' } });

/** What the handlers of the running app do. */
interface Script {
  held(ctx: JobContext): Promise<string>;
  flaky(ctx: JobContext): Promise<void>;
}
let script: Script;

@Injectable()
class Handlers {
  @Job(Held)
  held(_payload: { n: number }, ctx: JobContext): Promise<string> {
    return script.held(ctx);
  }

  @Job(Flaky)
  flaky(_payload: unknown, ctx: JobContext): Promise<void> {
    return script.flaky(ctx);
  }
}

const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  Logger.overrideLogger(['error']);
  database = await createTestDatabase();
});
afterEach(async () => {
  await apps.closeAll();
  Logger.overrideLogger(['error']);
  await database.query('truncate ratchet.job, ratchet.job_history, ratchet.dead_letter');
});
afterAll(() => database.drop());

const boot = (settings: RatchetSettings = {}, worker = true) =>
  apps.boot({
    imports: [RatchetModule.forRoot({ connection: database.url, ...settings, worker })],
    providers: worker ? [Handlers] : [],
  });

describe('JobScheduler beside an engine that runs', () => {
  it('cancels 3 000 jobs: those that run here hear of it, and what they return is discarded and logged', async () => {
    const app = await boot({ concurrency: 5 });
    const logs = captureLogs();
    const scheduler = app.get(JobScheduler);
    const events = app.get(EngineEvents, { strict: false });
    const contexts: JobContext[] = [];
    const started = deferred();
    const gate = deferred<string>();
    script = {
      held: (ctx) => {
        if (contexts.push(ctx) === 5) started.resolve();
        return gate.promise;
      },
      flaky: () => Promise.resolve(),
    };
    const items = Array.from({ length: 3_000 }, (_, n) => ({ payload: { n } }));
    await scheduler.enqueueMany(Held, items, { tags: ['bulk'] });
    await scheduler.enqueue(Held, { n: 0 }, { delay: '1h' });
    await started.promise;

    await expect(scheduler.cancelByTag('bulk', { preview: true })).resolves.toEqual({ matched: 3_000 });
    await expect(scheduler.count({ tag: 'bulk', status: ['pending', 'running'] })).resolves.toBe(3_000);
    await expect(scheduler.cancelByTag('bulk')).resolves.toEqual({
      matched: 3_000,
      changed: 3_000,
      aborted: false,
    });
    expect(contexts.map(({ signal }) => (signal.reason as { reason: string }).reason)).toEqual(
      Array(5).fill('canceled'),
    );
    const late: string[] = [];
    const allLate = new Promise<void>((resolve) => {
      const off = events.on('late', ({ jobId }) => {
        if (late.push(jobId) < 5) return;
        off();
        resolve();
      });
    });
    gate.resolve('too late');
    await allLate;
    expect(late.sort()).toEqual(contexts.map(({ jobId }) => jobId).sort());
    await expect(scheduler.count({ tag: 'bulk', status: 'canceled' })).resolves.toBe(3_000);
    await expect(scheduler.count({ status: 'pending' })).resolves.toBe(1);
    for (const { jobId } of contexts) {
      expect(await scheduler.get(jobId)).toMatchObject({ status: 'canceled', result: undefined });
      expect(await scheduler.executions(jobId)).toMatchObject([
        { outcome: 'canceled', lateOutcome: 'succeeded' },
      ]);
      expect(logs.map(({ line }) => line)).toContain(
        `job ${jobId}: the handler ended (succeeded) after the job was canceled: discarded, its execution keeps a note of it`,
      );
    }
    expect(contexts).toHaveLength(5);
  });

  it('pauses a running job that then retries, and runs it on when it is resumed', async () => {
    const app = await boot();
    const scheduler = app.get(JobScheduler);
    const events = app.get(EngineEvents, { strict: false });
    const started = deferred();
    const gate = deferred();
    const executions: number[] = [];
    script = {
      held: () => Promise.resolve(''),
      flaky: async ({ execution }) => {
        executions.push(execution);
        if (execution > 1) return;
        started.resolve();
        await gate.promise;
        throw new Error('down');
      },
    };
    const { id } = await scheduler.enqueue(Flaky);
    await started.promise;
    await expect(scheduler.pause({ name: Flaky })).resolves.toMatchObject({ matched: 1, changed: 1 });
    expect(await scheduler.get(id)).toMatchObject({ status: 'running', pauseRequested: true });
    const settled = events.next('settled', ({ jobId }) => jobId === id);
    gate.resolve();
    await settled;
    expect(await scheduler.get(id)).toMatchObject({ status: 'paused', pauseRequested: false, failures: 1 });
    expect(executions).toEqual([1]);
    await expect(scheduler.resume({ name: Flaky })).resolves.toMatchObject({ changed: 1 });
    expect(await ended(app, id)).toMatchObject({ status: 'succeeded', executions: 2 });
  });

  it('wakes the engine for what it redrives, resumes, or reschedules to now', async () => {
    // No poll comes in time: only the wakeup can.
    const app = await boot({ poll: pollOption('1h') });
    const scheduler = app.get(JobScheduler);
    script = { held: () => Promise.reject(new Error('down')), flaky: () => Promise.resolve() };
    const { id: dead } = await scheduler.enqueue(Held, { n: 1 });
    expect(await ended(app, dead)).toMatchObject({ status: 'failed' });
    const { id: later } = await scheduler.enqueue(Flaky, undefined, { delay: '1d' });
    const { id: paused } = await scheduler.enqueue(Flaky, undefined, { delay: '1d' });
    await scheduler.pause(paused);
    script.held = () => Promise.resolve('up');

    await expect(scheduler.redrive({ name: Held })).resolves.toMatchObject({ changed: 1 });
    expect(await ended(app, dead)).toMatchObject({ status: 'succeeded', result: 'up' });
    await expect(scheduler.reschedule({ name: Flaky }, { delay: 0 })).resolves.toMatchObject({ changed: 2 });
    expect(await ended(app, later)).toMatchObject({ status: 'succeeded' });
    expect(await scheduler.get(paused)).toMatchObject({ status: 'paused' });
    await expect(scheduler.resume({ status: 'paused' })).resolves.toMatchObject({ changed: 1 });
    expect(await ended(app, paused)).toMatchObject({ status: 'succeeded' });
  });
});

describe('JobScheduler in a process with worker: false', () => {
  it('finds and acts as any other', async () => {
    const app = await boot({}, false);
    const scheduler = app.get(JobScheduler);
    const items = Array.from({ length: 600 }, (_, n) => ({ payload: { n } }));
    const handles = await scheduler.enqueueMany(Held, items, { delay: '1h' });
    const id = handles[7]!.id;
    expect((await scheduler.find({ name: Held }, { limit: 10 })).jobs).toHaveLength(10);
    await expect(scheduler.pause(id)).resolves.toBe(true);
    await expect(scheduler.reschedule(id, { delay: '2h' })).resolves.toBe(true);
    await expect(scheduler.resume(id)).resolves.toBe(true);
    await expect(scheduler.pause({ name: Held })).resolves.toMatchObject({ changed: 600 });
    await expect(scheduler.resume({ name: Held }, { preview: true })).resolves.toEqual({ matched: 600 });
    await expect(scheduler.redrive({ name: Held })).resolves.toMatchObject({ matched: 0 });
    await expect(scheduler.cancel({ name: Held, status: 'paused' })).resolves.toMatchObject({ changed: 600 });
    await expect(scheduler.count({ status: 'canceled' })).resolves.toBe(600);
  });

  it('turns pages over live jobs, history and dead letter while a worker empties them', async () => {
    const worker = await boot({ concurrency: 5 });
    const scheduler = (await boot({}, false)).get(JobScheduler);
    script = {
      held: ({ payload }) =>
        (payload as { n: number }).n % 3 === 0 ? Promise.reject(new Error('down')) : Promise.resolve(''),
      flaky: () => Promise.resolve(),
    };
    const items = Array.from({ length: 400 }, (_, n) => ({ payload: { n } }));
    const ids = (await worker.get(JobScheduler).enqueueMany(Held, items)).map(({ id }) => id);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await scheduler.find({ name: Held }, { limit: 9, cursor });
      seen.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual([...ids].reverse());
    for (const id of ids.slice(-5)) await ended(worker, id);
  });

  it('previews exactly what it changes, while nothing else happens', async () => {
    const scheduler = (await boot({}, false)).get(JobScheduler);
    const items = Array.from({ length: 1_100 }, (_, n) => ({
      payload: { n },
      options: { tags: n % 2 === 0 ? ['even'] : [], delay: '1h' as const },
    }));
    await scheduler.enqueueMany(Held, items);
    const filter = { name: Held, tag: 'even' };
    for (const action of ['pause', 'resume', 'cancel'] as const) {
      const { matched } = await scheduler[action](filter, { preview: true });
      expect([action, matched]).toEqual([action, 550]);
      expect(await scheduler[action](filter)).toEqual({ matched, changed: matched, aborted: false });
    }
  });

  it('stops between two steps when it is told to', async () => {
    const scheduler = (await boot({}, false)).get(JobScheduler);
    const items = Array.from({ length: 1_100 }, (_, n) => ({ payload: { n } }));
    await scheduler.enqueueMany(Held, items, { delay: '1h' });
    const controller = new AbortController();
    const pausing = scheduler.pause({ name: Held }, { signal: controller.signal });
    controller.abort();
    const { changed, aborted } = await pausing;
    expect(aborted).toBe(true);
    expect(changed).toBeLessThan(1_100);
    expect(await scheduler.count({ status: 'paused' })).toBe(changed);
  });
});
