import { expect, it } from '@jest/globals';
import { defineJob } from 'nestjs-ratchet';
import { begun, ChaosFixture, SOON, until } from './chaos-fixture.js';

/** A node that has claimed far ahead ends without a word, and so does the one that takes its jobs back. */
const chaos = new ChaosFixture('fleet-drain');
const Quick = defineJob<object>('chaos.quick');

it('the node that gives back what another had claimed ahead, in the middle: the next one finishes it', async () => {
  const held = await chaos.enqueue('chaos.hold', {}, 4);
  const quick = await chaos.scheduler.enqueueMany(
    Quick,
    Array.from({ length: 4_000 }, () => ({ payload: {} })),
  );
  const all = [...held, ...quick.map(({ id }) => id)];
  const dead = chaos.start({ ...SOON, concurrency: 8, lanes: { default: { bufferSize: 10_000 } } }, 'a');
  await Promise.all(held.map((job) => dead.until(begun(job))));
  await until(async () => (await running()).length > 2_000);
  dead.kill();
  await until(async () => {
    const rows = await chaos.database.query(
      `select from pg_stat_activity where datname = current_database() and application_name like 'ratchet/a%'`,
    );
    return rows.length === 0;
  });

  // Whoever gives the claims back stands still before the last one.
  const claims = await running();
  const left = ((claims.length - 1) % 1_000) + 1;
  expect(claims.length).toBeGreaterThan(left);
  const gate = await chaos.database.connect();
  await gate.query('select pg_advisory_lock(4711)');
  await chaos.database.query(`
    create function side_gate() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(4711); return new; end $$;
    create trigger side_gate before update on ratchet.job for each row
      when (old.id = '${claims.at(-1)!}' and old.status = 1 and new.status = 0) execute function side_gate()`);
  const drainer = chaos.start({ ...SOON, worker: 'drain' }, 'b');
  await until(async () => {
    const rows = await chaos.database.query(
      `select from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows.length > 0;
  });
  expect(await chaos.database.query('select status, drainer_id from ratchet.bucket')).toEqual([
    { status: 'draining', drainer_id: 'b' },
  ]);
  expect(await running()).toHaveLength(left);
  drainer.kill();
  await drainer.exited;
  const last = chaos.start({ ...SOON, concurrency: 50 }, 'c');
  await last.ready();
  await chaos.database.terminateBackends('ratchet/b%');
  await gate.query('select pg_advisory_unlock(4711)');
  await Promise.all(held.map((id) => chaos.go(id)));
  await chaos.ended(all);
  expect(await chaos.judge(all, { slots: 8 })).toEqual([]);
  const charged = await chaos.database.query<{ id: string; crashes: number }>(
    'select id::text as id, crashes from ratchet.jobs where crashes > 0',
  );
  expect(charged.every(({ crashes }) => crashes === 1)).toBe(true);
  // Those whose handlers ran, and of the slots that were free for others not more than there were.
  expect(charged.map(({ id }) => id)).toEqual(expect.arrayContaining(held));
  expect(charged.length).toBeLessThanOrEqual(8);
  expect(await chaos.database.query('select node_id from ratchet.bucket')).toEqual([{ node_id: 'c' }]);
}, 180_000);

/** Jobs that are claimed, in the order in which they are given back. */
async function running(): Promise<string[]> {
  const rows = await chaos.database.query<{ id: string }>(
    'select id::text as id from ratchet.job where status = 1 order by job.id',
  );
  return rows.map(({ id }) => id);
}
