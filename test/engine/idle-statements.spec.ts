import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { type CoordinatorHealth } from '../../lib/cluster/cluster-coordinator.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { EngineConnection } from '../../lib/store/postgres/connections/engine-connection.js';
import { type AnnotatedSchedule } from '../../lib/jobs/schedule-spec.js';
import { annotated } from '../recurring/recurring-fixture.js';
import { FakeClock, settled } from '../support/fake-clock.js';
import { engineFixture } from './engine-fixture.js';

class Connected extends NoCoordinator {
  override health(): CoordinatorHealth {
    return { state: 'connected' };
  }
}

/** By words of a statement's name or text. */
const TIMERS: [timer: string, pattern: RegExp][] = [
  ['beat', /heartbeat_at = c\.now/],
  ['lease', /\.lease\b/],
  ['poll', /ratchet-exchange|ratchet-foreign/],
  ['fallback', /ratchet-starving-streams/],
  ['sweep', /\blanes\b|ratchet-missing-buckets|ratchet-schedules-sweep/],
  ['reconcile', /b\.status <> 'lost'|j\.bucket = any/],
];
const KINDS = ['beat', 'fallback', 'lease', 'poll', 'reconcile', 'sweep'];
const MINUTES = 10;

describe('what an idle node asks of the database', () => {
  const fixture = engineFixture();
  afterEach(() => void jest.restoreAllMocks());

  /** What a node in deep idle asks for in so many minutes. */
  async function idleStatements(
    schedules: readonly AnnotatedSchedule[] = [],
  ): Promise<ReadonlyMap<string, number>> {
    const clock = new FakeClock();
    const pending = new Set<Promise<unknown>>();
    const counts = new Map<string, number>();
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with the connection that it is called on
    const query = EngineConnection.prototype.query;
    jest.spyOn(EngineConnection.prototype, 'query').mockImplementation(function (
      this: EngineConnection,
      statement,
      parameters,
    ) {
      const shown = `${statement.name ?? ''} ${statement.text}`;
      const timer = TIMERS.find(([, pattern]) => pattern.test(shown))?.[0] ?? shown;
      counts.set(timer, (counts.get(timer) ?? 0) + 1);
      const answer = query.call(this, statement, parameters);
      pending.add(answer);
      const done = (): void => void pending.delete(answer);
      answer.then(done, done);
      return answer;
    });
    /** Time passes second by second, and each second's statements are answered in it. */
    const pass = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        clock.advance(1_000);
        await settled();
        while (pending.size > 0) {
          await Promise.allSettled(pending);
          await settled();
        }
      }
    };
    const coordinator = new Connected();
    const one = await fixture.node({
      handlers: { work: () => {} },
      schedules,
      settings: {
        poll: { burstMs: 500, minMs: 2_000, maxMs: 10_000, deepIdleMs: 60_000, deepIdleAfterMs: 300_000 },
      },
      parts: { clock, coordinator, messages: new ClusterMessages(coordinator, 'one') },
    });
    await one.runtime.start();
    const deep = one.events.next('pace', ({ waitMs }) => waitMs === 60_000);
    await pass(600);
    await deep;
    counts.clear();
    await pass(60 * MINUTES);
    return counts;
  }

  it('is little: less than 20 statements a minute, and what listens', async () => {
    const counts = await idleStatements();
    expect([...counts.keys()].sort()).toEqual(KINDS);
    // Every 10 s: a third of the grace.
    expect(counts.get('beat')).toBe(6 * MINUTES);
    // One lease, taken and given back, for all sweeps.
    expect(counts.get('lease')).toBe(2 * MINUTES);
    expect(counts.get('sweep')).toBe(3 * MINUTES);
    expect(counts.get('reconcile')).toBe(2 * MINUTES);
    // A claim that finds nothing looks whether jobs of other nodes stood in its way. The jitter makes a minute a little shorter.
    expect(counts.get('poll')).toBeLessThanOrEqual(2 * (MINUTES + 2));
    expect(counts.get('fallback')).toBeLessThanOrEqual(2 * (MINUTES + 3));
    expect([...counts.values()].reduce((sum, count) => sum + count, 0)).toBeLessThan(20 * MINUTES);
  });

  it('is no more with a thousand recurring schedules that are not due', async () => {
    const distant = Array.from({ length: 1_000 }, (_, n) =>
      annotated({ id: `distant-${n}`, expression: '@every 3650d' }),
    );
    const counts = await idleStatements(distant);
    expect(await fixture.database.query('select count(*)::int as n from ratchet.schedule')).toEqual([
      { n: 1_000 },
    ]);
    expect([...counts.keys()].sort()).toEqual(KINDS);
    expect(counts.get('beat')).toBe(6 * MINUTES);
    expect(counts.get('lease')).toBe(2 * MINUTES);
    expect(counts.get('sweep')).toBe(3 * MINUTES);
    expect(counts.get('reconcile')).toBe(2 * MINUTES);
    expect(counts.get('poll')).toBeLessThanOrEqual(2 * (MINUTES + 2));
  });
});
