import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import {
  ClusterCoordinator,
  defineJob,
  Job,
  type JobContext,
  JobScheduler,
  RatchetModule,
} from 'nestjs-ratchet';
import { EngineEvents } from '../../../lib/observability/engine-events.js';
import { Apps } from '../../module/app.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { LISTENERS } from './postgres-fixture.js';
import { pollOption } from '../../support/poll.js';

const Mail = defineJob<{ readonly n: number }>('mail.send', { lane: 'mail' });
const Endless = defineJob('endless', { lane: 'mail' });
const ENQUEUES = process.env['RATCHET_SHOW_FIGURES'] ? 200 : 60;

@Injectable()
class MailJobs {
  onMail: (n: number) => void = () => {};
  onEndless: () => void = () => {};

  @Job(Mail)
  send({ n }: { n: number }): void {
    this.onMail(n);
  }

  @Job(Endless)
  async wait(_payload: unknown, context: JobContext): Promise<void> {
    this.onEndless();
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    context.signal.throwIfAborted();
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

const eventsOf = (app: TestingModule): EngineEvents => app.get(EngineEvents, { strict: false });

/** Nothing is found by polling while a test runs. */
function boot(options: object, providers: (typeof MailJobs)[] = []): Promise<TestingModule> {
  const ratchet = RatchetModule.forRoot({ connection: database.url, poll: pollOption('1h'), ...options });
  return apps.boot({ imports: [ratchet], providers });
}

/** A node with the handlers, that listens. */
async function listeningNode(): Promise<TestingModule> {
  const app = await boot({}, [MailJobs]);
  const up = eventsOf(app).next('coordinator', ({ state }) => state === 'up');
  if (app.get(ClusterCoordinator).health().state !== 'connected') await up;
  return app;
}

describe('a job that is enqueued on one node and run by another', () => {
  it.each([
    ['a node without the handler', {}],
    ['a process that only enqueues', { worker: false }],
  ])('starts within milliseconds of its enqueue by %s, long before any poll', async (_who, options) => {
    const runner = await listeningNode();
    const enqueuer = await boot(options);
    const latencies: number[] = [];
    for (let n = 0; n < ENQUEUES; n += 1) {
      const started = new Promise<number>((resolve) => {
        runner.get(MailJobs).onMail = () => resolve(performance.now());
      });
      const beganMs = performance.now();
      await enqueuer.get(JobScheduler).enqueue(Mail, { n });
      latencies.push((await started) - beganMs);
    }
    latencies.sort((a, b) => a - b);
    const p50 = latencies[ENQUEUES / 2] ?? Infinity;
    if (process.env['RATCHET_SHOW_FIGURES'])
      process.stdout.write(
        `p50 ${p50.toFixed(1)} ms, p95 ${(latencies[ENQUEUES * 0.95] ?? 0).toFixed(1)} ms\n`,
      );
    // Milliseconds on a quiet machine; the tests of this project share theirs.
    expect(p50).toBeLessThan(200);
  });

  it('is told of a delay: it starts when it is due', async () => {
    const runner = await listeningNode();
    const enqueuer = await boot({ worker: false });
    const started = new Promise<number>((resolve) => {
      runner.get(MailJobs).onMail = () => resolve(performance.now());
    });
    const beganMs = performance.now();
    await enqueuer.get(JobScheduler).enqueue(Mail, { n: 1 }, { delay: 400 });
    expect((await started) - beganMs).toBeGreaterThanOrEqual(399);
  });

  it('is canceled by another process: its signal is aborted at once', async () => {
    const runner = await listeningNode();
    const enqueuer = await boot({ worker: false });
    const started = new Promise<void>((resolve) => {
      runner.get(MailJobs).onEndless = resolve;
    });
    const { id } = await enqueuer.get(JobScheduler).enqueue(Endless);
    await started;
    const aborted = eventsOf(runner).next('canceled', ({ jobId }) => jobId === id);
    await enqueuer.get(JobScheduler).cancel(id);
    await aborted;
  });

  it('is found by the catch-up when it was told while nobody listened', async () => {
    const runner = await listeningNode();
    const enqueuer = await boot({ worker: false });
    const started = new Promise<void>((resolve) => {
      runner.get(MailJobs).onMail = () => resolve();
    });
    const down = eventsOf(runner).next('coordinator', ({ state }) => state === 'down');
    await database.query(`select pg_terminate_backend(pid) from (${LISTENERS}) as listeners`);
    expect((await down).detail).toMatch(/./);
    await enqueuer.get(JobScheduler).enqueue(Mail, { n: 1 });
    await started;
  });
});
