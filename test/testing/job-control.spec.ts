import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type JobContext, type JobFilter, type JobScheduler } from 'nestjs-ratchet';
import { type RatchetTester } from 'nestjs-ratchet/testing';
import { DatabaseKit, type Kit, ListKit } from './app.js';
import { Family, Greet, Jobs, Mail, Script, Urgent } from './jobs.js';

/** Finding and acting, by the list of `RatchetTestingModule` and by PostgreSQL alike. */
const kits: readonly Kit[] = [new ListKit(), new DatabaseKit()];
const NOBODY = '00000000-0000-7000-8000-000000000000';
const fails = (): never => {
  throw new Error('down');
};

describe.each(kits)('jobs under control with $name', (kit) => {
  let tester: RatchetTester;
  let scheduler: JobScheduler;
  let script: Script;

  beforeAll(() => kit.open());
  afterEach(() => kit.clear());
  afterAll(() => kit.close());

  async function boot(): Promise<void> {
    script = new Script();
    const providers = [Jobs, { provide: Script, useValue: script }];
    ({ tester, scheduler } = await kit.boot(providers, { maxRetries: 0 }));
  }

  /** Begins a job that runs until `go` is called. */
  async function running(options: object = {}) {
    let go = (): void => undefined;
    let ctx!: JobContext;
    script.act = async (given) => {
      ctx = given;
      await new Promise<void>((resolve) => (go = resolve));
      await act?.(given);
    };
    let act: ((ctx: JobContext) => unknown) | undefined;
    const { id } = await scheduler.enqueue(Greet, { name: 'Ana' }, options);
    const run = tester.runNext(Greet);
    await tester.advance(0);
    return {
      id,
      ctx,
      end: (then?: (ctx: JobContext) => unknown) => {
        act = then;
        go();
        return run;
      },
    };
  }

  it('finds jobs by every condition, wherever they are', async () => {
    await boot();
    const start = await tester.now();
    const ids = new Map<string, string>();
    const labelOf = (id: string): string => [...ids].find(([, each]) => each === id)?.[0] ?? id;

    ids.set('done', (await scheduler.enqueue(Greet, { name: 'done' }, { tags: ['a', 'b'] })).id);
    await tester.runNext();
    script.act = fails;
    ids.set('dead', (await scheduler.enqueue(Urgent, { name: 'x' }, { maxRetries: 0, tags: ['a'] })).id);
    await tester.runNext();
    script.act = () => undefined;
    ids.set('parent', (await scheduler.enqueue(Family, { children: 1 })).id);
    await tester.runNext();
    ids.set('child', (await tester.enqueued(Family))[0]!.id);
    await tester.runNext();
    await tester.advance('1h');
    const later = await tester.now();
    ids.set('mail', (await scheduler.enqueue(Mail, { to: 'x' }, { businessKey: 'k', tags: ['b'] })).id);
    ids.set('canceled', (await scheduler.enqueue(Mail, { to: 'x' })).id);
    await scheduler.cancel(ids.get('canceled')!);
    ids.set('later', (await scheduler.enqueue(Greet, { name: 'x' }, { delay: '5h', tags: ['b', 'a'] })).id);
    ids.set('paused', (await scheduler.enqueue(Greet, { name: 'x' }, { priority: 'low' })).id);
    await scheduler.pause(ids.get('paused')!);

    const expected: [JobFilter, string[]][] = [
      [{}, ['paused', 'later', 'canceled', 'mail', 'child', 'parent', 'dead', 'done']],
      [{ id: ids.get('dead')! }, ['dead']],
      [{ id: [ids.get('dead')!, ids.get('later')!.toUpperCase(), NOBODY] }, ['later', 'dead']],
      [{ id: NOBODY }, []],
      [{ status: 'pending' }, ['later', 'mail']],
      [{ status: ['failed', 'canceled', 'paused'] }, ['paused', 'canceled', 'dead']],
      [{ status: 'succeeded' }, ['child', 'parent', 'done']],
      [{ status: 'running' }, []],
      [{ name: Greet }, ['paused', 'later', 'done']],
      [{ name: [Mail, 'urgent'] }, ['canceled', 'mail', 'dead']],
      [{ lane: 'mail' }, ['canceled', 'mail']],
      [{ priority: ['critical', 'low'] }, ['paused', 'dead']],
      [{ tag: 'a' }, ['later', 'dead', 'done']],
      [{ tag: ['a', 'b'] }, ['later', 'done']],
      [{ businessKey: ['k', 'other'] }, ['mail']],
      [{ parentId: ids.get('parent')! }, ['child']],
      [{ created: { until: later } }, ['child', 'parent', 'dead', 'done']],
      [{ created: { from: later } }, ['paused', 'later', 'canceled', 'mail']],
      [{ created: { from: start, until: later }, status: 'failed' }, ['dead']],
      [{ scheduled: { from: new Date(later.getTime() + 3_600_000) } }, ['later']],
      [{ ended: { from: later } }, ['canceled']],
      [{ ended: { until: later } }, ['child', 'parent', 'dead', 'done']],
      [{ tag: 'a', lane: 'mail' }, []],
    ];
    for (const [filter, labels] of expected) {
      const { jobs, cursor } = await scheduler.find(filter);
      expect([filter, jobs.map(({ id }) => labelOf(id))]).toEqual([filter, labels]);
      expect(cursor).toBeUndefined();
      expect([filter, await scheduler.count(filter)]).toEqual([filter, labels.length]);
    }
    const { jobs } = await scheduler.find({ id: ids.get('mail')! });
    expect(jobs).toEqual([await scheduler.get(ids.get('mail')!)]);
  });

  it('turns pages while jobs end', async () => {
    await boot();
    const items = Array.from({ length: 7 }, (_, index) => ({ payload: { name: String(index) } }));
    const ids = (await scheduler.enqueueMany(Greet, items)).map(({ id }) => id).reverse();
    const first = await scheduler.find({ name: Greet }, { limit: 3 });
    await tester.runNext();
    await scheduler.cancel({ id: [ids[2]!, ids[3]!] });
    script.act = fails;
    await tester.drain({ within: '1d' });
    const second = await scheduler.find({ name: Greet }, { limit: 3, cursor: first.cursor });
    const third = await scheduler.find({ name: Greet }, { limit: 3, cursor: second.cursor });
    expect([first, second, third].flatMap(({ jobs }) => jobs.map(({ id }) => id))).toEqual(ids);
    expect(second.jobs.map(({ status }) => status)).toEqual(['canceled', 'failed', 'failed']);
    expect(third).toMatchObject({ jobs: [{ status: 'succeeded' }], cursor: undefined });
    const all: string[] = [];
    for await (const { id } of scheduler.findAll({ name: Greet })) all.push(id);
    expect(all).toEqual(ids);
  });

  it('cancels what it previewed; running ones hear of it, and what they return is discarded', async () => {
    await boot();
    const { id, ctx, end } = await running({ tags: ['t'] });
    const options = { tags: ['t'] };
    await scheduler.enqueueMany(Mail, [{ payload: { to: 'a' } }, { payload: { to: 'b' } }], options);
    await scheduler.enqueue(Mail, { to: 'c' });
    expect(await scheduler.cancel({ tag: 't' }, { preview: true })).toEqual({ matched: 3 });
    expect(await scheduler.count({ status: 'canceled' })).toBe(0);
    expect(await scheduler.cancelByTag('t')).toEqual({ matched: 3, changed: 3, aborted: false });
    expect(ctx.signal.reason).toMatchObject({ code: 'JOB_ABORTED', reason: 'canceled' });
    expect(await end()).toMatchObject({ outcome: 'canceled', result: undefined });
    expect(await scheduler.get(id)).toMatchObject({ status: 'canceled', result: undefined });
    expect(await scheduler.executions(id)).toMatchObject([{ outcome: 'canceled', lateOutcome: 'succeeded' }]);
    expect(await scheduler.cancelByTag('t')).toEqual({ matched: 0, changed: 0, aborted: false });
    expect(await scheduler.count({ status: 'pending' })).toBe(1);
  });

  it('pauses a waiting job until it is resumed', async () => {
    await boot();
    const { id } = await scheduler.enqueue(Greet, { name: 'Ana' });
    expect(await scheduler.resume(id)).toBe(false);
    expect([await scheduler.pause(id), await scheduler.pause(id)]).toEqual([true, true]);
    expect(await scheduler.get(id)).toMatchObject({ status: 'paused', pauseRequested: false });
    expect(await tester.drain({ within: '1d' })).toEqual([]);
    expect([await scheduler.resume(id), await scheduler.resume(id)]).toEqual([true, false]);
    expect(await tester.runNext()).toMatchObject({ id, outcome: 'succeeded' });
    expect([await scheduler.pause(id), await scheduler.pause(NOBODY)]).toEqual([false, false]);
  });

  it('pauses a running job when its execution gives it back, and not before', async () => {
    await boot();
    const { id, ctx, end } = await running({ maxRetries: 2 });
    expect([await scheduler.pause(id), await scheduler.pause(id)]).toEqual([true, true]);
    expect(await scheduler.get(id)).toMatchObject({ status: 'running', pauseRequested: true });
    expect(ctx.signal.aborted).toBe(false);
    expect(await end(fails)).toMatchObject({ outcome: 'retried' });
    expect(await scheduler.get(id)).toMatchObject({ status: 'paused', pauseRequested: false, failures: 1 });
    expect(await tester.drain({ within: '1d' })).toEqual([]);
    expect(await scheduler.resume({ id })).toMatchObject({ changed: 1 });
    await tester.advance('1m');
    script.act = () => undefined;
    expect(await tester.runNext()).toMatchObject({ id, outcome: 'succeeded', execution: 2 });
  });

  it('takes a pause back before it counts, and forgets it when the job ends', async () => {
    await boot();
    const retried = await running({ maxRetries: 2 });
    await scheduler.pause(retried.id);
    expect([await scheduler.resume(retried.id), await scheduler.resume(retried.id)]).toEqual([true, false]);
    await retried.end(fails);
    expect(await scheduler.get(retried.id)).toMatchObject({ status: 'pending', pauseRequested: false });
    await scheduler.cancel(retried.id);

    const done = await running();
    await scheduler.pause(done.id);
    expect(await done.end()).toMatchObject({ outcome: 'succeeded' });
    expect(await scheduler.get(done.id)).toMatchObject({ status: 'succeeded', pauseRequested: false });
  });

  it('pauses and resumes by a filter: no job twice', async () => {
    await boot();
    const { id, end } = await running({ tags: ['t'] });
    const items = [{ payload: { to: 'a' } }, { payload: { to: 'b' } }];
    await scheduler.enqueueMany(Mail, items, { tags: ['t'] });
    const filter = { tag: 't' };
    expect(await scheduler.pause(filter, { preview: true })).toEqual({ matched: 3 });
    expect(await scheduler.pause(filter)).toEqual({ matched: 3, changed: 3, aborted: false });
    expect(await scheduler.pause(filter)).toEqual({ matched: 0, changed: 0, aborted: false });
    expect(await scheduler.resume({ tag: 't', status: 'running' }, { preview: true })).toEqual({
      matched: 1,
    });
    expect(await scheduler.resume(filter)).toEqual({ matched: 3, changed: 3, aborted: false });
    expect(await scheduler.resume(filter)).toEqual({ matched: 0, changed: 0, aborted: false });
    await end();
    expect((await scheduler.get(id))?.status).toBe('succeeded');
    expect((await tester.drain()).length).toBe(2);
  });

  it('redrives by a filter what is in the dead letter, but none whose key is held', async () => {
    await boot();
    script.act = fails;
    const dead = await scheduler.enqueueMany(Greet, [
      { payload: { name: 'a' }, options: { maxRetries: 0, businessKey: 'a' } },
      { payload: { name: 'b' }, options: { maxRetries: 0, businessKey: 'b' } },
      { payload: { name: 'c' }, options: { maxRetries: 0 } },
    ]);
    await tester.drain();
    const holder = await scheduler.enqueue(Mail, { to: 'x' }, { businessKey: 'a', delay: '1d' });
    expect(await scheduler.redrive({ name: Greet }, { preview: true })).toEqual({ matched: 3 });
    expect(await scheduler.redrive({ name: Greet })).toEqual({ matched: 3, changed: 2, aborted: false });
    expect((await scheduler.find({ status: 'failed' })).jobs.map(({ id }) => id)).toEqual([dead[0]!.id]);
    await expect(scheduler.redrive(dead[0]!.id)).rejects.toMatchObject({ holder: holder.id });
    script.act = () => undefined;
    expect((await tester.drain()).map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded']);
    await scheduler.cancel(holder.id);
    expect(await scheduler.redrive({ status: 'failed' })).toMatchObject({ changed: 1 });
  });

  it('moves the due time of jobs that wait, and leaves paused ones paused', async () => {
    await boot();
    const soon = await scheduler.enqueue(Greet, { name: 'soon' }, { delay: '1d', tags: ['t'] });
    const paused = await scheduler.enqueue(Greet, { name: 'paused' }, { delay: '1d', tags: ['t'] });
    await scheduler.pause(paused.id);
    const { id, end } = await running({ tags: ['t'] });
    expect(await scheduler.reschedule(id, { delay: 0 })).toBe(false);
    expect(await scheduler.reschedule({ tag: 't' }, { delay: 0 }, { preview: true })).toEqual({ matched: 2 });
    expect(await scheduler.reschedule({ tag: 't' }, { delay: 0 })).toMatchObject({ matched: 2, changed: 2 });
    await end();
    script.act = () => undefined;
    expect(await tester.drain()).toMatchObject([{ id: soon.id }]);
    expect((await scheduler.get(paused.id))?.status).toBe('paused');
    const runAt = new Date((await tester.now()).getTime() + 7_200_000);
    expect(await scheduler.reschedule(paused.id, { runAt })).toBe(true);
    expect((await scheduler.get(paused.id))?.scheduledAt).toEqual(runAt);
    await scheduler.resume(paused.id);
    expect(await tester.drain()).toEqual([]);
    await tester.advance('2h');
    expect(await tester.drain()).toMatchObject([{ id: paused.id }]);
    expect(await scheduler.reschedule(paused.id, { delay: 0 })).toBe(false);
  });
});
