import { expect, it } from '@jest/globals';
import { defineJob } from 'nestjs-ratchet';
import { ChaosFixture, SOON, until } from './chaos-fixture.js';

/** A node that has claimed far ahead ends without a word, and so does the one that takes its jobs back. */
const chaos = new ChaosFixture('fleet-drain');
const Quick = defineJob<object>('chaos.quick');

it('the node that gives back what another had claimed ahead, in the middle: the next one finishes it', async () => {
  const held = await chaos.enqueue('chaos.hold', {}, 4);
  const dead = chaos.start({ ...SOON, concurrency: 4, lanes: { default: { bufferSize: 10_000 } } }, 'a');
  await Promise.all(held.map((job) => dead.until((event) => event.event === 'begin' && event.job === job)));
  const handles = await chaos.scheduler.enqueueMany(
    Quick,
    Array.from({ length: 2_500 }, () => ({ payload: {} })),
  );
  const ahead = handles.map(({ id }) => id);
  await until(async () => (await running()) === 2_504);

  // Whoever gives the claims back stands still before one of the third thousand.
  const gate = await chaos.database.connect();
  await gate.query('select pg_advisory_lock(4711)');
  await chaos.database.query(`
    create function side_gate() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(4711); return new; end $$;
    create trigger side_gate before update on ratchet.job for each row
      when (old.id = '${ahead.toSorted()[2_300]!}' and old.status = 1 and new.status = 0) execute function side_gate()`);
  const drainer = chaos.start({ ...SOON, worker: 'drain' }, 'b');
  await drainer.ready();
  dead.kill();
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
  expect(await running()).toBe(504);
  drainer.kill();
  await drainer.exited;
  const last = chaos.start({ ...SOON, concurrency: 50 }, 'c');
  await last.ready();
  await chaos.database.terminateBackends('ratchet/b%');
  await gate.query('select pg_advisory_unlock(4711)');
  await Promise.all(held.map((id) => chaos.go(id)));
  await chaos.ended([...held, ...ahead]);
  expect(await chaos.judge([...held, ...ahead], { slots: 4 })).toEqual([]);
  const charged = await chaos.database.query<{ id: string }>(
    'select id::text as id from ratchet.jobs where crashes > 0 order by id',
  );
  expect(charged.map(({ id }) => id)).toEqual([...held].sort());
  expect(await chaos.database.query('select node_id from ratchet.bucket')).toEqual([{ node_id: 'c' }]);
}, 180_000);

async function running(): Promise<number> {
  const [row] = await chaos.database.query<{ n: number }>(
    'select count(*)::int as n from ratchet.job where status = 1',
  );
  return row!.n;
}
