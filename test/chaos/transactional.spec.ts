import { describe, expect, it } from '@jest/globals';
import { ChaosFixture, until } from './chaos-fixture.js';

/** Processes that are killed at the commit of a transactional handler. */
const chaos = new ChaosFixture('transactional');
const SCRIPT = './transactional-worker.mjs';

async function notes(): Promise<string[]> {
  const rows = await chaos.database.query<{ text: string }>('select text from note');
  return rows.map(({ text }) => text);
}

async function locked(id: string): Promise<boolean> {
  const free = await chaos.database.query('select from ratchet.job where id = $1 for update skip locked', [
    id,
  ]);
  return free.length === 0;
}

describe('a process that is killed', () => {
  it('right before the commit leaves neither rows nor an outcome, and the job runs again', async () => {
    await chaos.database.query('create table note (text text)');
    const { id } = await chaos.scheduler.enqueueNamed('chaos.write', {});
    const killed = chaos.start({ kill: 'before' }, 'node-a', { script: SCRIPT });
    expect(await killed.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(await notes()).toEqual([]);
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'running' });
    chaos.start({}, 'node-a', { script: SCRIPT });
    await chaos.ended([id]);
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded', crashes: 1 });
    expect(await notes()).toEqual(['execution 2']);
  }, 60_000);

  it('right after the commit leaves both', async () => {
    await chaos.database.query('create table note (text text)');
    const { id } = await chaos.scheduler.enqueueNamed('chaos.write', {});
    const killed = chaos.start({ kill: 'after' }, 'node-a', { script: SCRIPT });
    expect(await killed.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(await notes()).toEqual(['execution 1']);
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded', crashes: 0 });
  }, 60_000);
});

describe('a process that freezes right before the commit', () => {
  it('does not keep the row of its job, and its handler runs again', async () => {
    await chaos.database.query('create table note (text text)');
    const { id } = await chaos.scheduler.enqueueNamed('chaos.write', {});
    // Longer than the test: nobody may take it for dead.
    const worker = chaos.start({ freeze: true, heartbeat: { grace: '5m' } }, 'node-a', { script: SCRIPT });
    await worker.until(({ event }) => event === 'freezing');
    expect(await locked(id)).toBe(true);
    await until(async () => !(await locked(id)));
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'running' });
    expect(await notes()).toEqual([]);
    worker.kill('SIGCONT');
    await chaos.ended([id]);
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'succeeded', failures: 1, crashes: 0 });
    expect(await notes()).toEqual(['execution 2']);
  }, 60_000);

  it('leaves a job that somebody else ends meanwhile to them', async () => {
    await chaos.database.query('create table note (text text)');
    const { id } = await chaos.scheduler.enqueueNamed('chaos.write', {});
    const worker = chaos.start({ freeze: true, heartbeat: { grace: '5m' } }, 'node-a', { script: SCRIPT });
    await worker.until(({ event }) => event === 'freezing');
    // Until the server ends the session that holds the row, a cancel may run into its lock timeout.
    const refusals: unknown[] = [];
    await until(() => chaos.scheduler.cancel(id).catch((error: unknown) => void refusals.push(error)));
    expect(refusals).toEqual(
      refusals.map(() => expect.objectContaining({ code: 'JOB_ROW_HELD', retryable: true })),
    );
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'canceled' });
    worker.kill('SIGCONT');
    const next = await chaos.scheduler.enqueueNamed('chaos.write', {});
    await chaos.ended([next.id]);
    expect(await chaos.scheduler.get(id)).toMatchObject({ status: 'canceled' });
    expect(await notes()).toEqual(['execution 1']);
  }, 60_000);
});
