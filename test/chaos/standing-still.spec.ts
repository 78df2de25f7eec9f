import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { begun, ChaosFixture, GRACE_MS, said, SOON, until } from './chaos-fixture.js';
import { type WorkerEvent, type WorkerProcess } from './worker-process.js';

/** Processes that are frozen, or whose event loop is blocked, and go on afterwards: what they still do changes nothing that is not theirs. */
const chaos = new ChaosFixture('standing-still');

describe('SIGSTOP past the grace, and SIGCONT while the heir runs the jobs', () => {
  it('the late node completes, fails, snoozes, reports progress, enqueues children: all refused; then it works on', async () => {
    const ways = ['complete', 'fail', 'snooze'];
    const ids: string[] = [];
    for (const way of ways) ids.push((await chaos.scheduler.enqueueNamed('chaos.zombie', { way })).id);
    const frozen = chaos.start({ ...SOON, concurrency: 3 }, 'a');
    await frozen.until(begun(), 3);
    frozen.kill('SIGSTOP');
    const heir = chaos.start({ ...SOON, concurrency: 3 }, 'b');
    await heir.until(begun(), 3);
    // It finds its go at once when it wakes up.
    for (const id of ids) await chaos.go(id, frozen.pid);
    frozen.kill('SIGCONT');
    for (const jobId of ids) await frozen.until(said('late', { jobId }));
    // Those that ended before they could be told are not.
    expect(frozen.events.filter((event) => event.event === 'abort' && event.reason !== 'lost')).toEqual([]);
    expect(frozen.events.filter(said('child')).map(({ answer }) => answer)).toEqual(
      ids.map(() => 'CLAIM_LOST'),
    );
    expect(
      await chaos.database.query('select status, failures, progress, claim_seq::int from ratchet.jobs'),
    ).toEqual(ids.map(() => ({ status: 'running', failures: 0, progress: null, claim_seq: 3 })));
    // It is a member again, under the next epoch of its id, with as many slots as before.
    const registered = await frozen.until(said('registered'));
    expect(registered.node).toBe('a');
    const more = await chaos.enqueue('chaos.hold', {}, 4);
    const isOne = (event: WorkerEvent): boolean => event.event === 'begin' && more.includes(event.job!);
    await frozen.until(isOne, 3);
    for (const id of [...ids, ...more]) await chaos.go(id);
    await chaos.ended([ids[0]!, ids[1]!, ...more]);
    expect(await mostAtOnce(frozen, more)).toBe(3);
    await until(async () => {
      const children = await chaos.database.query(`select from ratchet.job where name = 'chaos.child'`);
      return children.length === 0;
    });
    const findings = await chaos.judge([...ids, ...more]);
    // The heir has used the retries of the second one up, and has put the third one off for an hour.
    expect(findings.map(({ rule, detail }) => [rule, detail['id']])).toEqual([
      ['every job ends', ids[2]],
      ['nothing ends in the dead letter but for its crashes', ids[1]],
    ]);
    const late = await chaos.database.query(
      'select job_id as id, late_outcome from ratchet.execution where late_at is not null',
    );
    expect(late).toHaveLength(3);
    const children = await chaos.database.query(
      `select payload from ratchet.jobs where name = 'chaos.child' and payload->>'seq' = '1'`,
    );
    expect(children).toEqual([]);
  }, 90_000);
});

describe('a handler that blocks the event loop', () => {
  it('for three times the grace: the heartbeat goes on, and the job runs once', async () => {
    const [id] = await chaos.enqueue('chaos.spin', { ms: 3 * GRACE_MS }, 1);
    const blocked = chaos.start({ ...SOON, concurrency: 1 }, 'a');
    await blocked.until(begun(id));
    const other = chaos.start(SOON, 'b');
    const lag = await blocked.until((event) => event.event === 'loop_lag' && event.lagMs! > GRACE_MS);
    expect(lag.handlers).toEqual(['chaos.spin']);
    await chaos.ended([id!]);
    expect(await chaos.scheduler.get(id!)).toMatchObject({ status: 'succeeded', executions: 1, crashes: 0 });
    expect(other.events.filter(said('node_dead'))).toEqual([]);
    expect(await chaos.judge([id!])).toEqual([]);
  }, 60_000);

  it('beyond the stall limit: the node is declared dead, the job runs elsewhere, the late outcome is refused', async () => {
    const [id] = await chaos.enqueue('chaos.hold', {}, 1);
    const options = { heartbeat: { ...SOON.heartbeat, stallLimit: GRACE_MS / 2 } };
    const blocked = chaos.start({ ...options, concurrency: 2 }, 'a');
    await blocked.until(begun(id));
    const over = join(await mkdtemp(join(tmpdir(), 'ratchet-chaos-')), 'over');
    const [spin] = await chaos.enqueue('chaos.spin', { until: over }, 1);
    await blocked.until(begun(spin));
    const heir = chaos.start({ ...SOON, concurrency: 1 }, 'b');
    await heir.until(begun(id));
    await chaos.go(id!, blocked.pid);
    await writeFile(over, '');
    await blocked.until(said('late', { jobId: id! }));
    expect(await chaos.scheduler.get(id!)).toMatchObject({ status: 'running', crashes: 1 });
    await chaos.go(id!);
    await chaos.ended([id!, spin!]);
    expect(await chaos.judge([id!, spin!])).toEqual([]);
    await rm(dirname(over), { recursive: true });
  }, 90_000);
});

/** How many of these jobs the process ran at once, at most. */
async function mostAtOnce(worker: WorkerProcess, ids: readonly string[]): Promise<number> {
  const [row] = await chaos.database.query<{ n: number }>(
    `select max((select count(*) from side b where b.pid = a.pid and b.job = any ($2) and b.began <= a.began
                    and coalesce(b.ended, 'infinity') > a.began))::int as n
       from side a where a.pid = $1 and a.job = any ($2)`,
    [worker.pid, ids],
  );
  return row!.n;
}
