import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { StoreError, type StoreFaultKind } from '../../../lib/store/store-fault.js';
import { ScheduleFixture } from './schedule-fixture.js';

/** What is wrong with one schedule, or with the database for a moment, must not cost the others. */
describe('faults of schedules', () => {
  let fixture: ScheduleFixture;

  beforeAll(async () => {
    fixture = await ScheduleFixture.open();
  });
  afterEach(() => fixture.clear());
  afterAll(() => fixture.close());

  it('shows a row that cannot be read, and gives the others', async () => {
    await fixture.written('whole', 'broken');
    await fixture.query(
      `update ratchet.schedule set misfire = 'catchUp', catch_up = null, backoff = '{"type": "odd"}' where id = 'broken'`,
    );
    const answer = await fixture.look();
    expect(answer.due.map(({ id }) => id)).toEqual(['whole']);
    const { revision } = await fixture.row('broken');
    expect(answer.broken).toEqual([
      { id: 'broken', revision, fault: expect.stringMatching(/^column (catch_up|backoff) cannot be /) },
    ]);
    expect(
      (await fixture.schedules.list({ limit: 9 })).map(({ id, fault }) => [id, fault === undefined]),
    ).toEqual([
      ['broken', false],
      ['whole', true],
    ]);
    await fixture.schedules.mark('broken', revision, { kind: 'broken', fault: 'seen' });
    expect(await fixture.look()).toMatchObject({ broken: [], due: [{ id: 'whole' }] });
  });

  it.each([
    ['jitter_ms = -1', /jitter_ms/],
    [`lane = ''`, /lane/],
    [`backoff = '7'`, /backoff/],
    [`next_at = '280000-01-01'`, /next_at/],
    [`last_at = '-infinity'`, /last_at/],
    [`tags = '{null}'`, /tags/],
  ])('says what cannot be read: %s', async (set, fault) => {
    await fixture.written('a');
    await fixture.query(`update ratchet.schedule set ${set}`);
    expect((await fixture.row('a')).fault).toMatch(fault);
  });

  it('fires the others when the job of one violates something, and says which', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `s${String(n).padStart(2, '0')}`);
    await fixture.written(...ids);
    await fixture.query(`
      alter table ratchet.job add constraint mine check (name <> 'odd');
      update ratchet.schedule set job_name = 'odd' where id in ('s07', 's08', 's31')`);
    const outcomes = await fixture.schedules.fire(
      (await fixture.look()).due.map((due) => fixture.firing(due)),
    );
    const failed = outcomes.filter(({ outcome }) => outcome === 'failed');
    expect(failed.map(({ id }) => id)).toEqual(['s07', 's08', 's31']);
    expect(failed[0]).toMatchObject({ error: { kind: 'bad_row', message: expect.stringContaining('mine') } });
    expect(outcomes.filter(({ outcome }) => outcome === 'fired')).toHaveLength(37);
    expect(await fixture.query('select from ratchet.job')).toHaveLength(37);
    expect(await fixture.query('select from ratchet.occurrence')).toHaveLength(37);
    await fixture.query('alter table ratchet.job drop constraint mine');
  });

  it('promotes the others when the job of one violates something, and marks that one', async () => {
    await fixture.written('a', 'b', 'c');
    await fixture.query(`
      insert into ratchet.occurrence (schedule_id, due_at, through_at, outcome, decided_at, job_id)
        select id, now(), now(), 'waiting', now(), gen_random_uuid() from ratchet.schedule;
      alter table ratchet.job add constraint mine check (name <> 'odd');
      update ratchet.schedule set job_name = 'odd' where id = 'b'`);
    const lines: unknown[] = [];
    const other = (): void => undefined;
    Logger.overrideLogger({ log: other, warn: other, error: (line: unknown) => void lines.push(line) });
    const promoted = await fixture.schedules.promote(10).finally(() => {
      Logger.overrideLogger(['error']);
    });
    expect(lines).toEqual([expect.stringMatching(/^the recurring schedule "b" is broken.*mine/)]);
    expect(promoted.map(({ scheduleId }) => scheduleId).sort()).toEqual(['a', 'c']);
    expect((await fixture.row('b')).fault).toMatch(/a waiting occurrence cannot become a job: .*mine/);
    expect(await fixture.schedules.promote(10)).toEqual([]);
    expect((await fixture.look()).promotable).toBe(false);
    await fixture.query('alter table ratchet.job drop constraint mine');
  });

  it.each<StoreFaultKind>(['unavailable', 'unknown'])('rejects, when nothing was fired: %s', async (kind) => {
    await fixture.written('a');
    const { due } = await fixture.look();
    fixture.failNext(kind);
    await expect(fixture.schedules.fire(due.map((each) => fixture.firing(each)))).rejects.toMatchObject({
      kind,
    });
    expect((await fixture.schedules.fire(due.map((each) => fixture.firing(each))))[0]!.outcome).toBe('fired');
  });

  it('tells what was fired before the database went away', async () => {
    await fixture.written('a', 'b');
    const { due } = await fixture.look();
    const many = due.map((each) =>
      fixture.firing(each, {
        missed: Array.from({ length: 1_500 }, (_, n) => ({ from: new Date(n), to: new Date(n), count: 1 })),
      }),
    );
    fixture.failNext(undefined, 'unavailable');
    const outcomes = await fixture.schedules.fire(many);
    expect(outcomes).toMatchObject([
      { outcome: 'fired' },
      { outcome: 'failed', error: { kind: 'unavailable' } },
    ]);
  });

  it('sends again what was rolled back', async () => {
    await fixture.written('a');
    const { due } = await fixture.look();
    fixture.failNext('rolled_back', 'rolled_back');
    expect((await fixture.schedules.fire(due.map((each) => fixture.firing(each))))[0]!.outcome).toBe('fired');
    fixture.failNext('rolled_back');
    expect(await fixture.schedules.sweep(0)).toEqual([]);
  });

  it('marks what is broken without the application’s connections', async () => {
    const [row] = await fixture.written('a');
    const { session } = fixture.store;
    const app = session.app.bind(session);
    session.app = () => Promise.reject(new Error('the pool of the application is empty'));
    try {
      expect(await fixture.schedules.mark('a', row!.revision, { kind: 'broken', fault: 'odd' })).toBe(true);
    } finally {
      session.app = app;
    }
    expect(await fixture.row('a')).toMatchObject({ fault: 'odd', nextAt: undefined });
  });

  it('fires a schedule once that is in one call twice', async () => {
    await fixture.written('a');
    const [due] = (await fixture.look()).due;
    const outcomes = await fixture.schedules.fire([fixture.firing(due!), fixture.firing(due!)]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['fired', 'superseded']);
  });

  it('leaves a schedule alone whose row somebody holds, and fires the others', async () => {
    await fixture.written('a', 'b');
    const { due } = await fixture.look();
    const holder = await fixture.database.connect();
    await holder.query(`begin; select from ratchet.schedule where id = 'a' for update`);
    const outcomes = await fixture.schedules.fire(due.map((each) => fixture.firing(each)));
    await holder.query('rollback');
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['superseded', 'fired']);
  });

  it('waits for a firing that holds what could be promoted', async () => {
    await fixture.written('a');
    await fixture.query(`
      insert into ratchet.occurrence (schedule_id, due_at, through_at, outcome, decided_at, job_id)
        values ('a', now(), now(), 'waiting', now(), gen_random_uuid())`);
    const holder = await fixture.database.connect();
    await holder.query(`begin; select from ratchet.schedule where id = 'a' for update`);
    const promoted = fixture.schedules.promote(10);
    await fixture.sent();
    await holder.query('rollback');
    expect(await promoted).toHaveLength(1);
  });

  it('makes the day that is missing when jobs are canceled', async () => {
    const [a, b] = await fixture.written('a', 'b');
    await fixture.schedules.fire([fixture.firing(a!), fixture.firing(b!)]);
    const daysMs = 400 * 86_400_000;
    fixture.store.travel(daysMs);
    const [gone] = await fixture.schedules.delete(['a']);
    expect(gone!.canceled).toHaveLength(1);
    await fixture.query(`update ratchet.schedule set origin = 'annotation'`);
    fixture.store.travel(2 * daysMs);
    await fixture.schedules.sweep(0);
    fixture.store.travel(2 * daysMs + 1_000);
    expect(await fixture.schedules.sweep(0)).toEqual(['b']);
    expect(await fixture.query(`select from ratchet.job_history where outcome = 'canceled'`)).toHaveLength(2);
  });

  it('completes with the next sweep what one could not', async () => {
    const [a] = await fixture.written('a');
    await fixture.schedules.fire([fixture.firing(a!)]);
    await fixture.query(`update ratchet.schedule set origin = 'annotation'`);
    await fixture.schedules.sweep(0);
    fixture.store.travel(1_000);
    fixture.failNext(undefined, 'unavailable');
    await expect(fixture.schedules.sweep(0)).rejects.toBeInstanceOf(StoreError);
    expect((await fixture.row('a')).liveJobs).toBe(1);
    expect(await fixture.schedules.sweep(0)).toEqual([]);
    expect((await fixture.row('a')).liveJobs).toBe(0);
  });

  it('does not remove a schedule whose node registers just then', async () => {
    await fixture.written('a');
    await fixture.query(`update ratchet.schedule set origin = 'annotation'`);
    await fixture.schedules.sweep(0);
    fixture.store.travel(1_000);
    const holder = await fixture.database.connect();
    // What a registration does, held open between its writes and its commit.
    await holder.query(
      `begin; update ratchet.schedule set orphaned_at = null where id = 'a' and orphaned_at is not null`,
    );
    const swept = fixture.schedules.sweep(0);
    await fixture.blocked();
    await holder.query('commit');
    expect(await swept).toEqual([]);
    expect((await fixture.row('a')).removedAt).toBeUndefined();
  });
});
