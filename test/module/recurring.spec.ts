import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, type ModuleMetadata } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import {
  defineJob,
  Job,
  JobContext,
  JobScheduler,
  type PayloadOf,
  RatchetEvents,
  type RatchetEventMap,
  RatchetModule,
  type RatchetSettings,
  Recurring,
  RecurringContext,
  RecurringScheduler,
  type TransactionalJobContext,
} from 'nestjs-ratchet';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps, ended, typeOrm } from './app.js';

const Send = defineJob<{ list: string }, string>('list.send');

interface Seen {
  readonly scheduleId: string;
  readonly scheduledFor: Date;
  readonly previous: Date | undefined;
  readonly missed: number;
  readonly at: number;
}
const seen: Seen[] = [];
let tellSeen: () => void = () => {};

@Injectable()
class ReportJobs {
  @Recurring({ every: '1s' }, { id: 'pulse', timeZone: 'Europe/Lisbon', tags: ['pulses'] })
  pulse(ctx: RecurringContext): string {
    const { scheduleId, scheduledFor, previous, missed } = ctx;
    seen.push({ scheduleId, scheduledFor, previous, missed, at: Date.now() });
    tellSeen();
    return ctx.recurrence?.scheduleId ?? '';
  }

  @Recurring('0 6 * * *', { id: 'digest', name: 'Daily digest' })
  digest(): void {}

  @Job(Send)
  @Recurring('0 6 1 1 *', { id: 'letter', payload: { list: 'a' } })
  send({ list }: PayloadOf<typeof Send>, ctx: JobContext): string {
    return `${list} ${String(ctx.recurrence?.scheduleId)}`;
  }
}

const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await apps.closeAll();
  seen.length = 0;
  await database.query('truncate ratchet.schedule, ratchet.occurrence, ratchet.job, ratchet.node');
});
afterAll(() => database.drop());

function boot(settings: RatchetSettings = {}, metadata: ModuleMetadata = { providers: [ReportJobs] }) {
  const ratchet = RatchetModule.forRoot({ connection: database.url, ...settings });
  return apps.boot({ ...metadata, imports: [ratchet, ...(metadata.imports ?? [])] });
}

async function seenSoFar(count: number): Promise<void> {
  while (seen.length < count) await new Promise<void>((resolve) => (tellSeen = resolve));
}

function next<Name extends keyof RatchetEventMap>(
  app: TestingModule,
  name: Name,
): Promise<RatchetEventMap[Name]> {
  return new Promise((resolve) => {
    const deaf = app.get(RatchetEvents).on(name, (event) => {
      deaf();
      resolve(event);
    });
  });
}

