import { beforeEach, describe, expect, it } from '@jest/globals';
import { Maintenance } from '../../lib/maintenance/maintenance.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { tellSchedule } from '../../lib/recurring/recurring-lane.js';
import { ScheduleSweep } from '../../lib/recurring/schedule-sweep.js';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { type Node } from '../engine/engine-fixture.js';
import { FakeClock, settled } from '../support/fake-clock.js';
import { registerTestNode } from '../support/store.js';
import { annotated, recurringFixture } from './recurring-fixture.js';
import { scheduleSpec } from './schedule-fixture.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CONVERGENCE_MS = 5 * MINUTE_MS;

describe('schedules whose annotation is gone', () => {
  const fixture = recurringFixture();
  beforeEach(() => {
    fixture.runs.length = 0;
  });

  const old = annotated({ id: 'old', expression: '@every 1h' });
  const kept = annotated({ id: 'kept', expression: '@every 1h' });

  function sweepOf(node: Node): { sweep: ScheduleSweep; lines: string[] } {
    const lines: string[] = [];
    const logger = { warn: (line: string): void => void lines.push(line) };
    const store = fixture.schedules(node);
    return {
      lines,
      sweep: new ScheduleSweep({ store, convergenceMs: CONVERGENCE_MS, historyMs: HOUR_MS, logger }),
    };
  }

  it('go only when no node has had them for the convergence window: those of the old version may live on', async () => {
    const handlers = { work: fixture.method() };
    const before = await fixture.node({ nodeId: 'before', handlers, schedules: [old, kept] });
    await before.runtime.start();
    const after = await fixture.node({ nodeId: 'after', handlers, schedules: [kept] });
    await after.runtime.start();
    const { sweep, lines } = sweepOf(after);
    const look = async (afterMs: number): Promise<Date | undefined> => {
      after.real.travel(afterMs);
      await sweep.run();
      return (await fixture.row('old')).removedAt;
    };
    expect(await look(0)).toBeUndefined();
    expect(await look(HOUR_MS)).toBeUndefined();
    await before.runtime.close();
    // From now on it has no node: the window begins.
    expect(await look(HOUR_MS)).toBeUndefined();
    expect(await look(HOUR_MS + CONVERGENCE_MS - 1_000)).toBeUndefined();
    expect(await look(HOUR_MS + CONVERGENCE_MS + 1_000)).toBeInstanceOf(Date);
    expect(lines).toEqual([expect.stringMatching(/^1 recurring schedule removed.*: "old"$/)]);
    expect(await fixture.row('kept')).toMatchObject({ removedAt: undefined, nextAt: expect.any(Date) });
    // It never fires again, whatever passes.
    const looked = after.events.next('schedules_looked', ({ due }) => due > 0);
    after.real.travel(9 * HOUR_MS);
    tellSchedule(after.messages);
    expect(await looked).toMatchObject({ due: 1 });
    await fixture.ran(1);
    expect(fixture.runs.map(({ id }) => id)).toEqual(['kept']);
  });

  it('come back with the node that had them, when it was only cut off; what others have changed meanwhile stays', async () => {
    const handlers = { work: fixture.method() };
    const one = await fixture.node({ nodeId: 'one', handlers, schedules: [old, kept] });
    await one.runtime.start();
    const { sweep } = sweepOf(one);
    await fixture.database.query("update ratchet.schedule set name = 'of a newer version' where id = 'kept'");
    await fixture.database.query(
      "update ratchet.schedule set removed_at = now(), next_at = null, revision = nextval('ratchet.schedule_revision') where id = 'old'",
    );
    const registered = one.events.next('schedules_registered');
    await fixture.database.query('with gone as (delete from ratchet.node) delete from ratchet.bucket');
    one.messages.newWork('default', 2);
    expect(await registered).toEqual({ created: [], changed: ['old'], unchanged: 0 });
    expect(await fixture.row('old')).toMatchObject({ removedAt: undefined, nextAt: expect.any(Date) });
    expect(await fixture.row('kept')).toMatchObject({ name: 'of a newer version' });
    await sweep.run();
    expect(await fixture.row('old')).toMatchObject({ removedAt: undefined });
  });

  it('never those that were created in code', async () => {
    const one = await fixture.node({ handlers: { work: fixture.method() } });
    await one.runtime.start();
    const store = fixture.schedules(one);
    const spec = scheduleSpec({ id: 'made', origin: 'api', owner: undefined });
    await store.write([
      { spec, revision: undefined, anchor: new Date(), nextAt: new Date(Date.now() + HOUR_MS) },
    ]);
    const { sweep, lines } = sweepOf(one);
    for (const afterMs of [0, HOUR_MS / 2]) {
      one.real.travel(afterMs);
      await sweep.run();
    }
    expect(await fixture.row('made')).toMatchObject({ removedAt: undefined, nextAt: expect.any(Date) });
    expect(lines).toEqual([]);
  });

  it('are looked for by the maintenance, with the other sweeps, and occurrences are forgotten with the history', async () => {
    const one = await fixture.node({ handlers: { work: fixture.method() }, schedules: [old] });
    await one.runtime.start();
    await fixture.away('old', '1 second');
    tellSchedule(one.messages);
    await fixture.ran(1);
    await one.runtime.close();
    const two = await fixture.node({});
    const node = await registerTestNode(two.real);
    const { sweep, lines } = sweepOf(two);
    const events = new EngineEvents();
    const clock = new FakeClock();
    const errors: unknown[] = [];
    const maintenance = new Maintenance({
      node,
      store: two.real,
      locks: new PostgresLockStore(two.real),
      clock,
      events,
      schedules: sweep,
      retention: { historyMs: HOUR_MS, executionMs: HOUR_MS, deadLetterMs: HOUR_MS },
      maxCrashRedeliveries: 3,
      logger: { log: () => undefined, warn: () => undefined, error: () => undefined },
      onError: (_task, error) => errors.push(error),
    });
    const round = async (task: string, ms: number): Promise<void> => {
      const done = events.next('maintenance', (each) => each.task === task && each.outcome === 'done');
      // The round before has set its timer.
      await settled();
      clock.advance(ms);
      await done;
    };
    const first = events.next('maintenance', ({ task }) => task === 'ratchet:sweeps');
    maintenance.start();
    await first;
    two.real.travel(CONVERGENCE_MS + 1_000);
    await round('ratchet:sweeps', MINUTE_MS);
    expect(lines).toHaveLength(1);
    expect((await fixture.occurrences('old')).length).toBe(1);
    two.real.travel(2 * HOUR_MS);
    await round('ratchet:retention', HOUR_MS);
    expect(await fixture.occurrences('old')).toEqual([]);
    expect(await fixture.schedules(two).byIds(['old'])).toMatchObject({ schedules: [] });
    await maintenance.stop();
    expect(errors).toEqual([]);
  });
});
