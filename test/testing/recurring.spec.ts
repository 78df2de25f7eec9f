import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  defineJob,
  Job,
  type JobContext,
  type JobScheduler,
  type PayloadOf,
  Recurring,
  type RecurringContext,
  type RecurringOccurrence,
  RecurringScheduler,
} from 'nestjs-ratchet';
import { type RanJob, RatchetTester, RatchetTestingModule } from 'nestjs-ratchet/testing';
import { type Observable } from 'rxjs';
import { DatabaseKit, type Kit, ListKit } from './app.js';
import { Script } from './jobs.js';

const Send = defineJob<{ list: string }>('list.send', { lane: 'mail' });

@Injectable()
class Schedules {
  constructor(private readonly script: Script) {}

  @Recurring({ every: '1h' }, { id: 'hourly', tags: ['reports'] })
  async hourly(ctx: RecurringContext): Promise<string> {
    this.script.log.push(`hourly after ${String(ctx.previous?.getTime())}, missed ${ctx.missed}`);
    await this.script.act(ctx);
    return ctx.scheduleId;
  }

  @Recurring({ every: '10h' }, { id: 'queued', overlap: 'queue', payload: { kind: 'short' } })
  queued({ kind }: { kind: string }, ctx: RecurringContext): void {
    this.script.log.push(`queued ${kind} ${ctx.payload === undefined ? 'without' : 'with'} payload`);
  }

  @Recurring('0 6 * * *', { id: 'off', enabled: false })
  off(): void {}

  @Job(Send)
  @Recurring({ every: '30h' }, { id: 'letter', payload: { list: 'a' }, overlap: 'allow' })
  send({ list }: PayloadOf<typeof Send>, ctx: JobContext): void {
    this.script.log.push(`send ${list} ${ctx.lane}`);
  }

  @Recurring({ every: '1m' }, { id: 'cache', scope: 'node' })
  cache(ctx: RecurringContext): void {
    this.script.log.push(`cache ${ctx.scheduleId}`);
  }
}

interface World {
  readonly tester: RatchetTester;
  readonly scheduler: JobScheduler;
  readonly recurring: RecurringScheduler;
  readonly script: Script;
}

interface Behaviour {
  readonly name: string;
  readonly shows: (world: World) => Promise<void>;
}

const outcomes = (ran: readonly RanJob[]): string[] => ran.map(({ name, outcome }) => `${name} ${outcome}`);
const decided = (all: readonly RecurringOccurrence[]): string[] => all.map(({ outcome }) => outcome);

