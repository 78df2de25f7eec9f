import { beforeEach, describe, expect, it } from '@jest/globals';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { ClusterCoordinator, type Wakeup, type WakeupHint } from '../../lib/cluster/cluster-coordinator.js';
import { type PriorityRank } from '../../lib/jobs/priority.js';
import { tellSchedule } from '../../lib/recurring/recurring-lane.js';
import { PostgresScheduleStore } from '../../lib/store/postgres/postgres-schedule-store.js';
import { type ScheduleStore } from '../../lib/store/schedule-store.js';
import { deferred } from '../support/engine-node.js';
import { createStore } from '../support/store.js';
import { type Node } from '../engine/engine-fixture.js';
import { annotated, recurringFixture } from './recurring-fixture.js';
import { scheduleSpec } from './schedule-fixture.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const QUICK_BEATS = { heartbeat: { baseMs: 300, graceMs: 1_500, stallMs: 300_000 } };

/** Its wakeups are heard by all other wires of its bus. */
class Wire extends ClusterCoordinator {
  constructor(private readonly hearers: Map<Wire, Set<(wakeup: Wakeup) => void>>) {
    super();
  }

  override notifyNewWork(priority: PriorityRank, source: string, lane: string, hint: WakeupHint = {}): void {
    for (const [wire, listeners] of this.hearers) {
      if (wire === this) continue;
      for (const hear of listeners) setImmediate(() => hear({ priority, source, lane, ...hint }));
    }
  }

  override registerWakeupListener(listener: (wakeup: Wakeup) => void): () => void {
    const own = this.hearers.get(this);
    own?.add(listener);
    return () => void own?.delete(listener);
  }

  override publish(): void {
    // Nobody cancels anything here.
  }

  override registerSignalListener(): () => void {
    return () => undefined;
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Carries wakeups between the nodes of this process. */
class Bus {
  readonly #hearers = new Map<Wire, Set<(wakeup: Wakeup) => void>>();

  wire(): Wire {
    const wire = new Wire(this.#hearers);
    this.#hearers.set(wire, new Set());
    return wire;
  }
}

describe('many nodes and recurring schedules', () => {
  const fixture = recurringFixture();
  const tick = annotated({
    id: 'tick',
    expression: '@every 1s',
    misfire: { catchUp: 1_000 },
    overlap: 'allow',
  });
  beforeEach(() => {
    fixture.runs.length = 0;
  });

  const times = (): number[] => fixture.runs.map(({ scheduledFor }) => scheduledFor.getTime());
  /** Each second once, from the first to the last. */
  function expectEachOnce(): void {
    const sorted = times().sort((a, b) => a - b);
    expect(sorted).toEqual(sorted.map((_, index) => sorted[0]! + index * SECOND_MS));
  }
  const node = (nodeId: string, options: Parameters<typeof fixture.node>[0] = {}): Promise<Node> =>
    fixture.node({ nodeId, handlers: { work: fixture.method() }, schedules: [tick], ...options });

  it('three nodes: one run for each occurrence', async () => {
    const nodes = await Promise.all(['n1', 'n2', 'n3'].map((id) => node(id)));
    await Promise.all(nodes.map(({ runtime }) => runtime.start()));
    await fixture.ran(3);
    await Promise.all(nodes.map(({ runtime }) => runtime.close()));
    expectEachOnce();
    expect(await fixture.database.query('select count(*)::int as n from ratchet.schedule')).toEqual([
      { n: 1 },
    ]);
  });

  it('a node that stands still with the lease in its hand: another fires within seconds, and when it goes on nothing is run again', async () => {
    const [frozen, other] = [await node('frozen'), await node('other', { schedules: [] })];
    await frozen.runtime.start();
    await fixture.ran(1);
    const standing = deferred();
    const reached = deferred();
    frozen.debug.at('recurring.firing', () => {
      reached.resolve();
      return standing.promise;
    });
    await reached.promise;
    const since = performance.now();
    await other.runtime.start();
    await other.events.next('schedule_fired');
    expect(performance.now() - since).toBeLessThan(5_000);
    const superseded = frozen.events.next('schedules_looked');
    standing.resolve();
    await superseded;
    await fixture.ran(times().length + 2);
    await Promise.all([frozen, other].map(({ runtime }) => runtime.close()));
    expectEachOnce();
  });

  it('a node that stops hands over: the other need not wait for its lease', async () => {
    const bus = new Bus();
    const [first, second] = await Promise.all(
      ['first', 'second'].map((id) => node(id, { parts: { messages: new ClusterMessages(bus.wire(), id) } })),
    );
    await first!.runtime.start();
    await fixture.ran(1);
    await second!.runtime.start();
    await second!.events.next('schedules_looked', ({ held }) => held);
    const fired = second!.events.next('schedule_fired');
    await first!.runtime.close();
    const since = performance.now();
    const { scheduledFor } = await fired;
    expect(performance.now() - since).toBeLessThan(2_000);
    await fixture.ran(times().length + 1);
    await second!.runtime.close();
    expect(times()).toContain(scheduledFor.getTime());
    expectEachOnce();
  });

  it('a restart neither loses nor repeats an occurrence', async () => {
    for (let start = 0; start < 3; start += 1) {
      const one = await node('same');
      await one.runtime.start();
      await fixture.ran(times().length + 1);
      await one.runtime.close();
    }
    const last = await node('same');
    const looked = last.events.next('schedules_looked');
    await last.runtime.start();
    await looked;
    await fixture.ran(times().length + 1);
    await last.runtime.close();
    expectEachOnce();
  });

  describe('a schedule that is created elsewhere', () => {
    /** In a process without an engine. */
    async function create(store: ScheduleStore, dueInMs: number): Promise<Date> {
      const now = await store.now();
      const nextAt = new Date(now.getTime() + dueInMs);
      const spec = scheduleSpec({ id: 'made', origin: 'api', owner: undefined, expression: '@every 1h' });
      const anchor = new Date(nextAt.getTime() - HOUR_MS);
      expect(await store.write([{ spec, revision: undefined, anchor, nextAt }])).toEqual(['written']);
      return nextAt;
    }

    it('without a coordinator is heard of with the next heartbeat', async () => {
      const one = await node('hears', { schedules: [], settings: QUICK_BEATS });
      await one.runtime.start();
      const elsewhere = createStore(fixture.database.url);
      await elsewhere.open();
      const nextAt = await create(new PostgresScheduleStore(elsewhere), 700);
      await fixture.ran(1);
      await elsewhere.close();
      expect(fixture.runs).toMatchObject([{ id: 'made', scheduledFor: nextAt }]);
      expect(fixture.runs[0]!.startedAt.getTime() - nextAt.getTime()).toBeLessThan(2_000);
    });

    it('with one is heard of at once', async () => {
      const bus = new Bus();
      const one = await node('hears', {
        schedules: [],
        parts: { messages: new ClusterMessages(bus.wire(), 'hears') },
      });
      await one.runtime.start();
      await one.events.next('schedules_looked');
      await create(fixture.schedules(one), 300);
      const since = performance.now();
      tellSchedule(new ClusterMessages(bus.wire(), 'elsewhere'), 300);
      await fixture.ran(1);
      expect(performance.now() - since).toBeLessThan(3_000);
      expect(fixture.runs).toMatchObject([{ id: 'made' }]);
    });
  });
});
