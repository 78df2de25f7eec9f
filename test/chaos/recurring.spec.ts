import { describe, expect, it } from '@jest/globals';
import { ChaosFixture, size, SOON, until } from './chaos-fixture.js';
import { type WorkerProcess } from './worker-process.js';

/** Schedules that are due each second, while their nodes are killed, frozen and told to stop. */
const chaos = new ChaosFixture('recurring');
const NODES = 5;
const SCRIPT = './recurring-worker.mjs';

/** Runs of both schedules that the side table has seen. */
async function runs(): Promise<number> {
  const [row] = await chaos.database.query('select count(*)::int as n from side_run');
  return row?.['n'] as number;
}
const after = async (more: number): Promise<void> => {
  const before = await runs();
  await until(async () => (await runs()) >= before + more);
};
/** Who fires: the holder of the lease. */
async function leader(nodes: readonly WorkerProcess[]): Promise<WorkerProcess> {
  return until(async () => {
    const [row] = await chaos.database.query(
      `select node_id from ratchet.lease where name = 'ratchet:recurring'`,
    );
    return nodes.find(({ nodeId, alive }) => alive && nodeId === row?.['node_id']);
  });
}

describe('recurring schedules on five nodes', () => {
  it('have every occurrence once, whoever is killed, frozen or told to stop', async () => {
    await chaos.database.query(
      'create table side_run (schedule text, planned timestamptz, previous timestamptz, job uuid, pid int)',
    );
    let made = 0;
    const start = (): WorkerProcess => chaos.start(SOON, `node-${++made}`, { script: SCRIPT });
    const nodes = Array.from({ length: NODES }, start);
    await Promise.all(nodes.map((node) => node.ready()));
    await after(4);
    for (let round = 0; round < size(1, 20); round += 1) {
      const killed = await leader(nodes);
      await killed.end();
      nodes.push(start());
      await after(6);
      const frozen = await leader(nodes);
      frozen.kill('SIGSTOP');
      await after(8);
      frozen.kill('SIGCONT');
      const stopped = await leader(nodes.filter((node) => node !== frozen));
      stopped.kill('SIGTERM');
      await stopped.exited;
      nodes.push(start());
      await after(6);
    }
    for (const node of nodes.filter(({ alive }) => alive)) node.kill('SIGTERM');
    await Promise.all(nodes.map(({ exited }) => exited));

    const { database } = chaos;
    expect(await database.query(`select id from ratchet.schedule order by id`)).toEqual([
      { id: 'cron' },
      { id: 'interval' },
    ]);
    // No gap: each second from the first to the last is there, as a run. (A machine that stands still for ten seconds misses some.)
    expect(
      await database.query(
        `select schedule_id, (count(*) = extract(epoch from max(due_at) - min(due_at)) + 1) as gapless,
                count(*) filter (where outcome = 'enqueued') > 10 as many,
                count(*) filter (where outcome <> 'enqueued') <= 3 as runs
           from ratchet.occurrence group by 1 order by 1`,
      ),
    ).toEqual([
      { schedule_id: 'cron', gapless: true, many: true, runs: true },
      { schedule_id: 'interval', gapless: true, many: true, runs: true },
    ]);
    // One job each; what is left unfinished is live, and waits for a node.
    expect(
      await database.query(
        `select o.due_at from ratchet.occurrence o
          where o.outcome = 'enqueued' and not exists (select from ratchet.jobs j where j.id = o.job_id and j.status in ('succeeded', 'pending'))`,
      ),
    ).toEqual([]);
    expect(
      await database.query(
        `select metadata, count(*) from ratchet.jobs group by metadata having count(*) > 1`,
      ),
    ).toEqual([]);
    // A run of its own for each, and never two jobs for one time.
    expect(
      await database.query(
        `select schedule, planned from side_run group by 1, 2 having count(distinct job) > 1`,
      ),
    ).toEqual([]);
    expect(
      await database.query(
        `select o.due_at from ratchet.occurrence o join ratchet.job_history h on h.id = o.job_id and h.outcome = 'succeeded'
          where not exists (select from side_run r where r.job = o.job_id and r.planned = o.due_at and r.schedule = o.schedule_id)`,
      ),
    ).toEqual([]);
    expect(
      nodes.flatMap(({ events }) => events.filter(({ event }) => event === 'unhandledRejection')),
    ).toEqual([]);
  }, 300_000);
});
