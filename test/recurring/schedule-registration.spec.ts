import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type AnnotatedSchedule, type ScheduleSpec } from '../../lib/jobs/schedule-spec.js';
import { EngineEvents, type EngineEventMap } from '../../lib/observability/engine-events.js';
import { RuleCache } from '../../lib/recurring/rule-cache.js';
import { ScheduleRegistration } from '../../lib/recurring/schedule-registration.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { PostgresScheduleStore } from '../../lib/store/postgres/postgres-schedule-store.js';
import { type ScheduleRow, type ScheduleStore } from '../../lib/store/schedule-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';
import { jobTemplate, scheduleSpec } from './schedule-fixture.js';

const HOUR_MS = 3_600_000;

function annotated(spec: Partial<ScheduleSpec> & { readonly id: string }): AnnotatedSchedule {
  const full = scheduleSpec(spec);
  const owner = full.owner ?? '';
  return {
    spec: full,
    method: owner.slice(owner.lastIndexOf('.') + 1),
    jobName: full.template.name,
    takesPayload: false,
  };
}

describe('the registration of annotated schedules', () => {
  let database: TestDatabase;
  let jobs: PostgresJobStore;
  let store: PostgresScheduleStore;

  beforeAll(async () => {
    database = await createTestDatabase();
    jobs = createStore(database.url);
    await jobs.open();
    store = new PostgresScheduleStore(jobs);
  });
  afterEach(async () => {
    jobs.travel(0);
    await database.query('truncate ratchet.schedule, ratchet.occurrence, ratchet.job, ratchet.node');
  });
  afterAll(async () => {
    await jobs.close();
    await database.drop();
  });

  async function register(
    schedules: readonly AnnotatedSchedule[],
    on: ScheduleStore = store,
  ): Promise<{ lines: string[]; told: EngineEventMap['schedules_registered'] | undefined }> {
    const events = new EngineEvents();
    const lines: string[] = [];
    let told: EngineEventMap['schedules_registered'] | undefined;
    events.on('schedules_registered', (event) => (told = event));
    const say = (line: string): void => void lines.push(line);
    await new ScheduleRegistration({
      store: on,
      rules: new RuleCache(),
      events,
      logger: { log: say, warn: say, error: say },
      until: (_what, step) => step(),
    }).register(schedules);
    return { lines, told };
  }
  async function row(id: string): Promise<ScheduleRow> {
    return (await store.byIds([id])).schedules[0]!;
  }
  const setNext = (id: string, sql: string): Promise<unknown> =>
    database.query(`update ratchet.schedule set next_at = ${sql} where id = $1`, [id]);

  it('a new one is due at its next time, and not before', async () => {
    const { lines, told } = await register([annotated({ id: 'hourly' })]);
    const { nextAt, anchor, lastAt } = await row('hourly');
    const now = await store.now();
    expect(nextAt!.getTime()).toBeGreaterThan(now.getTime());
    expect(nextAt!.getTime() % HOUR_MS).toBe(0);
    expect(nextAt!.getTime() - now.getTime()).toBeLessThanOrEqual(HOUR_MS);
    expect(now.getTime() - anchor.getTime()).toBeLessThan(10_000);
    expect(lastAt).toBeUndefined();
    expect(told).toEqual({ created: ['hourly'], changed: [], unchanged: 0 });
    expect(lines).toEqual(['1 recurring schedule of this node; 1 new: "hourly"']);
  });

  it('an interval counts from the registration', async () => {
    await register([annotated({ id: 'often', expression: '@every 90m' })]);
    const { nextAt, anchor } = await row('often');
    expect(nextAt!.getTime() - anchor.getTime()).toBe(90 * 60_000);
  });

  it('an unchanged one is left alone, so that what passed meanwhile is seen', async () => {
    const one = annotated({
      id: 'hourly',
      misfire: { catchUp: 3 },
      template: jobTemplate({
        payload: '{"b":1.0,  "a":[{"x":null}]}',
        tags: ['t'],
        backoff: { type: 'fixed', delayMs: 5, maxDelayMs: 5, jitter: 0 },
        timeoutMs: 10,
      }),
    });
    await register([one]);
    await setNext('hourly', "next_at - interval '5 hours'");
    const before = await row('hourly');
    expect((await register([one])).told).toEqual({ created: [], changed: [], unchanged: 1 });
    expect(await row('hourly')).toEqual(before);
  });

  it('a change of what it does is written in place, and when it is due stays', async () => {
    await register([annotated({ id: 'hourly' })]);
    await setNext('hourly', "next_at - interval '5 hours'");
    const before = await row('hourly');
    const { told, lines } = await register([
      annotated({
        id: 'hourly',
        name: 'Every hour',
        overlap: 'queue',
        template: jobTemplate({ payload: '{"a":1}' }),
      }),
    ]);
    expect(told).toEqual({ created: [], changed: ['hourly'], unchanged: 0 });
    expect(lines).toEqual(['1 recurring schedule of this node; 1 changed: "hourly"']);
    const after = await row('hourly');
    expect(after).toMatchObject({ name: 'Every hour', overlap: 'queue', createdAt: before.createdAt });
    expect([after.nextAt, after.anchor]).toEqual([before.nextAt, before.anchor]);
    expect(after.revision).not.toBe(before.revision);
  });

  it('one with other times is due by these from now on: nothing runs because of the deploy', async () => {
    await register([annotated({ id: 'hourly' })]);
    await setNext('hourly', "next_at - interval '5 hours'");
    await register([annotated({ id: 'hourly', timeZone: 'Asia/Kolkata' })]);
    const { nextAt } = await row('hourly');
    expect(nextAt!.getTime()).toBeGreaterThan((await store.now()).getTime());
    // Half an hour off.
    expect(nextAt!.getTime() % HOUR_MS).toBe(HOUR_MS / 2);
  });

  it.each<[string, Partial<ScheduleSpec>]>([
    ['disabled', { enabled: false }],
    ['of scope node', { scope: 'node' }],
  ])('one that is %s is never due, and begins afresh when it is not any more', async (_what, off) => {
    await register([annotated({ id: 'a', ...off })]);
    expect((await row('a')).nextAt).toBeUndefined();
    await register([annotated({ id: 'a' })]);
    expect((await row('a')).nextAt!.getTime()).toBeGreaterThan((await store.now()).getTime());
    await register([annotated({ id: 'a', ...off })]);
    expect((await row('a')).nextAt).toBeUndefined();
  });

  it('a paused one stays paused, whatever is changed', async () => {
    await register([annotated({ id: 'a' })]);
    await store.mark('a', (await row('a')).revision, { kind: 'paused' });
    await register([annotated({ id: 'a', expression: '*/5 * * * *' })]);
    expect(await row('a')).toMatchObject({ paused: true, nextAt: undefined, expression: '*/5 * * * *' });
  });

  it('one that was removed begins afresh', async () => {
    await register([annotated({ id: 'a' })]);
    await setNext('a', "next_at - interval '5 hours'");
    await store.sweep(0);
    expect(await store.sweep(0)).toEqual(['a']);
    await register([annotated({ id: 'a' })]);
    const { nextAt, removedAt } = await row('a');
    expect(removedAt).toBeUndefined();
    expect(nextAt!.getTime()).toBeGreaterThan((await store.now()).getTime());
  });

  it('a broken one is mended by what the code says', async () => {
    await register([annotated({ id: 'a' })]);
    await database.query(`update ratchet.schedule set expression = 'broken', backoff = '7' where id = 'a'`);
    await store.mark('a', (await row('a')).revision, { kind: 'broken', fault: 'no rule' });
    expect((await register([annotated({ id: 'a' })])).told).toMatchObject({ changed: ['a'] });
    expect(await row('a')).toMatchObject({ fault: undefined, expression: '0 * * * *' });
    expect((await row('a')).nextAt!.getTime()).toBeGreaterThan((await store.now()).getTime());
  });

  it('the id of one that was created in code is refused, and both are named', async () => {
    const spec = scheduleSpec({ id: 'digest', name: 'Digest of Ann', origin: 'api', owner: undefined });
    await store.write([{ spec, revision: undefined, anchor: new Date(), nextAt: undefined }]);
    await expect(register([annotated({ id: 'digest', owner: 'ReportJobs.daily' })])).rejects.toMatchObject({
      code: 'RECURRING_SCHEDULE_ID_TAKEN',
      message: expect.stringMatching(/ReportJobs\.daily: the schedule "digest" \("Digest of Ann"\)/),
    });
    expect(await row('digest')).toMatchObject({ origin: 'api', name: 'Digest of Ann' });
  });

  it('twenty nodes at once come to one schedule each, also when they change it', async () => {
    const ids = Array.from({ length: 30 }, (_, n) => `s${n}`);
    const all = (overrides: Partial<ScheduleSpec>): AnnotatedSchedule[] =>
      ids.map((id) => annotated({ id, ...overrides }));
    const nodes = (schedules: AnnotatedSchedule[]): Promise<{ told: unknown; lines: string[] }[]> =>
      Promise.all(
        Array.from({ length: 20 }, (_, n) => register(n % 2 === 0 ? schedules : schedules.toReversed())),
      );
    const created = (await nodes(all({}))).flatMap(
      ({ told }) => (told as EngineEventMap['schedules_registered']).created,
    );
    expect(created.toSorted()).toEqual(ids.toSorted());
    const rows = new Map((await store.byIds(ids)).schedules.map((each) => [each.id, each.nextAt]));
    const changed = (await nodes(all({ jitterMs: 5 }))).flatMap(
      ({ told }) => (told as EngineEventMap['schedules_registered']).changed,
    );
    expect(changed.toSorted()).toEqual(ids.toSorted());
    for (const { id, nextAt, jitterMs } of (await store.byIds(ids)).schedules) {
      expect([nextAt, jitterMs]).toEqual([rows.get(id), 5]);
    }
  });

  it('a lost reply of the write is no matter', async () => {
    let lost = false;
    const flaky = new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== 'function') return value;
        if (key !== 'write') return value.bind(target) as unknown;
        return async (...given: Parameters<ScheduleStore['write']>) => {
          const answer = await target.write(...given);
          if (lost) return answer;
          lost = true;
          return target.write(...given);
        };
      },
    });
    await register([annotated({ id: 'a' })], flaky);
    expect(await row('a')).toMatchObject({ id: 'a' });
    expect((await store.list({ limit: 10 })).length).toBe(1);
  });

  it('gives up when others write something else again and again', async () => {
    const contended = {
      byIds: () => Promise.resolve({ now: new Date(), schedules: [] }),
      write: () => Promise.resolve(['conflict']),
    } as unknown as ScheduleStore;
    await expect(register([annotated({ id: 'a' })], contended)).rejects.toMatchObject({
      code: 'RECURRING_REGISTRATION_CONTENDED',
      retryable: true,
    });
  });

  it('asks nothing for a process without schedules', async () => {
    const nobody = {} as unknown as ScheduleStore;
    expect(await register([], nobody)).toEqual({ lines: [], told: undefined });
  });

  it('says of a schedule whose class seems to be renamed what happens, and the mend', async () => {
    const daily = { expression: '0 6 * * *' };
    await register([
      annotated({ id: 'ReportJobs.daily', owner: 'ReportJobs.daily', ...daily }),
      annotated({ id: 'named', owner: 'ReportJobs.weekly', ...daily }),
      annotated({ id: 'Other.hourly', owner: 'Other.hourly', expression: '0 7 * * *' }),
    ]);
    const { lines } = await register([
      annotated({ id: 'a.daily', owner: 'a.daily', ...daily }),
      annotated({ id: 'a.weekly', owner: 'a.weekly', ...daily }),
      annotated({ id: 'a.hourly', owner: 'a.hourly', ...daily }),
    ]);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/"a.daily" is new, and "ReportJobs.daily".*give its @Recurring an id/);
    // Said once: from then on it is no news.
    expect((await register([annotated({ id: 'a.daily', owner: 'a.daily', ...daily })])).lines).toHaveLength(
      1,
    );
  });
});
