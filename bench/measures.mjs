/** One function for each figure. Each gets a fresh database and returns one number. */
import pg from 'pg';
import { Noop, startApp } from './app.mjs';
import { fill, medianTurnMs, openStore } from './turns.mjs';

const JOBS = 50_000;
const AHEAD_JOBS = 100_000;
const now = () => performance.now();
export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function withClient(url, work) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Jobs a second, from the first handler's start until the last outcome is recorded. */
const drainOf = (jobs, options) => async (url) => {
  const filler = await startApp(url, { worker: false });
  for (let n = 0; n < jobs; n += 10_000) {
    await filler.scheduler.enqueueMany(
      Noop,
      Array.from({ length: 10_000 }, (_, i) => ({ payload: { n: n + i } })),
    );
  }
  await filler.close();
  await withClient(url, (client) => client.query('vacuum analyze ratchet.job'));
  let started;
  let done = 0;
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const worker = await startApp(url, options, () => {
    started ??= now();
    if (++done === jobs) finish();
  });
  await finished;
  const seconds = await withClient(url, async (client) => {
    for (;;) {
      const { rows } = await client.query('select exists (select from ratchet.job) as left');
      if (!rows[0].left) return (now() - started) / 1000;
    }
  });
  await worker.close();
  return jobs / seconds;
};

export const drain = (slots) => drainOf(JOBS, { concurrency: slots });

/** The same with jobs that are claimed ahead. */
export const drainAhead = (slots, { bufferSize = 500, buckets = 1, exchange = 1 } = {}) =>
  drainOf(AHEAD_JOBS, {
    concurrency: slots,
    lanes: { default: { bufferSize, buckets } },
    pool: { exchange },
  });

/** Jobs a second through `enqueueMany`, 10 000 a call. */
export async function enqueueMany(url) {
  const { scheduler, close } = await startApp(url, { worker: false });
  const payloads = Array.from({ length: 10_000 }, (_, n) => ({ payload: { n } }));
  await scheduler.enqueueMany(Noop, payloads.slice(0, 1000));
  const start = now();
  for (let call = 0; call < 10; call++) await scheduler.enqueueMany(Noop, payloads);
  const seconds = (now() - start) / 1000;
  await close();
  return 100_000 / seconds;
}

/** Jobs a second when `enqueue` is called 1 000 times at once. */
export async function enqueue1000(url) {
  const { scheduler, close } = await startApp(url, { worker: false });
  const round = () => Promise.all(Array.from({ length: 1000 }, (_, n) => scheduler.enqueue(Noop, { n })));
  await round();
  const rates = [];
  for (let i = 0; i < 10; i++) {
    const start = now();
    await round();
    rates.push(1000 / ((now() - start) / 1000));
  }
  await close();
  return median(rates);
}

/** Milliseconds from the call of `enqueue` on an idle node to the handler's first line, p50 of 500. */
export async function latencyP50Ms(url) {
  let arrive;
  const { scheduler, close } = await startApp(url, {}, () => arrive(now()));
  const waits = [];
  for (let i = 0; i < 550; i++) {
    const arrived = new Promise((resolve) => (arrive = resolve));
    const start = now();
    await scheduler.enqueue(Noop, { n: i });
    waits.push((await arrived) - start);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await close();
  return median(waits.slice(50));
}

/** Claim cost (ms a turn of 24) beside 1 M pending + 1 M delayed + 1 M finished jobs, divided by that at 10 000 pending. */
export async function claimRatio1M(url) {
  const { store } = await openStore(url);
  await store.close();
  await fill(url, 10_000);
  const small = await medianTurnMs(url, { turns: 300, want: 24 });
  await withClient(url, async (client) => {
    await client.query(
      `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload)
       select gen_random_uuid(), 'bench.noop', 1, 'default', g % 5, now() + interval '1 day' + g * interval '1 second', now(), '{"n": 1}'
         from generate_series(1, 1000000) g`,
    );
    await client.query(
      `insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, claim_seq, ended_at, executions, failures, crashes)
       select gen_random_uuid(), 'bench.noop', 1, 'default', 2, 'succeeded', now(), now(), 1, now(), 1, 0, 0
         from generate_series(1, 1000000) g`,
    );
  });
  await fill(url, 1_000_000);
  return (await medianTurnMs(url, { turns: 300, want: 24 })) / small;
}
