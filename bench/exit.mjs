/**
 * `npm run bench:exit -- [--runs N]`: how long a node takes to leave, from the first word of the drain to the end of `close()`; once idle,
 * once under load with at least 1 000 jobs claimed ahead. Nothing of it may be left behind, and nobody be charged: otherwise it throws.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { RatchetMonitor, RatchetRuntime } from '../dist/index.js';
import { Noop, startApp } from './app.mjs';
import { median } from './measures.mjs';
import { freshDatabase, startServer } from './server.mjs';

const { values: args } = parseArgs({ options: { runs: { type: 'string', default: '5' } } });
const SLOTS = 24;
const JOBS = 20_000;
const BUFFERED = 1_000;
/** Of a handler; it ends earlier when its signal says so. */
const JOB_MS = 50;
/** Until the boot and its burst are over. */
const SETTLE_MS = 2_000;

/** Milliseconds. */
async function leave(app) {
  const beganMs = performance.now();
  await app.get(RatchetRuntime).drain();
  await app.close();
  return performance.now() - beganMs;
}

async function idle(url) {
  const { app } = await startApp(url, {});
  await sleep(SETTLE_MS);
  return { ms: await leave(app), buffered: 0 };
}

async function loaded(url) {
  const filler = await startApp(url, { worker: false });
  for (let n = 0; n < JOBS; n += 10_000) {
    await filler.scheduler.enqueueMany(
      Noop,
      Array.from({ length: 10_000 }, (_, i) => ({ payload: { n: n + i } })),
    );
  }
  await filler.close();
  // A claim fills a buffer that is half empty: it holds its half at least.
  const { app } = await startApp(
    url,
    { concurrency: SLOTS, lanes: { default: { bufferSize: 2 * BUFFERED } } },
    (_payload, { signal }) => sleep(JOB_MS, undefined, { signal }),
  );
  const buffered = () =>
    app
      .get(RatchetMonitor)
      .snapshot()
      .buckets.reduce((sum, bucket) => sum + bucket.buffered, 0);
  while (buffered() < BUFFERED) await sleep(5);
  const had = buffered();
  return { ms: await leave(app), buffered: had };
}

/** What a clean exit leaves: no node, no bucket, no claim, nobody charged. */
async function requireClean(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    `select (select count(*) from ratchet.node)::int as nodes, (select count(*) from ratchet.bucket)::int as buckets,
            (select count(*) from ratchet.start_mark)::int as marks,
            (select count(*) from ratchet.job where status = 1)::int as claims,
            (select count(*) from ratchet.execution where outcome <> 'succeeded')::int as charged`,
  );
  await client.end();
  const left = Object.entries(rows[0]).filter(([, count]) => count > 0);
  if (left.length > 0)
    throw new Error(`the node left something: ${JSON.stringify(Object.fromEntries(left))}`);
}

const server = await startServer();
try {
  for (const [name, scene] of Object.entries({ idle, loaded })) {
    const runs = [];
    for (let run = 0; run < Number(args.runs); run++) {
      const { url } = await freshDatabase(server.url, 'bench_exit');
      runs.push(await scene(url));
      await requireClean(url);
    }
    const all = runs.map(({ ms }) => ms);
    const load =
      name === 'idle' ? '' : `, ${Math.min(...runs.map(({ buffered }) => buffered))} or more buffered jobs`;
    console.log(
      `exit, ${name.padEnd(6)} median ${median(all).toFixed(0).padStart(5)} ms, longest ${Math.max(...all)
        .toFixed(0)
        .padStart(5)} ms${load}  ` + `[${all.map((ms) => ms.toFixed(0)).join(', ')}]`,
    );
  }
} finally {
  await server.stop();
}
