import { describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import {
  type ControlAction,
  type ControlledJob,
  type ControlPlace,
  type ControlStep,
  type JobQuery,
  type JobView,
} from '../../lib/store/job-store.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { listScheduler } from './support.js';

const job = (overrides: Partial<ControlledJob> = {}): ControlledJob => ({
  id: uuidv7(),
  name: 'note',
  lane: 'default',
  priority: 2,
  ...overrides,
});
const step = (matched: number, changed: readonly ControlledJob[], after?: string): ControlStep => ({
  matched,
  changed,
  next: after === undefined ? undefined : { after, asOf: 'then' },
});

/** A store that answers with these steps, one after another. */
function scripted(steps: readonly (ControlStep | Error)[], views: readonly Partial<JobView>[] = []) {
  const asked: { action: ControlAction; query: JobQuery; place: ControlPlace | undefined }[] = [];
  const answers = [...steps];
  const left = [...views];
  const made = listScheduler({
    store: {
      control: async (action, query, place) => {
        asked.push({ action, query, place });
        const answer = answers.shift();
        if (!answer) throw new Error('one step too many');
        if (!('matched' in answer)) throw answer;
        return answer;
      },
      get: async () => left.shift() as JobView | undefined,
    },
  });
  return { ...made, asked, left };
}

describe('an action on all jobs of a filter', () => {
  it('goes on from step to step, counts, and lets the process breathe between them', async () => {
    const { scheduler, asked } = scripted([step(3, [job(), job()], 'a'), step(0, [], 'b'), step(1, [job()])]);
    let turns = 0;
    const acting = scheduler.cancel({ tag: 'a' });
    setImmediate(() => (turns = asked.length));
    await expect(acting).resolves.toEqual({ matched: 4, changed: 3, aborted: false });
    expect(turns).toBe(1);
    expect(asked).toEqual([
      { action: { kind: 'cancel' }, query: { tags: ['a'] }, place: undefined },
      { action: { kind: 'cancel' }, query: { tags: ['a'] }, place: { after: 'a', asOf: 'then' } },
      { action: { kind: 'cancel' }, query: { tags: ['a'] }, place: { after: 'b', asOf: 'then' } },
    ]);
  });

  it('tells running jobs of their cancel, step by step', async () => {
    const runs = job({ claimSeq: '7' });
    const later = job({ claimSeq: '1' });
    const { scheduler, signals, wakeups } = scripted([
      step(2, [job(), runs], 'a'),
      new Error('gone'),
      step(1, [later]),
    ]);
    await expect(scheduler.cancel({ tag: 'a' })).rejects.toThrow();
    expect(signals).toMatchObject([{ kind: 'cancel', jobId: runs.id, claimSeq: '7' }]);
    await scheduler.cancel({ tag: 'a' });
    expect(signals).toMatchObject([{ jobId: runs.id }, { jobId: later.id, claimSeq: '1' }]);
    expect(wakeups).toEqual([]);
  });

  it.each<['redrive' | 'resume', string]>([
    ['redrive', 'redriven'],
    ['resume', 'resumed'],
  ])('%s wakes each stream once, and none for a job that runs', async (action) => {
    const { scheduler, wakeups, signals } = scripted([
      step(5, [
        job(),
        job(),
        job({ priority: 4 }),
        job({ lane: 'mail' }),
        ...(action === 'resume' ? [job({ lane: 'busy', claimSeq: '3' })] : []),
      ]),
    ]);
    await scheduler[action]({ tag: 'a' });
    expect(wakeups).toEqual([
      { lane: 'default', priority: 2, behind: true, source: 'test-node' },
      { lane: 'default', priority: 4, behind: true, source: 'test-node' },
      { lane: 'mail', priority: 2, behind: true, source: 'test-node' },
    ]);
    expect(signals).toEqual([]);
  });

  it('pause tells nobody: there is nothing to hear', async () => {
    const { scheduler, wakeups, signals } = scripted([step(2, [job(), job({ claimSeq: '3' })])]);
    await expect(scheduler.pause({ tag: 'a' })).resolves.toMatchObject({ changed: 2 });
    expect([wakeups, signals]).toEqual([[], []]);
  });

  it('reschedule says when the jobs are due, if its own clock need not be asked', async () => {
    const runAt = new Date('2030-01-01T00:00:00Z');
    const { scheduler, wakeups, asked } = scripted([step(1, [job()]), step(1, [job()]), step(1, [job()])]);
    await scheduler.reschedule({ tag: 'a' }, { delay: '5m' });
    await scheduler.reschedule({ tag: 'a' }, { delay: 0 });
    await scheduler.reschedule({ tag: 'a' }, { runAt });
    expect(asked.map(({ action }) => action)).toEqual([
      { kind: 'reschedule', delayMs: 300_000 },
      { kind: 'reschedule', delayMs: 0 },
      { kind: 'reschedule', delayMs: 0, runAt },
    ]);
    expect(wakeups.map(({ dueInMs, behind }) => [dueInMs, behind])).toEqual([
      [300_000, undefined],
      [undefined, true],
      [undefined, true],
    ]);
  });

  it('ends between two steps when its signal says so, and says how far it came', async () => {
    const controller = new AbortController();
    const { scheduler, asked } = scripted([step(3, [job()], 'a'), step(9, [job()], 'b')]);
    const acting = scheduler.cancel({ tag: 'a' }, { signal: controller.signal });
    setImmediate(() => controller.abort());
    await expect(acting).resolves.toEqual({ matched: 3, changed: 1, aborted: true });
    expect(asked).toHaveLength(1);
    await expect(scheduler.cancel({ tag: 'a' }, { signal: controller.signal })).resolves.toEqual({
      matched: 0,
      changed: 0,
      aborted: true,
    });
    expect(asked).toHaveLength(1);
  });

  it('ends before the next step when its signal throws as it is asked', async () => {
    let asked = 0;
    const signal = Object.defineProperty(new EventTarget(), 'aborted', {
      get: () => {
        asked += 1;
        if (asked > 2) throw new Error('nobody may ask');
        return false;
      },
    }) as AbortSignal;
    const { scheduler } = scripted([step(1, [job()], job().id), step(1, [job()])]);
    const acting = scheduler.cancel({ tag: 'a' }, { signal });
    await expect(acting).resolves.toMatchObject({ aborted: true });
  });

  it('is not aborted when the abort comes with the last step', async () => {
    const controller = new AbortController();
    const { scheduler } = listScheduler({
      store: { control: async () => (controller.abort(), step(1, [job()])) },
    });
    await expect(scheduler.cancel({ tag: 'a' }, { signal: controller.signal })).resolves.toMatchObject({
      aborted: false,
    });
  });

  it('says after a failure on the way what it has done, and that it can be repeated', async () => {
    const cause = new StoreError('unknown', 'the connection was lost', '57P01');
    const { scheduler } = scripted([step(500, [job(), job()], 'a'), cause]);
    await expect(scheduler.redrive({ status: 'failed' })).rejects.toMatchObject({
      code: 'BULK_INTERRUPTED',
      retryable: true,
      action: 'redrive',
      matched: 500,
      changed: 2,
      cause,
      message:
        'BULK_INTERRUPTED: redrive: the database failed after 2 changed jobs, and what is changed stays so; ' +
        'call it again with the same filter, it goes on with the rest',
    });
  });

  it.each([['of several', 'a'] as const, ['which is the last', undefined] as const])(
    'says so too when a step %s fails half way, after it has told of what it changed',
    async (_, after) => {
      const cause = new StoreError('unknown', 'the connection was lost', '57P01');
      const done = { ...step(500, [job(), job({ priority: 3 })], after), failure: { cause } };
      const { scheduler, asked, wakeups } = scripted([done]);
      await expect(scheduler.redrive({ status: 'failed' })).rejects.toMatchObject({
        code: 'BULK_INTERRUPTED',
        matched: 500,
        changed: 2,
        cause,
      });
      expect(asked).toHaveLength(1);
      expect(wakeups).toHaveLength(2);
    },
  );

  it('fails with the error itself when not even the first step was made', async () => {
    const cause = new StoreError('fatal', 'no grant', '42501');
    await expect(scripted([cause]).scheduler.pause({ tag: 'a' })).rejects.toBe(cause);
  });

  it('previews by a count, and changes nothing', async () => {
    const asked: unknown[] = [];
    const { scheduler } = listScheduler({
      store: { countControllable: async (kind, query) => (asked.push([kind, query]), 12) },
    });
    const filter = { lane: 'mail' };
    await expect(scheduler.cancel(filter, { preview: true })).resolves.toEqual({ matched: 12 });
    await scheduler.pause(filter, { preview: true });
    await scheduler.resume(filter, { preview: true });
    await scheduler.redrive(filter, { preview: true });
    await scheduler.reschedule(filter, { delay: 0 }, { preview: true });
    expect(asked).toEqual(
      ['cancel', 'pause', 'resume', 'redrive', 'reschedule'].map((kind) => [kind, { lanes: ['mail'] }]),
    );
  });
});

describe('an action on one job', () => {
  const nothing = step(0, []);
  const view = (status: JobView['status'], pauseRequested = false) => ({ status, pauseRequested });

  it.each<[string, readonly ControlStep[], readonly Partial<JobView>[], boolean]>([
    ['a waiting job', [step(1, [job()])], [], true],
    ['a running one', [step(1, [job({ claimSeq: '1' })])], [], true],
    ['a paused one', [nothing], [view('paused')], true],
    ['a marked one', [nothing], [view('running', true)], true],
    ['an ended one', [nothing], [view('succeeded')], false],
    ['none', [nothing], [], false],
    ['one that moved meanwhile', [nothing, step(1, [job()])], [view('pending')], true],
    ['one that ended meanwhile', [step(1, []), nothing], [view('running'), view('failed')], false],
  ])('pause of %s', async (_, steps, views, answer) => {
    const { scheduler, asked, left } = scripted(steps, views);
    const id = uuidv7();
    await expect(scheduler.pause(id.toUpperCase())).resolves.toBe(answer);
    expect(asked).toHaveLength(steps.length);
    expect(asked[0]?.query).toEqual({ ids: [id] });
    expect(left).toEqual([]);
  });

  it.each<[string, readonly ControlStep[], readonly Partial<JobView>[], boolean]>([
    ['a paused job', [step(1, [job()])], [], true],
    ['a marked one', [step(1, [job({ claimSeq: '1' })])], [], true],
    ['a waiting one', [nothing], [view('pending')], false],
    ['a running one', [nothing], [view('running')], false],
    ['none', [nothing], [], false],
    ['one that was held', [nothing, step(1, [job()])], [view('paused')], true],
  ])('resume of %s', async (_, steps, views, answer) => {
    const { scheduler, asked } = scripted(steps, views);
    await expect(scheduler.resume(uuidv7())).resolves.toBe(answer);
    expect(asked).toHaveLength(steps.length);
  });

  it.each<[string, readonly ControlStep[], readonly Partial<JobView>[], boolean]>([
    ['a waiting job', [step(1, [job()])], [], true],
    ['a running one', [nothing], [view('running')], false],
    ['an ended one', [nothing], [view('canceled')], false],
    ['one that came back meanwhile', [nothing, step(1, [job()])], [view('paused')], true],
  ])('reschedule of %s', async (_, steps, views, answer) => {
    const { scheduler } = scripted(steps, views);
    await expect(scheduler.reschedule(uuidv7(), { delay: '1h' })).resolves.toBe(answer);
  });

  it('gives up on a row that somebody holds, and says so', async () => {
    const steps = Array.from({ length: 5 }, () => step(1, []));
    const views = Array.from({ length: 5 }, () => view('pending'));
    await expect(scripted(steps, views).scheduler.pause(uuidv7())).rejects.toMatchObject({
      code: 'JOB_ROW_HELD',
      action: 'pause',
      retryable: true,
      message: expect.stringMatching(
        /^JOB_ROW_HELD: pause: the row of job \S+ is held by another transaction; nothing/,
      ),
    });
  });

  it.each(['cancel', 'redrive'] as const)(
    'says of a %s who has the row, as far as it can be seen',
    async (action) => {
      const cause = new StoreError('unavailable', 'canceled', '55P03');
      const holders = [
        [{ pid: 7, application: 'web' }, /transaction \(session 7 of "web"\); nothing/],
        [
          { pid: 7, application: 'web', state: 'active', openForMs: 61_400 },
          /\(session 7 of "web", active, open for 61 s\)/,
        ],
        [undefined, /another transaction; nothing/],
      ] as const;
      for (const [holder, message] of holders) {
        const { scheduler } = listScheduler({
          store: { [action]: () => Promise.reject(cause), holderOf: () => Promise.resolve(holder) },
        });
        const told = expect.stringMatching(message);
        await expect(scheduler[action](uuidv7())).rejects.toMatchObject({
          code: 'JOB_ROW_HELD',
          message: told,
          cause,
        });
      }
      const blind = listScheduler({ store: { [action]: () => Promise.reject(cause) } });
      await expect(blind.scheduler[action](uuidv7())).rejects.toMatchObject({ code: 'JOB_ROW_HELD' });
      const other = new StoreError('unavailable', 'shutting down', '57P03');
      const down = listScheduler({ store: { [action]: () => Promise.reject(other) } });
      await expect(down.scheduler[action](uuidv7())).rejects.toBe(other);
    },
  );

  it('fails with the error that it met while it waited for the row', async () => {
    const cause = new StoreError('unknown', 'the connection was lost', '57P01');
    const { scheduler } = scripted([{ ...step(1, []), failure: { cause } }]);
    await expect(scheduler.pause(uuidv7())).rejects.toBe(cause);
  });
});
