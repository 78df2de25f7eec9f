import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import {
  defineJob,
  Job,
  type PayloadOf,
  RatchetEvents,
  Recurring,
  type RecurringScheduleInfo,
  RecurringScheduler,
} from 'nestjs-ratchet';
import { type RatchetTester } from 'nestjs-ratchet/testing';
import { z } from 'zod';
import { DatabaseKit, type Kit, ListKit } from '../../testing/app.js';

const Send = defineJob<{ list: string }>('list.send', { lane: 'mail', priority: 'high' });
const Stubborn = defineJob('stubborn', { maxRetries: 7, timeout: '1m' });
const Sized = defineJob('sized', { schema: z.object({ width: z.string().transform(Number) }) });
const Ping = defineJob('ping');

@Injectable()
class Annotated {
  @Recurring('0 6 * * *', { id: 'daily', tags: ['reports'] })
  daily(): void {}

  @Job(Sized)
  resize(payload: PayloadOf<typeof Sized>): number {
    return payload.width;
  }
}

const HOUR = 3_600_000;
const refusal = (code: string, message: string | RegExp) => ({
  code,
  message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
});
const ids = (schedules: readonly RecurringScheduleInfo[]): string[] => schedules.map(({ id }) => id);

describe.each<[string, Kit]>([
  ['a list', new ListKit()],
  ['a database', new DatabaseKit()],
])('RecurringScheduler on %s', (_, kit) => {
  let app: TestingModule;
  let tester: RatchetTester;
  let recurring: RecurringScheduler;

  beforeAll(() => kit.open());
  afterEach(() => kit.clear());
  afterAll(() => kit.close());
  async function boot(): Promise<void> {
    ({ app, tester } = await kit.boot([Annotated], { recurring: { timeZone: 'Europe/Lisbon' } }));
    recurring = app.get(RecurringScheduler);
  }

  describe('create', () => {
    it('fills in the defaults', async () => {
      await boot();
      const now = await tester.now();
      const made = await recurring.create({ id: 'a', every: '1h', job: Send, payload: { list: 'x' } });
      expect(made).toEqual({
        id: 'a',
        name: 'a',
        expression: '@every 1h',
        timeZone: 'Europe/Lisbon',
        origin: 'api',
        owner: undefined,
        businessKey: undefined,
        misfire: 'once',
        overlap: 'skip',
        jitterMs: 0,
        scope: 'cluster',
        enabled: true,
        paused: false,
        fault: undefined,
        removedAt: undefined,
        nextOccurrence: expect.any(Date),
        lastOccurrence: undefined,
        liveJobs: 0,
        waiting: 0,
        handlerMissing: true,
        job: {
          name: 'list.send',
          version: 1,
          lane: 'mail',
          priority: 'high',
          payload: { list: 'x' },
          maxRetries: 0,
          backoff: undefined,
          timeoutMs: undefined,
        },
        tags: [],
        createdAt: expect.any(Date),
        updatedAt: expect.any(Date),
      });
      const waitMs = made.nextOccurrence!.getTime() - now.getTime();
      expect(waitMs).toBeGreaterThanOrEqual(HOUR);
      expect(waitMs).toBeLessThan(HOUR + 10_000);
      expect(await recurring.get('a')).toEqual(made);
    });

    it('takes what is said', async () => {
      await boot();
      const made = await recurring.create({
        id: 'a',
        name: 'A',
        expression: '30 7 * * 1-5',
        timeZone: 'America/New_York',
        job: Sized,
        payload: { width: '3' },
        enabled: false,
        priority: 'low',
        lane: 'own',
        maxRetries: 2,
        backoff: { type: 'fixed', delay: '5s', jitter: 0 },
        timeout: '2m',
        tags: ['t', 't'],
        misfire: { catchUp: 3 },
        overlap: 'queue',
        jitter: '10s',
        businessKey: 'key',
      });
      expect(made).toMatchObject({
        name: 'A',
        expression: '30 7 * * 1-5',
        timeZone: 'America/New_York',
        enabled: false,
        nextOccurrence: undefined,
        misfire: { catchUp: 3 },
        overlap: 'queue',
        jitterMs: 10_000,
        businessKey: 'key',
        tags: ['t'],
        handlerMissing: kit instanceof DatabaseKit,
        job: {
          payload: { width: '3' },
          priority: 'low',
          lane: 'own',
          maxRetries: 2,
          backoff: { type: 'fixed', delayMs: 5_000 },
          timeoutMs: 120_000,
        },
      });
    });

    it('leaves retries to a definition that says them, and needs no payload where there is none', async () => {
      await boot();
      const { job } = await recurring.create({ id: 'a', expression: '@daily', job: Stubborn });
      expect(job).toMatchObject({ maxRetries: undefined, timeoutMs: undefined, payload: null });
    });

    it('checks the payload as enqueue does', async () => {
      await boot();
      const create = (payload: unknown) =>
        recurring.create({ id: 'a', every: '1h', job: Sized, payload: payload as never });
      await expect(create({ width: 3 })).rejects.toMatchObject(refusal('PAYLOAD_INVALID', 'payload.width'));
      await expect(
        recurring.create({ id: 'a', every: '1h', job: Send, payload: { list: new Map() as never } }),
      ).rejects.toMatchObject(refusal('PAYLOAD_NOT_JSON', 'payload.list'));
      expect(ids((await recurring.list()).schedules)).toEqual(['daily']);
    });

    it('refuses an id that is there; keeps it, or replaces what it says and not its rhythm', async () => {
      await boot();
      const schedule = { id: 'a', every: '1h', job: Send } as const;
      const first = await recurring.create({ ...schedule, payload: { list: 'x' } });
      const create = (ifExists: 'reject' | 'keep' | 'replace', every: '1h' | '2h' = '1h') =>
        recurring.create({ ...schedule, every, payload: { list: 'y' }, ifExists });
      await expect(create('reject')).rejects.toMatchObject(
        refusal('RECURRING_SCHEDULE_EXISTS', "set ifExists to 'keep' or 'replace'"),
      );
      await tester.advance('30m');
      expect((await create('keep')).job.payload).toEqual({ list: 'x' });
      const replaced = await create('replace');
      expect(replaced).toMatchObject({
        job: { payload: { list: 'y' } },
        nextOccurrence: first.nextOccurrence,
        createdAt: first.createdAt,
      });
      const slower = await create('replace', '2h');
      expect(slower.nextOccurrence!.getTime() - first.nextOccurrence!.getTime()).toBeGreaterThan(HOUR);
    });

    it('never takes over an annotation', async () => {
      await boot();
      const creating = recurring.create({ id: 'daily', every: '1h', job: Ping, ifExists: 'replace' });
      await expect(creating).rejects.toMatchObject(
        refusal('RECURRING_SCHEDULE_EXISTS', 'by the @Recurring of Annotated.daily'),
      );
    });

    it('gives a business key to one schedule', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping, businessKey: 'key' });
      await expect(
        recurring.create({ id: 'b', every: '1h', job: Ping, businessKey: 'key' }),
      ).rejects.toMatchObject({
        ...refusal(
          'RECURRING_BUSINESS_KEY_HELD',
          'create("b"): businessKey: "key" is held by the schedule "a"',
        ),
        holder: 'a',
      });
      await recurring.update('a', { businessKey: null });
      await recurring.create({ id: 'b', every: '1h', job: Ping, businessKey: 'key' });
    });
  });

  describe('update', () => {
    it('changes what is said, and leaves the rest and the rhythm', async () => {
      await boot();
      const first = await recurring.create({
        id: 'a',
        every: '1h',
        job: Send,
        payload: { list: 'x' },
        timeout: '1m',
        backoff: { type: 'none' },
        businessKey: 'key',
      });
      await tester.advance('30m');
      const changed = await recurring.update('a', { overlap: 'queue', name: 'A', lane: 'own', tags: ['t'] });
      expect(changed).toMatchObject({
        overlap: 'queue',
        name: 'A',
        tags: ['t'],
        misfire: 'once',
        businessKey: 'key',
        job: { lane: 'own', payload: { list: 'x' }, timeoutMs: 60_000, backoff: { type: 'none' } },
        nextOccurrence: first.nextOccurrence,
      });
      const cleared = await recurring.update('a', { timeout: null, backoff: null, businessKey: null });
      expect(cleared).toMatchObject({
        businessKey: undefined,
        job: { timeoutMs: undefined, backoff: undefined },
      });
    });

    it('counts new times from now on', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping });
      await tester.advance('50m');
      const now = await tester.now();
      const { nextOccurrence } = await recurring.update('a', { expression: { every: '2h' } });
      expect(nextOccurrence!.getTime() - now.getTime()).toBeGreaterThanOrEqual(2 * HOUR);
      const { timeZone } = await recurring.update('a', { expression: '@daily', timeZone: 'UTC' });
      expect(timeZone).toBe('UTC');
      const off = await recurring.update('a', { enabled: false });
      expect(off).toMatchObject({ enabled: false, nextOccurrence: undefined, expression: '@daily' });
      expect((await recurring.update('a', { enabled: true })).nextOccurrence).toBeInstanceOf(Date);
    });

    it('gives it another payload, or another job with its own lane and retries', async () => {
      await boot();
      await recurring.create({
        id: 'a',
        every: '1h',
        job: Send,
        payload: { list: 'x' },
        lane: 'own',
        tags: ['t'],
      });
      const typed = await recurring.update('a', { job: Send, payload: { list: 'y' } });
      expect(typed.job).toMatchObject({ lane: 'own', payload: { list: 'y' } });
      expect((await recurring.update('a', { payload: { list: 'z' } })).job.payload).toEqual({ list: 'z' });
      const other = await recurring.update('a', { job: Stubborn });
      expect(other).toMatchObject({
        tags: ['t'],
        job: { name: 'stubborn', lane: 'default', priority: 'normal', maxRetries: undefined, payload: null },
      });
    });

    it("asks the definition of this process's handler of a payload", async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Sized, payload: { width: '3' } });
      await expect(recurring.update('a', { payload: { width: 4 } })).rejects.toMatchObject({
        code: 'PAYLOAD_INVALID',
      });
      await expect(recurring.trigger('a', { payload: { width: 4 } })).rejects.toMatchObject({
        code: 'PAYLOAD_INVALID',
      });
    });

    it('is not for annotations, nor delete: both say what to do', async () => {
      await boot();
      await expect(recurring.update('daily', { overlap: 'allow' })).rejects.toMatchObject(
        refusal(
          'RECURRING_SCHEDULE_ANNOTATED',
          /the @Recurring of Annotated\.daily; change it there and deploy/,
        ),
      );
      await expect(recurring.delete('daily')).rejects.toMatchObject(
        refusal('RECURRING_SCHEDULE_ANNOTATED', /remove it there and deploy; until then pause\(\)/),
      );
    });
  });

  describe('pause, resume and trigger', () => {
    it('work on annotations', async () => {
      await boot();
      expect(await recurring.pause('daily')).toBe(true);
      expect(await recurring.get('daily')).toMatchObject({ paused: true, nextOccurrence: undefined });
      const { outcome, job } = await recurring.trigger('daily');
      expect(outcome).toBe('enqueued');
      expect(job?.created).toBe(true);
      expect((await tester.runNext()).id).toBe(job?.id);
      expect(await recurring.resume('daily')).toBe(true);
      expect((await recurring.get('daily'))?.nextOccurrence).toBeInstanceOf(Date);
    });

    it('leave a line each, as every change does', async () => {
      await boot();
      const lines: string[] = [];
      const say =
        (level: string) =>
        (line: unknown, context: unknown): void => {
          if (context === 'RatchetRecurring') lines.push(`${level} ${String(line)}`);
        };
      const other = (): void => undefined;
      Logger.overrideLogger({ log: say('log'), debug: say('debug'), warn: other, error: other });
      try {
        await recurring.create({ id: 'a', every: '1h', job: Ping });
        await recurring.create({ id: 'a', every: '1h', job: Ping, ifExists: 'keep' });
        await recurring.update('a', { every: '2h' });
        await recurring.update('a', { every: '2h' });
        await recurring.pause('a');
        await recurring.pause('a');
        await recurring.resume('a');
        await recurring.trigger('a');
        await recurring.delete('a');
      } finally {
        Logger.overrideLogger(false);
      }
      expect(lines).toEqual([
        'log the recurring schedule "a" was created',
        'log the recurring schedule "a" was changed',
        'log the recurring schedule "a" was paused',
        'log the recurring schedule "a" was resumed',
        'debug the recurring schedule "a" was triggered: enqueued',
        'log the recurring schedule "a" was deleted, with 1 job canceled',
      ]);
    });

    it('refuse a jitter that an update makes as long as the interval', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping, jitter: '30m' });
      const refused = refusal(
        'INVALID_RECURRING_OPTION',
        'jitter: 1800000 is wrong; allowed: a duration below',
      );
      await expect(recurring.update('a', { every: '30m' })).rejects.toMatchObject(refused);
      await expect(recurring.update('a', { jitter: '1h' })).rejects.toMatchObject({ option: 'jitter' });
      expect(await recurring.update('a', { jitter: '59m' })).toMatchObject({ jitterMs: 3_540_000 });
    });

    it('stay paused when they are changed', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping });
      await recurring.pause('a');
      expect(await recurring.update('a', { every: '2h' })).toMatchObject({
        paused: true,
        nextOccurrence: undefined,
      });
      expect(await recurring.resume('a')).toBe(true);
    });

    it('leave a disabled one disabled', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping, enabled: false });
      await recurring.pause('a');
      await recurring.resume('a');
      expect(await recurring.get('a')).toMatchObject({
        paused: false,
        enabled: false,
        nextOccurrence: undefined,
      });
    });

    it('follow the overlap of the schedule, or of the call', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping });
      const skipped: unknown[] = [];
      app.get(RatchetEvents).on('schedule.skipped', (event) => skipped.push(event));
      const outcomes: string[] = [];
      for (const overlap of [undefined, undefined, 'skip', 'queue', 'allow'] as const) {
        outcomes.push((await recurring.trigger('a', { overlap })).outcome);
      }
      expect(outcomes).toEqual(['enqueued', 'skipped', 'skipped', 'waiting', 'enqueued']);
      expect(await recurring.get('a')).toMatchObject({ liveJobs: 2, waiting: 1 });
      expect(skipped).toHaveLength(2);
      expect(skipped[0]).toMatchObject({ scheduleId: 'a', reason: 'overlap' });
      expect((await recurring.occurrences('a')).map(({ outcome }) => outcome).sort()).toEqual([
        'enqueued',
        'enqueued',
        'skipped',
        'skipped',
        'waiting',
      ]);
    });

    it('give a payload only to what takes one', async () => {
      await boot();
      await expect(recurring.trigger('daily', { payload: { x: 1 } })).rejects.toMatchObject(
        refusal('INVALID_RECURRING_OPTION', 'Annotated.daily takes the context alone'),
      );
    });
  });

  describe('delete', () => {
    it('cancels the jobs that wait, and says so', async () => {
      await boot();
      await recurring.create({ id: 'a', every: '1h', job: Ping, overlap: 'allow' });
      const jobs = [await recurring.trigger('a'), await recurring.trigger('a')].map(({ job }) => job!.id);
      const canceled: string[] = [];
      app.get(RatchetEvents).on('job.canceled', ({ jobId }) => canceled.push(jobId));
      expect(await recurring.delete('a')).toEqual({ canceledJobs: 2 });
      expect(canceled.sort()).toEqual(jobs.sort());
      expect(await recurring.get('a')).toBeUndefined();
      await expect(recurring.delete('a')).rejects.toMatchObject({ code: 'RECURRING_SCHEDULE_NOT_FOUND' });
    });

    it('goes by business key and by tag, and spares annotations', async () => {
      await boot();
      for (const id of ['a', 'b', 'c']) {
        await recurring.create({ id, every: '1h', job: Ping, businessKey: `key:${id}`, tags: ['reports'] });
      }
      expect(await recurring.cancelRecurringJobByBusinessKey('key:a')).toBe(true);
      expect(await recurring.cancelRecurringJobByBusinessKey('key:a')).toBe(false);
      expect(await recurring.cancelRecurringJobsByTag('reports')).toBe(2);
      expect(await recurring.cancelRecurringJobsByTag('reports')).toBe(0);
      expect(ids((await recurring.list()).schedules)).toEqual(['daily']);
    });
  });

  describe('list', () => {
    it('turns pages, and filters', async () => {
      await boot();
      for (const id of ['a', 'b', 'c', 'd'])
        await recurring.create({ id, every: '1h', job: Ping, tags: id < 'c' ? ['early'] : [] });
      const first = await recurring.list({ limit: 3 });
      expect([ids(first.schedules), first.after]).toEqual([['a', 'b', 'c'], 'c']);
      const second = await recurring.list({ limit: 3, after: first.after });
      expect([ids(second.schedules), second.after]).toEqual([['d', 'daily'], undefined]);
      expect(ids((await recurring.list({ tag: 'early' })).schedules)).toEqual(['a', 'b']);
      expect(ids((await recurring.list({ origin: 'annotation' })).schedules)).toEqual(['daily']);
      const all: string[] = [];
      for await (const { id } of recurring.listAll({ origin: 'api' })) all.push(id);
      expect(all).toEqual(['a', 'b', 'c', 'd']);
    });
  });

  it('names the nearest id of one that there is not', async () => {
    await boot();
    const near = refusal('RECURRING_SCHEDULE_NOT_FOUND', 'did you mean "daily"?');
    await expect(recurring.pause('dayly')).rejects.toMatchObject(near);
    await expect(recurring.resume('dayly')).rejects.toMatchObject(near);
    await expect(recurring.trigger('dayly')).rejects.toMatchObject(near);
    await expect(recurring.update('dayly', {})).rejects.toMatchObject(near);
    await expect(recurring.delete('dayly')).rejects.toMatchObject(near);
    await expect(recurring.occurrences('dayly')).rejects.toMatchObject(near);
    expect(await recurring.occurrences('daily')).toEqual([]);
    await expect(recurring.pause('x')).rejects.toMatchObject(
      refusal('RECURRING_SCHEDULE_NOT_FOUND', 'it was never created, was deleted'),
    );
  });

  it('previews an expression, from now or from a date', async () => {
    await boot();
    const from = new Date('2026-03-07T12:00:00Z');
    const dates = await recurring.preview('30 2 * * *', { timeZone: 'America/New_York', from, count: 2 });
    expect(dates.map((date) => date.toISOString())).toEqual([
      '2026-03-08T07:00:00.000Z',
      '2026-03-09T06:30:00.000Z',
    ]);
    const hashed = async (id: string) => (await recurring.preview('H H * * *', { id, from, count: 1 }))[0];
    expect(await hashed('a')).toEqual(await hashed('a'));
    expect(await hashed('a')).not.toEqual(await hashed('b'));
    const next = await recurring.preview({ every: '1h' });
    expect(next).toHaveLength(10);
    expect(next[0]!.getTime()).toBeGreaterThan((await tester.now()).getTime());
    expect((await recurring.preview('0 6 * * *', { from, count: 1 }))[0]).toEqual(
      new Date('2026-03-08T06:00:00Z'),
    );
  });
});