describe('an app with @Recurring', () => {
  it('runs each occurrence once, on time, and tells the method which it is', async () => {
    const app = await boot();
    await seenSoFar(3);
    const recurring = app.get(RecurringScheduler);
    const [first, second, third] = seen;
    expect(first).toMatchObject({ scheduleId: 'pulse', previous: undefined, missed: 0 });
    expect(second).toMatchObject({ previous: first!.scheduledFor, missed: 0 });
    expect(third).toMatchObject({ previous: second!.scheduledFor, missed: 0 });
    expect(second!.scheduledFor.getTime() - first!.scheduledFor.getTime()).toBe(1_000);
    const [newest] = await recurring.occurrences('pulse', { limit: 1 });
    const job = await ended(app, newest!.jobId!);
    expect(job).toMatchObject({
      name: 'pulse#recurring',
      status: 'succeeded',
      result: 'pulse',
      maxRetries: undefined,
      tags: ['pulses'],
    });
    const jobs = await app.get(JobScheduler).find({ tag: 'pulses' });
    expect(jobs.jobs.length).toBeGreaterThanOrEqual(3);
  });

  it('lists what is annotated, with next and last occurrence', async () => {
    const app = await boot();
    const recurring = app.get(RecurringScheduler);
    const { schedules, after } = await recurring.list();
    expect(after).toBeUndefined();
    expect(schedules.map(({ id, owner, handlerMissing }) => [id, owner, handlerMissing])).toEqual([
      ['digest', 'ReportJobs.digest', false],
      ['letter', 'ReportJobs.send', false],
      ['pulse', 'ReportJobs.pulse', false],
    ]);
    expect(schedules[0]).toMatchObject({
      name: 'Daily digest',
      expression: '0 6 * * *',
      timeZone: 'UTC',
      origin: 'annotation',
      misfire: 'once',
      overlap: 'skip',
      lastOccurrence: undefined,
      job: { name: 'digest#recurring', payload: null, priority: 'normal' },
    });
    const [expected] = await recurring.preview('0 6 * * *', { count: 1 });
    expect(schedules[0]?.nextOccurrence).toEqual(expected);
    expect(schedules[2]?.timeZone).toBe('Europe/Lisbon');
    await seenSoFar(1);
    expect((await recurring.get('pulse'))?.lastOccurrence).toEqual(seen[0]?.scheduledFor);
  });

  it("has the module's time zone", async () => {
    const app = await boot({ recurring: { timeZone: 'America/New_York' } });
    expect((await app.get(RecurringScheduler).get('digest'))?.timeZone).toBe('America/New_York');
  });

  it('triggers a method with a @Job, whose result can be awaited', async () => {
    const app = await boot();
    const fired = next(app, 'schedule.fired');
    const { job } = await app.get(RecurringScheduler).trigger('letter');
    expect(await job?.result({ timeout: '10s' })).toBe('a letter');
    expect(await fired).toMatchObject({ scheduleId: 'letter', jobId: job?.id });
    const other = await app.get(RecurringScheduler).trigger('letter', { payload: { list: 'b' } });
    expect(await other.job?.result({ timeout: '10s' })).toBe('b letter');
  });

  it('runs what was made in code, and in another process, at once', async () => {
    await boot();
    const maker = await boot({ worker: false }, {});
    const recurring = maker.get(RecurringScheduler);
    const made = await recurring.create({ id: 'code', every: '1s', job: Send, payload: { list: 'x' } });
    expect(made).toMatchObject({ origin: 'api', handlerMissing: false });
    const { job } = await recurring.trigger('code');
    expect(await job?.result({ timeout: '10s' })).toBe('x code');
    await seenSoFar(seen.length + 2);
    expect((await recurring.occurrences('code')).length).toBeGreaterThanOrEqual(2);
    await recurring.delete('code');
  });

  it('refuses at boot what is wrong, by class and method', async () => {
    @Injectable()
    class Wrong {
      @Job(Send)
      @Recurring('0 6 * * *', { id: 'wrong', payload: { list: 1n as never } })
      run(payload: { list: string }): string {
        return payload.list;
      }
    }
    await expect(boot({}, { providers: [Wrong] })).rejects.toMatchObject({
      code: 'RECURRING_BAD_PAYLOAD',
      message: expect.stringContaining('Wrong.run'),
    });
  });

  it('may be transactional by the @Job beside it', async () => {
    @Injectable()
    class Closing {
      @Job(Send, { transactional: true })
      @Recurring('0 6 * * *', { id: 'closing', payload: { list: 'z' } })
      async run({ list }: { list: string }, ctx: TransactionalJobContext): Promise<string> {
        const rows: unknown = await ctx.manager.query('select 1 as one');
        return `${list} ${JSON.stringify(rows)} ${String(ctx.recurrence?.scheduleId)}`;
      }
    }
    const ratchet = RatchetModule.forRoot({ dataSource: 'default' });
    const app = await apps.boot({ imports: [typeOrm(database), ratchet], providers: [Closing] });
    const { job } = await app.get(RecurringScheduler).trigger('closing');
    expect(await job?.result({ timeout: '10s' })).toBe('z [{"one":1}] closing');
  });
});
