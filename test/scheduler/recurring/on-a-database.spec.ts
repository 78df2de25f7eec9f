import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type TestingModule } from '@nestjs/testing';
import { defineJob, RatchetModule, RecurringScheduler, ScheduleStore } from 'nestjs-ratchet';
import { ClusterMessages } from '../../../lib/cluster/cluster-messages.js';
import { type Wakeup } from '../../../lib/cluster/cluster-coordinator.js';
import { RECURRING_LANE } from '../../../lib/recurring/recurring-lane.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { Apps } from '../../module/app.js';

const Count = defineJob<{ n: number }>('count');
const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await apps.closeAll();
  await database.query('truncate ratchet.schedule, ratchet.occurrence');
});
afterAll(() => database.drop());

/** A process that only enqueues. */
async function boot(): Promise<{ app: TestingModule; recurring: RecurringScheduler }> {
  const ratchet = RatchetModule.forRoot({ connection: database.url, worker: false });
  const app = await apps.boot({ imports: [ratchet] });
  return { app, recurring: app.get(RecurringScheduler) };
}

const SCHEDULE = { id: 'a', every: '1h', job: Count, payload: { n: 1 } } as const;

describe('RecurringScheduler of many processes', () => {
  it('creates one schedule, whoever is first', async () => {
    const [one, other] = [await boot(), await boot()];
    const all = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 ? one : other).recurring.create({ ...SCHEDULE, payload: { n: index } }),
      ),
    );
    const made = all.filter(({ status }) => status === 'fulfilled');
    const codes = all.flatMap((each) =>
      each.status === 'rejected' ? [(each.reason as { code?: string }).code] : [],
    );
    expect(made).toHaveLength(1);
    expect(new Set(codes)).toEqual(new Set(['RECURRING_SCHEDULE_EXISTS']));
    const kept = await Promise.all(
      [one, other].map(({ recurring }) =>
        recurring.create({ ...SCHEDULE, payload: { n: 99 }, ifExists: 'keep' }),
      ),
    );
    expect(kept.map(({ job }) => job.payload)).not.toContainEqual({ n: 99 });
  });

  it('loses no change that is made at the same moment', async () => {
    const { recurring } = await boot();
    await recurring.create(SCHEDULE);
    await Promise.all([
      recurring.update('a', { name: 'changed' }),
      recurring.update('a', { overlap: 'queue' }),
      recurring.update('a', { misfire: 'skip' }),
      recurring.update('a', { jitter: '5s' }),
      recurring.update('a', { lane: 'own' }),
      recurring.pause('a'),
    ]);
    expect(await recurring.get('a')).toMatchObject({
      name: 'changed',
      overlap: 'queue',
      misfire: 'skip',
      jitterMs: 5_000,
      paused: true,
      job: { lane: 'own' },
    });
  });

  it('gives a business key to one of those who ask at the same moment', async () => {
    const { recurring } = await boot();
    const all = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((id) => recurring.create({ ...SCHEDULE, id, businessKey: 'key' })),
    );
    const codes = all.map((each) =>
      each.status === 'rejected' ? (each.reason as { code?: string }).code : 'made',
    );
    expect(codes.toSorted()).toEqual([
      'RECURRING_BUSINESS_KEY_HELD',
      'RECURRING_BUSINESS_KEY_HELD',
      'RECURRING_BUSINESS_KEY_HELD',
      'made',
    ]);
  });

  it('gives up when somebody changes it each time', async () => {
    const { app, recurring } = await boot();
    await recurring.create(SCHEDULE);
    const store = app.get(ScheduleStore);
    const write = store.write.bind(store);
    store.write = async (writes) => {
      await database.query("update ratchet.schedule set revision = nextval('ratchet.schedule_revision')");
      return write(writes);
    };
    await expect(recurring.update('a', { name: 'x' })).rejects.toMatchObject({
      code: 'RECURRING_SCHEDULE_CONTENDED',
      retryable: true,
    });
  });

  it('tells the other nodes when a schedule is due', async () => {
    const { app, recurring } = await boot();
    const wakeups: Wakeup[] = [];
    app.get(ClusterMessages, { strict: false }).onWakeup((wakeup) => wakeups.push(wakeup));
    await recurring.create({ ...SCHEDULE, enabled: false });
    expect(wakeups).toEqual([]);
    await recurring.update('a', { enabled: true });
    await recurring.pause('a');
    await recurring.resume('a');
    expect(wakeups.map(({ lane }) => lane)).toEqual([RECURRING_LANE, RECURRING_LANE]);
    for (const { dueInMs } of wakeups) {
      expect(dueInMs).toBeGreaterThan(3_590_000);
      expect(dueInMs).toBeLessThanOrEqual(3_600_000);
    }
    await recurring.trigger('a');
    expect(wakeups.at(-1)).toMatchObject({ lane: 'default' });
  });

  it('tells the nodes that run a schedule for themselves when it is paused and resumed', async () => {
    const { app, recurring } = await boot();
    await recurring.create(SCHEDULE);
    await database.query("update ratchet.schedule set scope = 'node', next_at = null where id = 'a'");
    const wakeups: Wakeup[] = [];
    app.get(ClusterMessages, { strict: false }).onWakeup((wakeup) => wakeups.push(wakeup));
    await recurring.pause('a');
    expect(wakeups.map(({ lane }) => lane)).toEqual([RECURRING_LANE]);
    await recurring.resume('a');
    expect(wakeups.map(({ lane }) => lane)).toEqual([RECURRING_LANE, RECURRING_LANE]);
  });

  it('shows what cannot be read with its fault, and mends it by a resume or a change', async () => {
    const { recurring } = await boot();
    await recurring.create(SCHEDULE);
    await recurring.create({ ...SCHEDULE, id: 'b' });
    await database.query(
      "update ratchet.schedule set expression = 'nonsense', fault = 'cannot be read' where id = 'a'",
    );
    const { schedules } = await recurring.list();
    expect(schedules.map(({ id, fault }) => [id, fault])).toEqual([
      ['a', 'cannot be read'],
      ['b', undefined],
    ]);
    await expect(recurring.resume('a')).rejects.toMatchObject({ code: 'RECURRING_BAD_EXPRESSION' });
    const mended = await recurring.update('a', { every: '1h' });
    expect(mended).toMatchObject({
      fault: undefined,
      expression: '@every 1h',
      nextOccurrence: expect.any(Date),
    });
    await database.query("update ratchet.schedule set fault = 'was away', next_at = null where id = 'b'");
    expect(await recurring.resume('b')).toBe(true);
    expect(await recurring.get('b')).toMatchObject({ fault: undefined, nextOccurrence: expect.any(Date) });
  });

  it('takes over the id of an annotation that was removed', async () => {
    const { recurring } = await boot();
    await recurring.create(SCHEDULE);
    await database.query(
      "update ratchet.schedule set origin = 'annotation', owner = 'Gone.run', removed_at = now(), paused = true, next_at = null",
    );
    expect(await recurring.get('a')).toMatchObject({ removedAt: expect.any(Date) });
    expect((await recurring.list()).schedules).toEqual([]);
    expect((await recurring.list({ removed: true })).schedules).toHaveLength(1);
    await expect(recurring.pause('a')).rejects.toMatchObject({ code: 'RECURRING_SCHEDULE_NOT_FOUND' });
    expect(await recurring.create(SCHEDULE)).toMatchObject({
      origin: 'api',
      owner: undefined,
      paused: false,
      removedAt: undefined,
      nextOccurrence: expect.any(Date),
    });
  });
});