const behaviours: readonly Behaviour[] = [
  {
    name: 'annotated schedules are there, with their next occurrence',
    async shows({ recurring, tester }) {
      const now = await tester.now();
      const { schedules } = await recurring.list();
      expect(schedules.map(({ id, origin, owner }) => [id, origin, owner])).toEqual([
        ['cache', 'annotation', 'Schedules.cache'],
        ['hourly', 'annotation', 'Schedules.hourly'],
        ['letter', 'annotation', 'Schedules.send'],
        ['off', 'annotation', 'Schedules.off'],
        ['queued', 'annotation', 'Schedules.queued'],
      ]);
      const hourly = await recurring.get('hourly');
      expect(hourly).toMatchObject({
        expression: '@every 1h',
        paused: false,
        liveJobs: 0,
        tags: ['reports'],
      });
      expect(hourly!.nextOccurrence!.getTime() - now.getTime()).toBeGreaterThan(3_500_000);
      expect((await recurring.get('off'))?.nextOccurrence).toBeUndefined();
    },
  },
  {
    name: 'fires when it is told to, and runs as any job',
    async shows({ tester, script, scheduler, recurring }) {
      const job = await tester.fire('hourly');
      expect(job).toMatchObject({ name: 'hourly#recurring', status: 'pending', tags: ['reports'] });
      expect(script.log).toEqual([]);
      expect(await tester.runNext()).toMatchObject({ id: job.id, outcome: 'succeeded', result: 'hourly' });
      expect(script.log).toEqual(['hourly after undefined, missed 0']);
      expect(await scheduler.get(job.id)).toMatchObject({ status: 'succeeded' });
      expect(await recurring.occurrences('hourly')).toMatchObject([
        { outcome: 'enqueued', triggered: true, jobId: job.id, jobStatus: 'succeeded' },
      ]);
      const first = (await recurring.get('hourly'))?.lastOccurrence;
      await tester.fire('hourly');
      await tester.runNext();
      expect(script.log.at(-1)).toBe(`hourly after ${String(first?.getTime())}, missed 0`);
    },
  },
  {
    name: 'fires with what the context shall say',
    async shows({ tester, script }) {
      const at = new Date('2027-03-28T06:00:00Z');
      let seen: unknown;
      script.act = (ctx) => (seen = ctx.scheduledFor);
      await tester.fire('hourly', { at, previous: new Date(7), missed: 3 });
      await tester.runNext();
      expect(script.log).toEqual(['hourly after 7, missed 3']);
      expect(seen).toEqual(at);
    },
  },
  {
    name: 'fires although a job of it is live',
    async shows({ tester }) {
      await tester.fire('hourly');
      await tester.fire('hourly');
      expect(outcomes(await tester.drain())).toEqual([
        'hourly#recurring succeeded',
        'hourly#recurring succeeded',
      ]);
    },
  },
  {
    name: 'is not retried unless it says so',
    async shows({ tester, script }) {
      script.act = () => {
        throw new Error('no');
      };
      await tester.fire('hourly');
      expect(await tester.runNext()).toMatchObject({ outcome: 'failed' });
    },
  },
  {
    name: 'names an id that there is not',
    async shows({ tester }) {
      await expect(tester.fire('hurly')).rejects.toMatchObject({
        code: 'RECURRING_SCHEDULE_NOT_FOUND',
        message: expect.stringContaining('did you mean "hourly"?'),
      });
    },
  },
  {
    name: 'fires when the clock moves over its occurrences; one that finds a live job is skipped',
    async shows({ tester, recurring, script }) {
      await tester.advance('59m');
      expect(await tester.enqueued()).toEqual([]);
      await tester.advance('2h');
      expect((await tester.enqueued()).map(({ name }) => name)).toEqual(['hourly#recurring']);
      expect(decided(await recurring.occurrences('hourly'))).toEqual(['skipped', 'enqueued']);
      expect(await recurring.get('hourly')).toMatchObject({ liveJobs: 1 });
      expect(outcomes(await tester.drain())).toEqual(['hourly#recurring succeeded']);
      await tester.advance('1h');
      expect(outcomes(await tester.drain())).toEqual(['hourly#recurring succeeded']);
      expect(script.log).toHaveLength(2);
    },
  },
  {
    name: 'drain({ within }) goes from occurrence to occurrence',
    async shows({ tester }) {
      const ran = await tester.drain({ within: '3h' });
      expect(outcomes(ran)).toEqual(Array.from({ length: 3 }, () => 'hourly#recurring succeeded'));
    },
  },
  {
    name: 'overlap queue: what waited runs when the one before has ended',
    async shows({ tester, recurring, script }) {
      await recurring.pause('hourly');
      await tester.advance('21h');
      expect(await recurring.get('queued')).toMatchObject({ liveJobs: 1, waiting: 1 });
      expect(outcomes(await tester.drain())).toEqual([
        'queued#recurring succeeded',
        'queued#recurring succeeded',
      ]);
      expect(script.log).toEqual(['queued short with payload', 'queued short with payload']);
      expect(await recurring.get('queued')).toMatchObject({ liveJobs: 0, waiting: 0 });
    },
  },
  {
    name: 'beside a @Job its jobs are those of the definition',
    async shows({ tester, script }) {
      expect(await tester.fire('letter')).toMatchObject({ name: 'list.send', lane: 'mail' });
      expect(await tester.runNext(Send)).toMatchObject({ outcome: 'succeeded', payload: { list: 'a' } });
      expect(script.log).toEqual(['send a mail']);
    },
  },
  {
    name: 'scope node: runs when it is fired, and makes no jobs by itself',
    async shows({ tester, script, recurring }) {
      await tester.advance('10m');
      expect(await tester.enqueued()).toEqual([]);
      await expect(recurring.trigger('cache')).rejects.toMatchObject({ code: 'RECURRING_SCHEDULE_OF_NODES' });
      await tester.fire('cache');
      expect(outcomes(await tester.drain())).toEqual(['cache#recurring succeeded']);
      expect(script.log).toEqual(['cache cache']);
    },
  },
  {
    name: 'a paused one does not fire, and goes on from its next occurrence when it is resumed',
    async shows({ tester, recurring }) {
      expect(await recurring.pause('hourly')).toBe(true);
      expect(await recurring.pause('hourly')).toBe(false);
      await tester.advance('5h');
      expect(await tester.enqueued()).toEqual([]);
      expect(await recurring.get('hourly')).toMatchObject({ paused: true, nextOccurrence: undefined });
      expect(await recurring.resume('hourly')).toBe(true);
      expect(await recurring.resume('hourly')).toBe(false);
      await tester.advance('1h');
      expect(outcomes(await tester.drain())).toEqual(['hourly#recurring succeeded']);
      expect(decided(await recurring.occurrences('hourly'))).toEqual(['enqueued']);
    },
  },
  {
    name: 'a schedule is made, changed, triggered and ended in code',
    async shows({ tester, recurring, script }) {
      await recurring.pause('hourly');
      const made = await recurring.create({
        id: 'tenant:7',
        expression: { every: '2h' },
        job: Send,
        payload: { list: 'seven' },
        tags: ['tenants'],
      });
      expect(made).toMatchObject({ origin: 'api', job: { name: 'list.send', lane: 'mail', maxRetries: 0 } });
      await tester.advance('2h');
      expect(outcomes(await tester.drain())).toEqual(['list.send succeeded']);
      await recurring.update('tenant:7', { every: '3h', payload: { list: 'eight' } });
      await tester.advance('2h');
      expect(await tester.enqueued()).toEqual([]);
      await tester.advance('1h');
      expect(outcomes(await tester.drain())).toEqual(['list.send succeeded']);
      const { outcome, job } = await recurring.trigger('tenant:7', { payload: { list: 'nine' } });
      expect(outcome).toBe('enqueued');
      expect((await recurring.trigger('tenant:7')).outcome).toBe('skipped');
      expect((await tester.runNext()).id).toBe(job?.id);
      expect(script.log).toEqual(['send seven mail', 'send eight mail', 'send nine mail']);
      expect((await recurring.trigger('tenant:7')).outcome).toBe('enqueued');
      expect(await recurring.delete('tenant:7')).toEqual({ canceledJobs: 1 });
      expect(await recurring.get('tenant:7')).toBeUndefined();
      expect(await tester.drain()).toEqual([]);
    },
  },
  {
    name: 'a wall time that does not exist runs once, at the first instant after the gap',
    async shows({ tester, recurring }) {
      for (const id of ['hourly', 'queued', 'letter']) await recurring.pause(id);
      await tester.travelTo(new Date('2037-03-07T12:00:00Z'));
      const timeZone = 'America/New_York';
      await recurring.create({
        id: 'night',
        expression: '30 2 * * *',
        timeZone,
        job: Send,
        payload: { list: 'a' },
      });
      await tester.drain({ within: '3d' });
      const all = await recurring.occurrences('night');
      expect(all.map(({ scheduledFor }) => scheduledFor.toISOString())).toEqual([
        '2037-03-10T06:30:00.000Z',
        '2037-03-09T06:30:00.000Z',
        '2037-03-08T07:00:00.000Z',
      ]);
      expect(new Set(decided(all))).toEqual(new Set(['enqueued']));
    },
  },
  {
    name: 'one journey over hundreds of occurrences misses none',
    async shows({ tester, recurring }) {
      await recurring.pause('hourly');
      await recurring.create({ id: 'minutely', every: '1m', job: Send, payload: { list: 'a' } });
      await tester.advance('6h');
      const all: RecurringOccurrence[] = [];
      for (let before: Date | undefined; ;) {
        const page = await recurring.occurrences('minutely', { before, limit: 100 });
        all.push(...page);
        before = page.at(-1)?.scheduledFor;
        if (page.length < 100) break;
      }
      expect(all).toHaveLength(360);
      expect(decided(all).filter((outcome) => outcome !== 'skipped')).toEqual(['enqueued']);
    },
  },
];

