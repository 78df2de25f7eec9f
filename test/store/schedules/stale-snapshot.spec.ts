import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { clientConfigOf } from '../../../lib/store/postgres/connections/connection-config.js';
import { type PostgresJobStore } from '../../../lib/store/postgres/postgres-job-store.js';
import { PostgresScheduleStore } from '../../../lib/store/postgres/postgres-schedule-store.js';
import { createStore } from '../../support/store.js';
import { ScheduleFixture } from './schedule-fixture.js';

const GATE = 77;

/**
 * A statement looks for live jobs in its snapshot, and takes the row of the schedule later. Here it is held in between, by a clock that
 * waits, while another node makes a job.
 */
describe('a statement whose snapshot is older than its lock', () => {
  let fixture: ScheduleFixture;
  let gate: pg.Client;
  let late: PostgresJobStore;
  let schedules: PostgresScheduleStore;

  beforeAll(async () => {
    fixture = await ScheduleFixture.open();
    await fixture.query(`
      create schema held;
      create function held.clock_timestamp() returns timestamptz volatile language plpgsql as $$
      begin
        perform pg_advisory_xact_lock_shared(${GATE});
        return pg_catalog.clock_timestamp();
      end $$`);
    gate = await fixture.database.connect();
    late = createStore(fixture.database.url, {
      engine: async () => ({
        ...(await clientConfigOf(fixture.database.url)()),
        options: '-c search_path=held,pg_catalog',
      }),
    });
    schedules = new PostgresScheduleStore(late);
  });
  afterAll(async () => {
    await late.close();
    await fixture.close();
  });

  /** Sends `statement`, and lets it go on when `meanwhile` has happened. */
  async function holding<T>(statement: () => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> {
    await gate.query('select pg_advisory_lock($1)', [GATE]);
    const answer = statement();
    await fixture.blocked();
    await meanwhile();
    await gate.query('select pg_advisory_unlock($1)', [GATE]);
    return answer;
  }

  it('does not fire beside a job that was triggered', async () => {
    const [row] = await fixture.written('a');
    const trigger = { id: 'a', jobId: uuidv7(), ifBusy: undefined };
    const outcomes = await holding(
      () => schedules.fire([fixture.firing(row!)]),
      () => fixture.schedules.trigger(trigger),
    );
    expect(outcomes).toEqual([{ id: 'a', outcome: 'superseded' }]);
    expect((await fixture.row('a')).liveJobs).toBe(1);
    const [again] = await fixture.schedules.fire([fixture.firing(row!)]);
    expect(again).toMatchObject({ outcome: 'fired', jobs: [], skipped: [row!.nextAt] });
    await fixture.clear();
  });

  it('does not fire what was changed', async () => {
    const [row] = await fixture.written('a');
    const write = {
      spec: { ...row!, name: 'changed' },
      revision: row!.revision,
      anchor: row!.anchor,
      nextAt: 'keep',
    } as const;
    const outcomes = await holding(
      () => schedules.fire([fixture.firing(row!)]),
      () => fixture.schedules.write([write]),
    );
    expect(outcomes).toEqual([{ id: 'a', outcome: 'superseded' }]);
    await fixture.clear();
  });
});
