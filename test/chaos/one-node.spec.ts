import { describe, expect, it } from '@jest/globals';
import { begun, ChaosFixture, size, until } from './chaos-fixture.js';

/** One node id, real processes, real kills: what was enqueued ends once, whatever happens to the process. */
const chaos = new ChaosFixture('as-it-is');

describe('SIGKILL', () => {
  it('again and again: every job ends once, failures are retried, nothing is recorded twice', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 150; n++) {
      ids.push((await chaos.scheduler.enqueueNamed('chaos.work', { ms: n % 20, failures: n % 3 })).id);
    }
    const options = { concurrency: 10, maxCrashRedeliveries: 1000 };
    for (let kills = 0; kills < size(3, 6); kills++) {
      const worker = chaos.start(options);
      await worker.ready();
      await worker.until(begun(), 5 + kills * 4);
      worker.kill();
      await worker.exited;
    }
    const last = chaos.start(options);
    await last.ready();
    await chaos.ended(ids);
    expect(await chaos.judge(ids, { budget: 1000 })).toEqual([]);
    expect(
      await chaos.database.query('select status, count(*)::int as n from ratchet.jobs group by status'),
    ).toEqual([{ status: 'succeeded', n: 150 }]);
    expect(last.events.filter((e) => e.event === 'unhandledRejection')).toEqual([]);
  }, 60_000);

  it('charges exactly the executions that had begun, and no retry; they run again as soon as the id is back', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 60; n++) ids.push((await chaos.scheduler.enqueueNamed('chaos.hold', {})).id);
    const first = chaos.start({ concurrency: 50 });
    await first.until(begun(), 50);
    first.kill();
    await first.exited;
    const second = chaos.start({ concurrency: 60 });
    await second.until(begun(), 60);
    expect(
      await chaos.database.query(
        'select crashes, failures, count(*)::int as n from ratchet.job group by crashes, failures order by crashes',
      ),
    ).toEqual([
      { crashes: 0, failures: 0, n: 10 },
      { crashes: 1, failures: 0, n: 50 },
    ]);
    expect(
      await chaos.database.query(
        'select outcome, error, count(*)::int as n from ratchet.execution group by outcome, error',
      ),
    ).toEqual([{ outcome: 'crashed', error: 'node node-a stopped; outcome unknown', n: 50 }]);
    await Promise.all(ids.map((id) => chaos.go(id)));
    await chaos.ended(ids);
    expect(await chaos.judge(ids)).toEqual([]);
  }, 60_000);

  it('a poison pill reaches the dead letter after its third redelivery; the innocent do not', async () => {
    const poison = await chaos.scheduler.enqueueNamed('chaos.poison', {});
    const innocents: string[] = [];
    for (let n = 0; n < 10; n++)
      innocents.push((await chaos.scheduler.enqueueNamed('chaos.work', { ms: 1 })).id);
    const over = chaos.ended([poison.id, ...innocents]).then(() => false);
    let deaths = 0;
    const supervise = async (): Promise<void> => {
      for (;;) {
        const worker = chaos.start({ concurrency: 4 });
        const dead = worker.exited.then(() => true);
        if (!(await Promise.race([dead, over]))) return;
        deaths++;
      }
    };
    await supervise();
    expect(deaths).toBe(4);
    expect(await chaos.scheduler.get(poison.id)).toMatchObject({ status: 'failed', crashes: 4, failures: 0 });
    for (const id of innocents) expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded' });
  }, 60_000);
});

describe('SIGSTOP', () => {
  it('a frozen process whose id was taken over is fenced: its late outcome changes nothing, and is told in its own row', async () => {
    const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
    const frozen = chaos.start();
    await frozen.until(begun(id));
    frozen.kill('SIGSTOP');
    const heir = chaos.start();
    await heir.until(begun(id));
    // The heir is in the middle of it when the frozen one wakes up and finishes.
    frozen.kill('SIGCONT');
    await chaos.go(id, frozen.pid);
    const late = await until(async () => {
      const rows = await chaos.database.query(
        'select late_outcome from ratchet.execution where job_id = $1 and late_at is not null',
        [id],
      );
      return rows[0];
    });
    expect(late).toEqual({ late_outcome: 'succeeded' });
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'running' });
    await chaos.go(id, heir.pid);
    await chaos.ended([id]);
    expect(await chaos.scheduler.get(id)).toMatchObject({
      status: 'succeeded',
      result: { pid: heir.pid },
      crashes: 1,
    });
    expect(await chaos.judge([id])).toEqual([]);
    // It does not take the id back: two live processes would depose each other for ever.
    const nodes = await until(async () => {
      const rows = await chaos.database.query<{ id: string }>('select id from ratchet.node order by id');
      return rows.length === 2 && rows;
    });
    expect(nodes[0]).toEqual({ id: 'node-a' });
    expect(nodes[1]!.id).toMatch(/^node-a~[0-9a-f]{8}$/);
  }, 60_000);
});

describe('SIGTERM', () => {
  it('waits for the running job, records it, and the process ends by itself', async () => {
    const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
    const worker = chaos.start();
    await worker.until(begun(id));
    worker.kill('SIGTERM');
    await chaos.go(id);
    expect(await worker.exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded', crashes: 0, failures: 0 });
    expect(await chaos.database.query('select id from ratchet.node')).toEqual([]);
    expect(await chaos.database.query('select id from ratchet.bucket')).toEqual([]);
  }, 30_000);

  it('after the timeout hands a job back that ignores its signal, charging nobody', async () => {
    const { id } = await chaos.scheduler.enqueueNamed('chaos.hold', {});
    const worker = chaos.start({ drainTimeout: '300ms' });
    await worker.until(begun(id));
    worker.kill('SIGTERM');
    expect(await worker.exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(worker.events).toContainEqual(
      expect.objectContaining({ event: 'abort', job: id, reason: 'shutdown' }),
    );
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'pending', crashes: 0, failures: 0 });
    expect(await chaos.database.query('select outcome, error from ratchet.execution')).toEqual([
      { outcome: 'released', error: 'node node-a shut down; job released' },
    ]);
  }, 30_000);
});
