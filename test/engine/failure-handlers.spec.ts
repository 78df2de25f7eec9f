import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger, Scope, type Type } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import {
  defineJob,
  Job,
  JobContext,
  type JobFailedError,
  type JobFailure,
  JobScheduler,
  OnJobFailure,
  type PayloadOf,
  RatchetModule,
  type RatchetSettings,
  UnrecoverableError,
} from 'nestjs-ratchet';
import { z } from 'zod';
import { DebugPoints } from '../../lib/observability/debug-points.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { Apps, ended } from '../module/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { captureLogs, deferred } from '../support/engine-node.js';
import { createStore, newJob, turn } from '../support/store.js';
import { pollOption } from '../support/poll.js';

interface Told {
  readonly payload: unknown;
  readonly error: JobFailedError;
  readonly context: JobContext<JobFailure>;
}

const told: Told[] = [];
let waiting: (() => void)[] = [];
/** What the failure handler does beside noting that it was called. */
let act: (call: Told) => unknown = () => undefined;

async function toldOf(count: number): Promise<Told[]> {
  while (told.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
  return [...told];
}

function tell(call: Told): unknown {
  told.push(call);
  for (const resolve of waiting.splice(0)) resolve();
  return act(call);
}

const Send = defineJob<{ orderId: string }>('send', { maxRetries: 1, backoff: { type: 'none' } });
const Strict = defineJob('strict', {
  schema: z.object({ at: z.coerce.date() }),
  maxRetries: 0,
  version: 2,
  upcast: (stored, from) => (from === 1 ? { at: (stored as { when: string }).when } : stored),
});

@Injectable()
class SendJobs {
  static act: () => unknown = () => undefined;

  @Job(Send)
  send(): unknown {
    return SendJobs.act();
  }

  @Job(Strict)
  strict(): void {
    throw new Error('strictly not');
  }
}

@Injectable()
class Failures {
  @OnJobFailure(Send, { maxRetries: 1, backoff: { type: 'none' } })
  async failed(
    payload: PayloadOf<typeof Send>,
    error: JobFailedError,
    context: JobContext<JobFailure>,
  ): Promise<void> {
    await tell({ payload, error, context });
  }

  @OnJobFailure(Strict, { lane: 'alarms' })
  strict(payload: { at: Date }, error: JobFailedError, context: JobContext<JobFailure>): unknown {
    return tell({ payload, error, context });
  }
}

describe('@OnJobFailure', () => {
  const apps = new Apps();
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await apps.closeAll();
    await database.query(
      'truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution, ratchet.bucket, ratchet.node, ' +
        'ratchet.failure_handler, ratchet.job_payload',
    );
    told.length = 0;
    waiting = [];
    act = () => undefined;
    SendJobs.act = () => undefined;
  });
  afterAll(async () => {
    await database.drop();
    Logger.overrideLogger(false);
  });

  function boot(providers: Type[], settings: RatchetSettings = {}): Promise<TestingModule> {
    // Long enough that only wakeups explain what happens at once.
    const ratchet = RatchetModule.forRoot({ connection: database.url, poll: pollOption('1h'), ...settings });
    return apps.boot({ imports: [ratchet], providers });
  }
  async function failureJobs(
    status = 'succeeded',
  ): Promise<{ id: string; lane: string; parent_id: string }[]> {
    return database.query(
      `select id, lane, parent_id, status from ratchet.jobs where name like '%#failed' and status = $1`,
      [status],
    );
  }
  /** The jobs are recorded, by whichever of these. */
  async function settled(by: TestingModule | readonly TestingModule[], count: number): Promise<void> {
    const all = [by].flat().map((app) => app.get(EngineEvents, { strict: false }));
    for (;;) {
      const next = Promise.race(all.map((events) => events.next('settled')));
      if ((await failureJobs()).length >= count) return;
      await next;
    }
  }

  it('is called once the retries are used up, with payload, error and the context of its own job', async () => {
    SendJobs.act = () => {
      throw new Error('no such mailbox');
    };
    const app = await boot([SendJobs, Failures]);
    const { id } = await app
      .get(JobScheduler)
      .enqueue(
        Send,
        { orderId: '7' },
        { priority: 'high', businessKey: 'order:7', tags: ['a'], metadata: { tenant: 't' } },
      );
    const [call] = await toldOf(1);
    expect(call?.payload).toEqual({ orderId: '7' });
    expect(call?.error).toMatchObject({
      code: 'JOB_FAILED',
      jobId: id,
      jobName: 'send',
      executions: 2,
      failures: 2,
      crashes: 0,
      error: expect.stringContaining('no such mailbox'),
    });
    expect(call?.error.message).toContain('no such mailbox');
    const { context } = call!;
    expect(context).toMatchObject({ name: 'send#failed', priority: 'high', execution: 1, tags: [] });
    expect(context.metadata).toEqual({ tenant: 't' });
    expect(context.payload.job).toMatchObject({
      id,
      name: 'send',
      businessKey: 'order:7',
      tags: ['a'],
      metadata: { tenant: 't' },
      version: 1,
      priority: 'high',
      lane: 'default',
      node: expect.any(String),
    });
    const job = await app.get(JobScheduler).get(id);
    expect(context.payload.job.createdAt.getTime()).toBe(job?.createdAt.getTime());
    expect(context.payload.job.failedAt.getTime()).toBe(job?.endedAt?.getTime());
    await settled(app, 1);
    expect(await failureJobs()).toMatchObject([{ parent_id: id, lane: 'default' }]);
    expect(told).toHaveLength(1);
  });

  it('says nothing as jobs say it everywhere: no tags, and undefined', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    const app = await boot([SendJobs, Failures]);
    await app.get(JobScheduler).enqueue(Send, { orderId: '7' });
    const [call] = await toldOf(1);
    expect(call?.context.payload.job).toMatchObject({
      tags: [],
      metadata: undefined,
      businessKey: undefined,
      priority: 'normal',
    });
  });

  it('is called for an UnrecoverableError at once, on another node, which need not have the handler of the job', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    await boot([Failures], { poll: pollOption('100ms') });
    const app = await boot([SendJobs]);
    const { id } = await app.get(JobScheduler).enqueue(Send, { orderId: '1' });
    const [call] = await toldOf(1);
    expect(call?.error).toMatchObject({ jobId: id, executions: 1, failures: 1 });
    expect(await app.get(JobScheduler).get(id)).toMatchObject({ status: 'failed' });
  });

  it('is called for a job over its crash budget, rescued by a node that has neither handler', async () => {
    const app = await boot([Failures], { poll: pollOption('100ms') });
    // A process that claimed and died.
    const store = createStore(database.url);
    await store.open();
    const node = await store.registerNode({
      id: 'dead',
      host: 'test',
      pid: 1,
      version: '0',
      lanes: ['default'],
      handlers: ['send'],
    });
    const bucket = await store.openBucket(node, 'default');
    const job = newJob({ name: 'send', payload: '{"orderId":"9"}' });
    await store.insert([job]);
    await store.exchange(turn(bucket, { handlers: [{ name: 'send', version: 1 }] }));
    @Injectable()
    class Others {
      @Job('other')
      run(): void {}
    }
    await boot([Others], { nodeId: 'dead', maxCrashRedeliveries: 0 });
    const [call] = await toldOf(1);
    expect(call?.payload).toEqual({ orderId: '9' });
    expect(call?.error).toMatchObject({ jobId: job.id, crashes: 1, failures: 0 });
    await settled(app, 1);
    await store.close();
  });

  it('a rescue wakes the node that does it', async () => {
    await boot([Failures]).then((app) => app.close());
    const store = createStore(database.url);
    await store.open();
    const node = await store.registerNode({
      id: 'again',
      host: 'test',
      pid: 1,
      version: '0',
      lanes: ['default'],
      handlers: ['strict'],
    });
    const bucket = await store.openBucket(node, 'default');
    await store.insert([newJob({ name: 'strict', version: 2, payload: '{"at":"2026-01-01"}' })]);
    await store.exchange(turn(bucket, { handlers: [{ name: 'strict', version: 2 }] }));
    await store.close();
    await boot([Failures], { nodeId: 'again', maxCrashRedeliveries: 0 });
    expect((await toldOf(1))[0]?.payload).toEqual({ at: new Date('2026-01-01') });
  });

  it('is called once when the node dies right after the dead letter has the job', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    const app = await boot([SendJobs, Failures], { nodeId: 'mortal' });
    const debug = app.get(DebugPoints, { strict: false });
    const buried = deferred();
    const never = deferred();
    let isHeld = false;
    debug.at('exchange.answered', async () => {
      if (isHeld || (await database.query('select 1 from ratchet.dead_letter')).length === 0) return;
      isHeld = true;
      buried.resolve();
      await never.promise;
    });
    await app.get(JobScheduler).enqueue(Send, { orderId: '1' });
    await buried.promise;
    expect(await failureJobs('pending')).toHaveLength(1);
    const heir = await boot([SendJobs, Failures], { nodeId: 'mortal' });
    // The old process, which is none the less there, goes on under another id, and may be the one that runs it.
    await settled([app, heir], 1);
    expect(told).toHaveLength(1);
    never.resolve();
  });

  it('gets what the schema and the upcast make of the payload, in a lane of its own', async () => {
    const app = await boot([SendJobs, Failures]);
    await app.get(JobScheduler).enqueueNamed('strict', { when: '2026-02-03' }, { version: 1 });
    const [call] = await toldOf(1);
    expect(call?.payload).toEqual({ at: new Date('2026-02-03') });
    expect(call?.context.lane).toBe('alarms');
    expect(call?.context.payload.job.version).toBe(1);
  });

  it('gets a payload that cannot be read as it was stored, and a warning says so', async () => {
    const app = await boot([SendJobs, Failures]);
    const logs = captureLogs();
    await app.get(JobScheduler).enqueueNamed('strict', { when: 'x'.repeat(5_000) }, { version: 1 });
    const [call] = await toldOf(1);
    expect(call?.payload).toEqual({ when: 'x'.repeat(5_000) });
    expect(call?.error.error).toContain('PAYLOAD_INVALID');
    await settled(app, 1);
    const warning = logs.find(({ line }) => line.includes('is given as it was stored'));
    expect(warning).toMatchObject({ level: 'warn', line: expect.stringContaining('PAYLOAD_INVALID') });
  });

  it('gets a payload that is not read in time as it was stored, and a warning says so', async () => {
    let read = 0;
    const Hung = defineJob<{ at: string }>('hung', {
      version: 2,
      maxRetries: 0,
      upcast: () => {
        read += 1;
        if (read === 1) throw new Error('the rates are away');
        return new Promise(() => undefined);
      },
    });
    @Injectable()
    class HungJobs {
      @Job(Hung)
      run(): void {
        throw new Error('never gets that far');
      }

      @OnJobFailure(Hung, { timeout: '400ms', maxRetries: 0 })
      failed(payload: { at: string }, error: JobFailedError, context: JobContext<JobFailure>): unknown {
        return tell({ payload, error, context });
      }
    }
    const app = await boot([HungJobs]);
    const logs = captureLogs();
    const settling = settled(app, 1);
    await app.get(JobScheduler).enqueueNamed('hung', { at: 'noon' }, { version: 1 });
    const [call] = await toldOf(1);
    expect(call).toMatchObject({ payload: { at: 'noon' }, error: { code: 'JOB_FAILED' } });
    expect(logs.map(({ line }) => line)).toContainEqual(
      expect.stringContaining('as it was stored: its upcast or schema had not ended after 200 milliseconds'),
    );
    await settling;
    expect(await failureJobs()).toHaveLength(1);
  });

  it('is retried by its own policy, then rests in the dead letter, and nothing is told of that', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    act = () => {
      throw new Error('the pager is off');
    };
    const app = await boot([SendJobs, Failures]);
    await app.get(JobScheduler).enqueue(Send, { orderId: '1' });
    await toldOf(2);
    const [failed] = await (async () => {
      for (;;) {
        const next = app.get(EngineEvents, { strict: false }).next('settled');
        const rows = await failureJobs('failed');
        if (rows.length > 0) return rows;
        await next;
      }
    })();
    expect(await app.get(JobScheduler).get(failed!.id)).toMatchObject({ executions: 2, failures: 2 });
    expect(told.map(({ context }) => context.execution)).toEqual([1, 2]);
    const names = await database.query('select distinct name from ratchet.jobs order by name');
    expect(names).toEqual([{ name: 'send' }, { name: 'send#failed' }]);
  });

  it('is called again when a redriven job fails again, and not for one that was canceled', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    const app = await boot([SendJobs, Failures]);
    const scheduler = app.get(JobScheduler);
    const canceled = await scheduler.enqueue(Send, { orderId: 'c' }, { delay: '1h' });
    await scheduler.cancel(canceled.id);
    const { id } = await scheduler.enqueue(Send, { orderId: '1' });
    await toldOf(1);
    await ended(app, id);
    await scheduler.redrive(id);
    const calls = await toldOf(2);
    expect(calls.map(({ error }) => error.jobId)).toEqual([id, id]);
    await settled(app, 2);
    expect(told).toHaveLength(2);
  });

  it('a handler that is deployed later is told of later failures only', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    const before = await boot([SendJobs]);
    const earlier = await before.get(JobScheduler).enqueue(Send, { orderId: 'earlier' });
    await ended(before, earlier.id);
    expect(await database.query(`select 1 from ratchet.job`)).toEqual([]);
    const app = await boot([SendJobs, Failures]);
    await app.get(JobScheduler).enqueue(Send, { orderId: 'later' });
    await settled(app, 1);
    expect(told.map(({ payload }) => payload)).toEqual([{ orderId: 'later' }]);
  });

  it('thousands that fail at once are all told of', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    const app = await boot([SendJobs, Failures], { concurrency: 100 });
    const items = Array.from({ length: 1_000 }, (_, n) => ({ payload: { orderId: String(n) } }));
    await app.get(JobScheduler).enqueueMany(Send, items);
    await toldOf(1_000);
    await settled(app, 1_000);
    expect(new Set(told.map(({ error }) => error.jobId)).size).toBe(1_000);
    expect(told).toHaveLength(1_000);
  });

  it('has an instance per execution on a request-scoped provider', async () => {
    SendJobs.act = () => {
      throw new UnrecoverableError('closed account');
    };
    const instances = new Set<object>();
    @Injectable({ scope: Scope.REQUEST })
    class ScopedFailures {
      @OnJobFailure(Send)
      failed(payload: { orderId: string }, error: JobFailedError, context: JobContext<JobFailure>): unknown {
        instances.add(this);
        return tell({ payload, error, context });
      }
    }
    const app = await boot([SendJobs, ScopedFailures]);
    await app.get(JobScheduler).enqueue(Send, { orderId: '1' });
    await app.get(JobScheduler).enqueue(Send, { orderId: '2' });
    await toldOf(2);
    expect(instances.size).toBe(2);
  });

  it('nobody enqueues its jobs', async () => {
    const app = await boot([SendJobs, Failures]);
    await expect(app.get(JobScheduler).enqueueNamed('send#failed', {})).rejects.toMatchObject({
      code: 'INVALID_ENQUEUE_OPTION',
    });
  });
});
