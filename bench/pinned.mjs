/**
 * A pinned snapshot: somebody's transaction that stays open for a minute keeps every dead index entry alive. Two figures: jobs
 * a second under load with the pin, as a part of those without; and the wait of jobs that trickle in at 500 a second
 * while the dead entries stand.
 */
import pg from 'pg';
import { Noop, startApp } from './app.mjs';
import { fill } from './turns.mjs';
import { median } from './measures.mjs';

const LOAD_SECONDS = 30;
const TRICKLE_SECONDS = 60;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Jobs a second over the second half of the load, while the backlog never ends. */
async function loaded(url, jobs) {
  await fill(url, jobs);
  let done = 0;
  const worker = await startApp(url, { concurrency: 100 }, () => done++);
  await sleep((LOAD_SECONDS / 2) * 1000);
  const before = done;
  await sleep((LOAD_SECONDS / 2) * 1000);
  const rate = (done - before) / (LOAD_SECONDS / 2);
  await worker.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('select count(*)::int as n from ratchet.job');
  if (rows[0].n === 0) throw new Error('the backlog ended: give it more jobs');
  await client.query('truncate ratchet.job');
  await client.end();
  return rate;
}

export async function pinned(url) {
  const first = await startApp(url, { worker: false });
  await first.close();
  const free = await loaded(url, 1_200_000);
  const pin = new pg.Client({ connectionString: url });
  await pin.connect();
  await pin.query('begin isolation level repeatable read; select txid_current()');
  const held = await loaded(url, 1_200_000);
  console.log(
    `pinned         ${(held / free).toFixed(2)} of the rate without (${held.toFixed(0)} against ${free.toFixed(0)} jobs/s)`,
  );

  // The dead entries of the load still stand: TRUNCATE would take them along, so another backlog is worked off first.
  await fill(url, 200_000);
  const waits = [];
  let drained = 0;
  const worker = await startApp(url, { concurrency: 100 }, (payload) => {
    if (payload.at === undefined) drained++;
    else waits.push(performance.now() - payload.at);
  });
  while (drained < 200_000) await sleep(50);
  const end = performance.now() + TRICKLE_SECONDS * 1000;
  while (performance.now() < end) {
    void worker.scheduler.enqueue(Noop, { at: performance.now() });
    await sleep(2);
  }
  await sleep(500);
  await worker.close();
  await pin.query('rollback');
  await pin.end();
  const sorted = [...waits].sort((a, b) => a - b);
  console.log(
    `trickle        p50 ${median(waits).toFixed(2)} ms, p99 ${sorted[Math.floor(sorted.length * 0.99)].toFixed(2)} ms over ${waits.length} jobs, pinned`,
  );
  return { pinnedRatio: held / free, pinnedTrickleP50Ms: median(waits) };
}
