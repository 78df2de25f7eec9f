import { describe, expect, it } from '@jest/globals';
import { begun, ChaosFixture, until } from './chaos-fixture.js';

/** Short, so that a job may last three times as long. */
const GRACE_MS = 1_000;
const options = { heartbeat: { grace: GRACE_MS, interval: 300 }, drainTimeout: '30s', concurrency: 5 };
const chaos = new ChaosFixture('shutdown');

interface NodeRow {
  readonly state: string;
  readonly epoch: string;
  readonly sinceMs: number;
}

/** The row of the node, once it is so. */
async function nodeRow(id: string, is: (row: NodeRow) => boolean): Promise<NodeRow> {
  return until(async () => {
    const [row] = await chaos.database.query<NodeRow>(
      `select state, epoch::text, (extract(epoch from heartbeat_at - started_at) * 1000)::float8 as "sinceMs"
         from ratchet.node where id = $1`,
      [id],
    );
    return row && is(row) && row;
  });
}

const executions = (job: string): Promise<{ outcome: string; node: string }[]> =>
  chaos.database.query('select outcome, node from ratchet.executions where job_id = $1 order by claim_seq', [
    job,
  ]);

describe('a signal', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: a job of three times the grace runs once, with heartbeats to its end, and nobody takes it',
    async (signal) => {
      const first = chaos.start(options, 'node-a');
      await first.ready();
      const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
      await first.until(begun(id));
      const second = chaos.start(options, 'node-b');
      await second.ready();
      first.kill(signal);
      const draining = await nodeRow('node-a', ({ state }) => state === 'draining');
      await nodeRow('node-a', ({ sinceMs }) => sinceMs > draining.sinceMs + 3 * GRACE_MS);
      await chaos.go(id);
      expect(await first.exited).toEqual({ code: null, signal });
      expect(await executions(id)).toEqual([{ outcome: 'succeeded', node: 'node-a' }]);
      expect(second.events.filter(begun())).toEqual([]);
      expect(await chaos.database.query('select id from ratchet.node')).toEqual([{ id: 'node-b' }]);
      expect(first.log.join('\n')).not.toMatch(/STORE_CLOSED|drain failed/);
    },
    60_000,
  );

  it.each([
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGINT'],
    ['SIGTERM', 'SIGINT'],
  ] as const)(
    '%s and then %s: the job is given back at once, and the process ends',
    async (firstSignal, secondSignal) => {
      const worker = chaos.start(options, 'node-a');
      await worker.ready();
      const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
      await worker.until(begun(id));
      worker.kill(firstSignal);
      await nodeRow('node-a', ({ state }) => state === 'draining');
      expect(worker.alive).toBe(true);
      const sentMs = performance.now();
      worker.kill(secondSignal);
      // By Nest, which sends the first one again.
      expect(await worker.exited).toEqual({ code: null, signal: firstSignal });
      expect(performance.now() - sentMs).toBeLessThan(2_000);
      expect(await executions(id)).toMatchObject([{ outcome: 'released', node: 'node-a' }]);
      expect(
        await chaos.database.query('select status, crashes, failures from ratchet.jobs where id = $1', [id]),
      ).toEqual([{ status: 'pending', crashes: 0, failures: 0 }]);
      expect(await chaos.database.query('select id from ratchet.node')).toEqual([]);
      expect(worker.log.join('\n')).toContain(`(${secondSignal} ended the wait): given back, uncharged`);
      expect(worker.log.join('\n')).not.toMatch(/STORE_CLOSED|drain failed/);
    },
    60_000,
  );
});