@Injectable()
class Night {
  @Recurring('30 2 * * *', { id: 'night', timeZone: 'America/New_York' })
  run(ctx: RecurringContext): Date {
    return ctx.scheduledFor;
  }
}

describe('a @Recurring method', () => {
  const kit = new ListKit();
  afterEach(() => kit.close());

  it('has the enhancers of the app before it, as any handler', async () => {
    const calls: string[] = [];
    @Injectable()
    class Audit implements NestInterceptor {
      intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
        const [ctx] = context.getArgs<[RecurringContext]>();
        calls.push(`${context.getType<string>()} ${context.getHandler().name} ${ctx.scheduleId}`);
        return next.handle();
      }
    }
    @Injectable()
    class Guarded {
      @UseInterceptors(Audit)
      @Recurring('0 6 * * *', { id: 'guarded' })
      run(ctx: RecurringContext): string {
        return ctx.scheduleId;
      }
    }
    const { tester } = await kit.boot([Audit, Guarded], { enhancers: { interceptors: true } });
    await tester.fire('guarded');
    expect(await tester.runNext()).toMatchObject({ outcome: 'succeeded', result: 'guarded' });
    expect(calls).toEqual(['ratchet run guarded']);
  });

  it('is found before init, where a test only compiles the module', async () => {
    const module = await Test.createTestingModule({
      imports: [RatchetTestingModule.forRoot({ startAt: new Date('2026-03-08T05:00:00Z') })],
      providers: [Night],
    }).compile();
    const tester = RatchetTester.of(module);
    expect((await module.get(RecurringScheduler).get('night'))?.nextOccurrence).toEqual(
      new Date('2026-03-08T07:00:00Z'),
    );
    await tester.advance('1d');
    expect((await tester.runNext()).result).toBe('2026-03-08T07:00:00.000Z');
    await expect(tester.runNext()).rejects.toMatchObject({ code: 'TESTING_NOTHING_DUE' });
    await module.close();
  });
});

describe.each<[string, Kit]>([
  ['a list', new ListKit()],
  ['a database', new DatabaseKit()],
])('recurring schedules under test on %s', (_, kit) => {
  beforeAll(() => kit.open());
  afterEach(() => kit.clear());
  afterAll(() => kit.close());

  it.each(behaviours)('$name', async ({ shows }) => {
    const { app, tester, scheduler } = await kit.boot([Schedules, Script]);
    const world = { tester, scheduler, recurring: app.get(RecurringScheduler), script: app.get(Script) };
    await shows(world);
  });
});
