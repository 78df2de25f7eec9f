import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type JobInfo, type JobScheduler, UnrecoverableError } from 'nestjs-ratchet';
import { type RanJob, type RatchetTester } from 'nestjs-ratchet/testing';
import { DatabaseKit, type Kit, ListKit, type Settings } from './app.js';
import { Family, Forgotten, Greet, Jobs, Mail, Scoped, ScopedJobs, Script, Slow, Urgent } from './jobs.js';

interface World {
  readonly tester: RatchetTester;
  readonly scheduler: JobScheduler;
  readonly script: Script;
}

interface Behaviour {
  readonly name: string;
  readonly settings?: Settings;
  readonly shows: (world: World) => Promise<void>;
}

const outcomes = (ran: readonly RanJob[]): string[] => ran.map(({ name, outcome }) => `${name} ${outcome}`);

/** What does not depend on where it happened. */
function comparable(job: JobInfo | undefined): unknown {
  if (!job) return undefined;
  return {
    ...job,
    id: 'any',
    node: 'any',
    scheduledAt: 'any',
    createdAt: 'any',
    begunAt: job.begunAt && 'any',
    endedAt: job.endedAt && 'any',
  };
}

const behaviours: readonly Behaviour[] = [
  {
    name: 'nothing runs until the tester says so; then it is recorded',
    async shows({ tester, scheduler, script }) {
      const { id } = await scheduler.enqueue(
        Greet,
        { name: 'Ana' },
        { tags: ['a', 'b'], metadata: { m: [1] } },
      );
      expect(await tester.enqueued(Greet)).toMatchObject([
        { id, status: 'pending', payload: { name: 'Ana' }, tags: ['a', 'b'], metadata: { m: [1] } },
      ]);
      expect(script.log).toEqual([]);
      expect(await tester.runNext()).toEqual({
        id,
        name: 'greet',
        lane: 'default',
        payload: { name: 'Ana' },
        execution: 1,
        outcome: 'succeeded',
        result: { text: 'hello Ana' },
        error: undefined,
        againInMs: undefined,
      });
      expect(await tester.enqueued()).toEqual([]);
      expect(comparable(await scheduler.get(id))).toEqual({
        id: 'any',
        node: 'any',
        name: 'greet',
        version: 1,
        status: 'succeeded',
        lane: 'default',
        priority: 'normal',
        payload: { name: 'Ana' },
        result: { text: 'hello Ana' },
        error: undefined,
        progress: undefined,
        scheduledAt: 'any',
        createdAt: 'any',
        begunAt: 'any',
        endedAt: 'any',
        executions: 1,
        failures: 0,
        crashes: 0,
        claimSeq: '1',
        maxRetries: undefined,
        businessKey: undefined,
        tags: ['a', 'b'],
        metadata: { m: [1] },
        parentId: undefined,
        pauseRequested: false,
      });
    },
  },
  {
    name: 'a delayed job is reached by advance, not before',
    async shows({ tester, scheduler, script }) {
      await scheduler.enqueue(Greet, { name: 'Ana' }, { delay: '1h' });
      await tester.advance('59m');
      expect(await tester.drain()).toEqual([]);
      await tester.advance('1m');
      expect(outcomes(await tester.drain())).toEqual(['greet succeeded']);
      expect(script.log).toEqual(['greet Ana #1']);
    },
  },
  {
    name: 'runAt is reached by travelTo',
    async shows({ tester, scheduler }) {
      const runAt = new Date((await tester.now()).getTime() + 40 * 86_400_000);
      const { id } = await scheduler.enqueue(Greet, { name: 'Ana' }, { runAt });
      expect((await scheduler.get(id))?.scheduledAt).toEqual(runAt);
      await expect(tester.runNext()).rejects.toThrow(/greet \(.*\) is due in (40d|39d 23h)/);
      await tester.travelTo(runAt);
      expect((await tester.runNext()).outcome).toBe('succeeded');
      expect((await tester.now()).getTime()).toBeGreaterThanOrEqual(runAt.getTime());
    },
  },
  {
    name: 'a retry is driven to the dead letter, and redriven from there',
    async shows({ tester, scheduler, script }) {
      const boom = new TypeError('no such customer');
      script.act = () => {
        throw boom;
      };
      const { id } = await scheduler.enqueue(Greet, { name: 'Ana' });
      const first = await tester.runNext();
      expect(first).toMatchObject({ outcome: 'retried', againInMs: 10_000, execution: 1 });
      expect(first.error).toBe(boom);
      expect(await scheduler.get(id)).toMatchObject({ status: 'pending', failures: 1, begunAt: undefined });
      await tester.advance('9s');
      expect(await tester.drain()).toEqual([]);
      expect(outcomes(await tester.drain({ within: '1h' }))).toEqual(['greet retried', 'greet failed']);
      const dead = await scheduler.get(id);
      expect(dead).toMatchObject({ status: 'failed', executions: 3, failures: 3 });
      expect(dead?.error).toContain('TypeError: no such customer');

      await scheduler.redrive(id);
      expect(await scheduler.get(id)).toMatchObject({ status: 'pending', failures: 0, executions: 3 });
      script.act = () => undefined;
      expect(await tester.runNext()).toMatchObject({ outcome: 'succeeded', execution: 4 });
      expect((await scheduler.executions(id)).map(({ number, outcome }) => [number, outcome])).toEqual([
        [1, 'retried'],
        [2, 'retried'],
        [3, 'failed'],
        [4, 'succeeded'],
      ]);
      expect(await scheduler.get(id)).toMatchObject({ status: 'succeeded', error: undefined });
      await expect(scheduler.redrive(id)).rejects.toMatchObject({ code: 'JOB_NOT_FAILED' });
    },
  },
  {
    name: 'what cannot be mended goes to the dead letter at once',
    async shows({ tester, scheduler, script }) {
      script.act = () => {
        throw new UnrecoverableError('the account is closed');
      };
      await scheduler.enqueue(Greet, { name: 'Ana' });
      expect(await tester.runNext()).toMatchObject({
        outcome: 'failed',
        againInMs: undefined,
        error: { code: 'UNRECOVERABLE' },
      });
    },
  },
  {
    name: 'options of one job count before the definition',
    async shows({ tester, scheduler, script }) {
      script.act = () => {
        throw new Error('no');
      };
      const options = { maxRetries: 1, backoff: { type: 'fixed', delay: '3s', jitter: 0 } } as const;
      await scheduler.enqueue(Greet, { name: 'Ana' }, options);
      expect(await tester.runNext()).toMatchObject({ outcome: 'retried', againInMs: 3_000 });
      await tester.advance('3s');
      expect(await tester.runNext()).toMatchObject({ outcome: 'failed' });
    },
  },
  {
    name: 'a snooze is not charged',
    async shows({ tester, scheduler, script }) {
      script.act = (ctx) => {
        if (ctx.execution < 3) ctx.snooze('30m');
      };
      const { id } = await scheduler.enqueue(Greet, { name: 'Ana' });
      expect(await tester.runNext()).toMatchObject({
        outcome: 'snoozed',
        againInMs: 1_800_000,
        result: undefined,
      });
      expect(outcomes(await tester.drain({ within: '1h' }))).toEqual(['greet snoozed', 'greet succeeded']);
      expect(await scheduler.get(id)).toMatchObject({ failures: 0, executions: 3 });
    },
  },
  {
    name: 'a handler that hangs meets its timeout when the clock moves',
    async shows({ tester, scheduler }) {
      const { id } = await scheduler.enqueue(Slow);
      const run = tester.runNext(Slow);
      await tester.advance('119s');
      expect(tester.running).toBe(1);
      await tester.advance('1s');
      expect(await run).toMatchObject({ outcome: 'retried', error: { code: 'JOB_TIMEOUT' } });
      expect(tester.running).toBe(0);
      const again = tester.runNext(Slow);
      await tester.advance('2m');
      expect(await again).toMatchObject({ outcome: 'failed', error: { code: 'JOB_TIMEOUT' } });
      expect(await scheduler.get(id)).toMatchObject({ status: 'failed', failures: 2 });
    },
  },
  {
    name: 'priority goes first, then the due time, then the call order',
    async shows({ tester, scheduler, script }) {
      await scheduler.enqueue(Greet, { name: 'low' }, { priority: 'low' });
      await scheduler.enqueueMany(Greet, [{ payload: { name: 'one' } }, { payload: { name: 'two' } }]);
      await scheduler.enqueue(Urgent, { name: 'fire' });
      await scheduler.enqueue(Greet, { name: 'early' }, { runAt: new Date(0) });
      await tester.drain();
      expect(script.log).toEqual([
        'urgent fire',
        'greet early #1',
        'greet one #1',
        'greet two #1',
        'greet low #1',
      ]);
    },
    settings: { priorityBoost: 0 },
  },
  {
    name: 'a job that waits rises by one priority for each boost interval',
    async shows({ tester, scheduler, script }) {
      await scheduler.enqueue(Greet, { name: 'old' }, { priority: 'low' });
      await tester.advance('31m');
      await scheduler.enqueue(Greet, { name: 'new' }, { priority: 'normal' });
      await scheduler.enqueue(Greet, { name: 'high' }, { priority: 'critical' });
      await tester.drain();
      expect(script.log).toEqual(['greet high #1', 'greet old #1', 'greet new #1']);
    },
  },
  {
    name: 'runNext(definition) passes over the others',
    async shows({ tester, scheduler, script }) {
      await scheduler.enqueue(Urgent, { name: 'fire' });
      await scheduler.enqueue(Greet, { name: 'Ana' });
      await tester.runNext(Greet);
      expect(script.log).toEqual(['greet Ana #1']);
      await expect(tester.runNext(Greet)).rejects.toThrow(/no job "greet" is due/);
      expect((await tester.enqueued(Urgent)).length).toBe(1);
    },
  },
  {
    name: 'a lane that a definition names is served; the default lane goes first',
    async shows({ tester, scheduler, script }) {
      await scheduler.enqueue(Mail, { to: 'ana' });
      await scheduler.enqueue(Greet, { name: 'Ana' });
      expect((await tester.drain()).map(({ lane }) => lane)).toEqual(['default', 'mail']);
      expect(script.log).toEqual(['greet Ana #1', 'mail ana']);
    },
  },
  {
    name: 'jobs that nobody here runs stay, and runNext says why',
    async shows({ tester, scheduler }) {
      await scheduler.enqueueNamed('unknown.job', { x: 1 });
      await scheduler.enqueue(Greet, { name: 'lost' }, { lane: 'nowhere' });
      await scheduler.enqueueNamed('greet', { name: 'newer' }, { version: 7 });
      const error = await tester.runNext().catch((caught: unknown) => caught as Error);
      expect(error).toMatchObject({ code: 'TESTING_NOTHING_DUE' });
      const text = (error as Error).message;
      expect(text).toMatch(/unknown\.job \(.*\) has no @Job handler in this application/);
      expect(text).toMatch(/greet \(.*\) is in lane "nowhere", which no/);
      expect(text).toMatch(/greet \(.*\) is of version 7, newer than that of Jobs\.greet \(1\)/);
      expect(await tester.drain({ within: '30d' })).toEqual([]);
      expect((await tester.enqueued()).length).toBe(3);
    },
  },
  {
    name: 'a business key is held by one live job',
    async shows({ tester, scheduler }) {
      const key = { businessKey: 'customer:7' };
      const first = await scheduler.enqueue(Greet, { name: 'one' }, key);
      await expect(scheduler.enqueue(Greet, { name: 'two' }, key)).rejects.toMatchObject({
        code: 'BUSINESS_KEY_HELD',
        holder: first.id,
      });
      expect(await scheduler.enqueue(Greet, { name: 'two' }, { ...key, onConflict: 'return' })).toEqual({
        id: first.id,
        created: false,
      });
      const second = await scheduler.enqueue(Greet, { name: 'two' }, { ...key, onConflict: 'replace' });
      expect(second.created).toBe(true);
      expect(await scheduler.get(first.id)).toMatchObject({
        status: 'canceled',
        error: `superseded by ${second.id}`,
        begunAt: undefined,
      });
      expect((await tester.enqueued(Greet)).map(({ payload }) => payload.name)).toEqual(['two']);
      await tester.runNext();
      expect((await scheduler.enqueue(Greet, { name: 'three' }, key)).created).toBe(true);
    },
  },
  {
    name: 'a running holder of a business key is not replaced',
    async shows({ tester, scheduler, script }) {
      const key = { businessKey: 'customer:7' };
      const codes: unknown[] = [];
      script.act = async () => {
        const given = scheduler.enqueue(Greet, { name: 'two' }, { ...key, onConflict: 'replace' });
        codes.push(await given.catch((error: unknown) => error));
      };
      await scheduler.enqueue(Greet, { name: 'one' }, key);
      expect((await tester.runNext()).outcome).toBe('succeeded');
      expect(codes).toMatchObject([{ code: 'BUSINESS_KEY_HELD', running: true }]);
    },
  },
  {
    name: 'an idempotent repeat finds the first job, until the key expires',
    async shows({ tester, scheduler }) {
      const options = { idempotencyKey: { key: 'order:7', expiresIn: '2h' } } as const;
      const first = await scheduler.enqueue(Greet, { name: 'one' }, options);
      await tester.runNext();
      expect(await scheduler.enqueue(Greet, { name: 'again' }, options)).toEqual({
        id: first.id,
        created: false,
      });
      await tester.advance('119m');
      expect((await scheduler.enqueue(Greet, { name: 'again' }, options)).created).toBe(false);
      await tester.advance('2m');
      expect((await scheduler.enqueue(Greet, { name: 'again' }, options)).created).toBe(true);
    },
  },
  {
    name: 'a refused business key leaves no idempotency key behind',
    async shows({ tester, scheduler }) {
      const both = { businessKey: 'b', idempotencyKey: 'i' };
      const holder = await scheduler.enqueue(Greet, { name: 'holder' }, { businessKey: 'b' });
      await expect(scheduler.enqueue(Greet, { name: 'x' }, both)).rejects.toMatchObject({
        holder: holder.id,
      });
      await tester.runNext();
      const second = await scheduler.enqueue(Greet, { name: 'x' }, both);
      expect(second.created).toBe(true);
      await tester.runNext();
      expect(await scheduler.enqueue(Greet, { name: 'x' }, both)).toEqual({ id: second.id, created: false });
    },
  },
  {
    name: 'enqueueMany takes all or nothing',
    async shows({ tester, scheduler }) {
      await scheduler.enqueue(Greet, { name: 'holder' }, { businessKey: 'b' });
      const many = scheduler.enqueueMany(Greet, [
        { payload: { name: 'one' } },
        { payload: { name: 'two' }, options: { idempotencyKey: 'i' } },
        { payload: { name: 'three' }, options: { businessKey: 'b' } },
      ]);
      await expect(many).rejects.toMatchObject({ code: 'BUSINESS_KEY_HELD' });
      expect((await tester.enqueued()).length).toBe(1);
      expect((await scheduler.enqueue(Greet, { name: 'two' }, { idempotencyKey: 'i' })).created).toBe(true);
      const doubles = await scheduler.enqueueMany(Greet, [
        { payload: { name: 'a' }, options: { idempotencyKey: 'k' } },
        { payload: { name: 'b' }, options: { idempotencyKey: 'k' } },
        { payload: { name: 'c' }, options: { businessKey: 'c' } },
        { payload: { name: 'd' }, options: { businessKey: 'c', onConflict: 'return' } },
      ]);
      expect(doubles.map(({ created }) => created)).toEqual([true, false, true, false]);
      expect([doubles[1]?.id, doubles[3]?.id]).toEqual([doubles[0]?.id, doubles[2]?.id]);
    },
  },
  {
    name: 'a repeat within one call finds the job that the first of them turned out to be',
    async shows({ scheduler }) {
      const holder = await scheduler.enqueue(Greet, { name: 'holder' }, { businessKey: 'b' });
      const both = { idempotencyKey: 'i', businessKey: 'b', onConflict: 'return' } as const;
      const handles = await scheduler.enqueueMany(Greet, [
        { payload: { name: 'one' }, options: both },
        { payload: { name: 'two' }, options: { idempotencyKey: 'i' } },
      ]);
      handles.push(await scheduler.enqueue(Greet, { name: 'three' }, { idempotencyKey: 'i' }));
      expect(handles).toEqual(Array(3).fill({ id: holder.id, created: false }));
    },
  },
  {
    name: 'cancel: pending at once, running by its signal, ended never',
    async shows({ tester, scheduler }) {
      const waiting = await scheduler.enqueue(Greet, { name: 'Ana' });
      expect(await scheduler.cancel(waiting.id)).toBe(true);
      expect(await scheduler.cancel(waiting.id)).toBe(false);
      expect(await scheduler.get(waiting.id)).toMatchObject({ status: 'canceled', claimSeq: '0' });
      expect(await scheduler.executions(waiting.id)).toEqual([]);

      const { id } = await scheduler.enqueue(Slow);
      const run = tester.runNext();
      await tester.advance(0);
      expect((await scheduler.executions(id)).map(({ outcome }) => outcome)).toEqual(['running']);
      expect(await scheduler.cancel(id)).toBe(true);
      expect(await run).toMatchObject({ id, outcome: 'canceled', error: undefined });
      expect(await scheduler.get(id)).toMatchObject({ status: 'canceled', claimSeq: '2' });
      expect(await scheduler.executions(id)).toMatchObject([
        { outcome: 'canceled', claimSeq: '1', lateOutcome: 'failed' },
      ]);
      expect(await scheduler.cancel('00000000-0000-7000-8000-000000000000')).toBe(false);
    },
  },
  {
    name: 'children run in the same drain and know their parent; a late child is fenced',
    async shows({ tester, scheduler, script }) {
      const { id } = await scheduler.enqueue(Family, { children: 2 });
      const ran = await tester.drain();
      expect(script.log).toEqual(['family 2', 'family 1', 'family 0']);
      expect(await scheduler.get(ran[1]!.id)).toMatchObject({ parentId: id, tags: ['child'] });

      const late: unknown[] = [];
      script.act = async (ctx) => {
        await scheduler.cancel(ctx.jobId);
        late.push(await ctx.enqueue(Family, { children: 0 }).catch((error: unknown) => error));
      };
      await scheduler.enqueue(Greet, { name: 'Ana' });
      expect((await tester.runNext()).outcome).toBe('canceled');
      expect(late).toMatchObject([{ code: 'CLAIM_LOST' }]);
    },
  },
  {
    name: 'progress is kept, the last value with the end',
    async shows({ tester, scheduler, script }) {
      const { id } = await scheduler.enqueue(Greet, { name: 'Ana' });
      const seen: unknown[] = [];
      let go = (): void => undefined;
      script.act = async (ctx) => {
        ctx.progress({ percent: 10 });
        await new Promise<void>((resolve) => (go = resolve));
        ctx.progress({ percent: 90 });
      };
      const run = tester.runNext();
      await tester.advance(0);
      await tester.advance(0);
      seen.push((await scheduler.get(id))?.progress);
      go();
      await run;
      seen.push((await scheduler.get(id))?.progress);
      expect(seen).toEqual([{ percent: 10 }, { percent: 90 }]);
    },
  },
  {
    name: "history: 'drop' keeps nothing of a success",
    async shows({ tester, scheduler }) {
      const { id } = await scheduler.enqueue(Forgotten);
      expect(await tester.runNext()).toMatchObject({ outcome: 'succeeded', result: undefined });
      expect(await scheduler.get(id)).toBeUndefined();
      expect(await scheduler.executions(id)).toEqual([]);
    },
  },
  {
    name: 'a request-scoped handler has an instance for each execution',
    async shows({ tester, scheduler }) {
      await scheduler.enqueueMany(Scoped, [{ payload: undefined }, { payload: undefined }]);
      const [one, two] = await tester.drain();
      expect(one?.result).toMatchObject({ job: one?.id });
      expect(two?.result).toMatchObject({ job: two?.id });
      expect(one?.result).not.toMatchObject({ instance: (two?.result as { instance: number }).instance });
    },
  },
  {
    name: 'what a payload, a result or an error may be is the same',
    async shows({ tester, scheduler, script }) {
      const bad = { name: 'a\u0000b' };
      await expect(scheduler.enqueue(Greet, bad)).rejects.toMatchObject({ code: 'PAYLOAD_NOT_JSON' });
      script.act = () => {
        throw new Error('a\u0000b');
      };
      const { id } = await scheduler.enqueue(Greet, { name: 'Ana' });
      await tester.runNext();
      expect((await scheduler.get(id))?.error).toMatch(/^Error: a.?b/);
    },
  },
  {
    name: 'a job without end is found out',
    async shows({ tester, scheduler, script }) {
      script.act = (ctx) => ctx.snooze(0);
      await scheduler.enqueue(Greet, { name: 'Ana' });
      await expect(tester.drain({ limit: 20 })).rejects.toThrow(
        /TESTING_ENDLESS_DRAIN: drain: 20 executions.*most of them were of greet \(20\)/,
      );
      script.act = () => undefined;
      expect(outcomes(await tester.drain({ limit: 1 }))).toEqual(['greet succeeded']);
    },
  },
  {
    name: 'time moves on only',
    async shows({ tester }) {
      const wrong = ['1 hour', -1, '5y'] as unknown as number[];
      for (const duration of wrong) {
        await expect(tester.advance(duration)).rejects.toMatchObject({ code: 'TESTING_INVALID_TRAVEL' });
      }
      await expect(tester.travelTo(new Date(0))).rejects.toThrow(
        /TESTING_INVALID_TRAVEL: travelTo: .* from now/,
      );
      await expect(tester.travelTo(new Date(Number.NaN))).rejects.toMatchObject({
        code: 'TESTING_INVALID_TRAVEL',
      });
    },
  },
  {
    name: 'a buffered job can be run as soon as the call has resolved, and the same is refused',
    async shows({ tester, scheduler }) {
      const buffered = { durability: 'buffered' } as const;
      const one = await scheduler.enqueue(Greet, { name: 'Ana' }, buffered);
      const [two] = await scheduler.enqueueMany(Greet, [{ payload: { name: 'Bo' } }], buffered);
      expect((await tester.enqueued(Greet)).map(({ id }) => id)).toEqual([one.id, two?.id]);
      expect(outcomes(await tester.drain())).toEqual(['greet succeeded', 'greet succeeded']);
      await one.saved;
      const keyed = { ...buffered, businessKey: 'k' } as object;
      await expect(scheduler.enqueue(Greet, { name: 'Cy' }, keyed)).rejects.toMatchObject({
        code: 'INVALID_ENQUEUE_OPTION',
      });
    },
  },
  {
    name: 'runNext on nothing says so',
    async shows({ tester, scheduler }) {
      await expect(tester.runNext()).rejects.toThrow('this application has enqueued none');
      await scheduler.enqueue(Greet, { name: 'Ana' });
      await tester.drain();
      await expect(tester.runNext()).rejects.toThrow('all 1 that this application enqueued have ended');
    },
  },
  {
    name: 'settings of the module count',
    settings: { maxRetries: 0, idempotencyExpiry: '1m', lanes: { slowly: { concurrency: 1 } } },
    async shows({ tester, scheduler, script }) {
      script.act = () => {
        throw new Error('no');
      };
      await scheduler.enqueue(Urgent, { name: 'fire' }, { idempotencyKey: 'i', lane: 'slowly' });
      expect(await tester.runNext()).toMatchObject({ outcome: 'failed', lane: 'slowly' });
      await tester.advance('61s');
      expect((await scheduler.enqueue(Urgent, { name: 'fire' }, { idempotencyKey: 'i' })).created).toBe(true);
    },
  },
];

const kits: readonly Kit[] = [new ListKit(), new DatabaseKit()];

describe.each(kits)('an app under test with $name', (kit) => {
  beforeAll(() => kit.open());
  afterEach(() => kit.clear());
  afterAll(() => kit.close());

  it.each(behaviours)('$name', async ({ shows, settings }) => {
    const script = new Script();
    const providers = [Jobs, ScopedJobs, { provide: Script, useValue: script }];
    const { tester, scheduler } = await kit.boot(providers, settings);
    await shows({ tester, scheduler, script });
  });
});

// Compiles: what was enqueued has the payload's type, what ran has the result's.
export async function typed(tester: RatchetTester): Promise<string> {
  const [waiting] = await tester.enqueued(Greet);
  const { result, payload } = await tester.runNext(Greet);
  // @ts-expect-error the payload of Greet is { name }
  const wrong: unknown = payload.to;
  return `${String(wrong)} ${waiting?.payload.name ?? ''} ${result?.text ?? ''} ${payload.name}`;
}
