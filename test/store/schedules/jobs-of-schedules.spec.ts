import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { trigger } from '../../../lib/store/postgres/statements/schedules/trigger.js';
import { SCHEMA } from '../exchange-fixture.js';
import { turn } from '../../support/store.js';
import { ScheduleFixture } from './schedule-fixture.js';

/** An occurrence's job is a job like any other. */
describe('jobs of schedules', () => {
  let fixture: ScheduleFixture;

  beforeAll(async () => {
    fixture = await ScheduleFixture.open();
  });
  afterEach(() => fixture.clear());
  afterAll(() => fixture.close());

  it('are found with their payload, wherever it rests', async () => {
    const rows = await fixture.written('small', 'large');
    await fixture.query(
      `update ratchet.schedule set payload = jsonb_build_object('text', repeat('x', case id when 'large' then 5000 else 900 end))`,
    );
    const firings = rows.map((row) => fixture.firing(row));
    await fixture.schedules.fire(firings);
    expect(
      await fixture.query('select length(payload::text) > 4000 as large from ratchet.job_payload'),
    ).toEqual([{ large: true }]);
    const [small, large] = await Promise.all(firings.map(({ runs }) => fixture.store.get(runs[0]!.jobId)));
    expect(small!.payload).toEqual({ text: 'x'.repeat(900) });
    expect(large!.payload).toEqual({ text: 'x'.repeat(5_000) });
    expect(large).toMatchObject({ status: 'pending', tags: [], metadata: { 'ratchet:schedule': 'large' } });
    await fixture.store.cancel(large!.id);
    expect((await fixture.store.get(large!.id))?.payload).toEqual({ text: 'x'.repeat(5_000) });
  });

  it('leave a failure handler’s job that is no occurrence, so that the next one runs', async () => {
    const [row] = await fixture.written('a');
    await fixture.schedules.fire([fixture.firing(row!)]);
    const node = await fixture.store.registerNode({
      id: 'n',
      host: 'h',
      pid: 1,
      version: '1',
      lanes: ['default'],
      handlers: ['test.job'],
      failureHandlers: [{ jobName: 'test.job', lane: 'failures' }],
    });
    const bucket = await fixture.store.openBucket(node, 'default');
    const [job] = (await fixture.store.exchange(turn(bucket))).claimed;
    const settle = [{ id: job!.id, claimSeq: job!.claimSeq, outcome: 'failed' as const, error: 'broken' }];
    await fixture.store.exchange(turn(bucket, { settle, want: 0 }));
    const [failure] = (await fixture.store.find({ names: ['test.job#failed'] }, { limit: 1 })).jobs;
    expect(failure).toMatchObject({ status: 'pending', metadata: undefined });
    expect((failure!.payload as { job: unknown }).job).toMatchObject({
      metadata: { 'ratchet:schedule': 'a' },
    });
    expect((await fixture.row('a')).liveJobs).toBe(0);
    const [outcome] = await fixture.schedules.fire([fixture.firing(await fixture.row('a'))]);
    expect(outcome).toMatchObject({ outcome: 'fired', skipped: [] });
  });

  it('are seen by a trigger that waited for the one before it', async () => {
    await fixture.written('a');
    const other = await fixture.database.connect();
    await other.query('begin');
    await other.query(trigger(SCHEMA).text, [0, 'a', uuidv7(), null, null]);
    const outcome = fixture.schedules.trigger({ id: 'a', jobId: uuidv7(), ifBusy: undefined });
    await fixture.blocked();
    await other.query('commit');
    expect(await outcome).toMatchObject({ outcome: 'skipped' });
    expect((await fixture.row('a')).liveJobs).toBe(1);
  });

  it('of a trigger leave the times of the plan alone, which would not run otherwise', async () => {
    const [row] = await fixture.written('a');
    // From the planned time on, of each second that one and the millisecond after it are free.
    await fixture.query(
      `insert into ratchet.occurrence (schedule_id, due_at, through_at, outcome, decided_at)
       select 'a', t.at, t.at, 'skipped', t.at
         from generate_series(0, 9999) ms cross join lateral (select $1::timestamptz + ms * interval '1 millisecond' as at) t
        where ms % 1000 not in (0, 1)`,
      [row!.nextAt],
    );
    const outcome = await fixture.schedules.trigger({ id: 'a', jobId: uuidv7(), ifBusy: 'run' });
    const at = outcome?.outcome === 'enqueued' ? outcome.job.at.getTime() : Number.NaN;
    expect((at - row!.nextAt!.getTime()) % 1_000).toBe(1);
    const [fired] = await fixture.schedules.fire([fixture.firing(await fixture.row('a'))]);
    expect(fired).toMatchObject({ outcome: 'fired', skipped: [row!.nextAt] });
  });

  it('of another database clock are due by that clock', async () => {
    fixture.store.travel(10 * 86_400_000);
    const [row] = await fixture.written('a');
    const { due, now } = await fixture.look();
    expect(due).toHaveLength(1);
    expect(now.getTime()).toBeGreaterThan(Date.now() + 9 * 86_400_000);
    const [outcome] = await fixture.schedules.fire([fixture.firing(row!)]);
    expect(outcome).toMatchObject({ outcome: 'fired', jobs: [{ dueInMs: 0 }] });
    const [occurrence] = await fixture.schedules.occurrences({ scheduleId: 'a', limit: 1 });
    expect(occurrence!.decidedAt.getTime()).toBeGreaterThanOrEqual(now.getTime());
    fixture.store.travel(0);
    expect((await fixture.look()).due).toEqual([]);
  });

  it('are canceled with their schedule, however many there are', async () => {
    const [row] = await fixture.written('a');
    const runs = Array.from({ length: 1_200 }, (_, n) => ({
      at: new Date(row!.nextAt!.getTime() + n),
      jobId: uuidv7(),
      delayMs: 0,
      missed: 0,
      ifBusy: 'run' as const,
    }));
    const [outcome] = await fixture.schedules.fire([fixture.firing(row!, { runs })]);
    expect(outcome).toMatchObject({ outcome: 'fired', jobs: { length: 1_200 } });
    const [deleted] = await fixture.schedules.delete(['a']);
    expect([...deleted!.canceled].sort()).toEqual(runs.map(({ jobId }) => jobId).sort());
    expect(await fixture.query('select from ratchet.job union all select from ratchet.occurrence')).toEqual(
      [],
    );
  });

  it('a batch of schedules with large payloads comes in parts', async () => {
    await fixture.written('a', 'b', 'c');
    await fixture.query(`
      update ratchet.schedule set payload = (select to_jsonb(string_agg(md5(g::text), '')) from generate_series(1, 160000) g)
       where id in ('a', 'b')`);
    const first = await fixture.look();
    expect(first.due.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(first.more).toBe(true);
    await fixture.schedules.fire(first.due.map((due) => fixture.firing(due)));
    expect(await fixture.look()).toMatchObject({ due: [{ id: 'c' }], more: false });
  });
});
