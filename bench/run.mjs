/**
 * `npm run bench -- [--json FILE] [--only name,name] [--pinned] [--results]`: each figure is the median of 3 after a warm-up, with claims
 * ahead of 5.
 * Client and server share the machine; expect 20 to 30 % of noise between runs.
 */
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import {
  drain,
  drainAhead,
  enqueue1000,
  enqueueMany,
  claimRatio1M,
  latencyP50Ms,
  median,
} from './measures.mjs';
import { freshDatabase, startServer } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    json: { type: 'string' },
    only: { type: 'string' },
    pinned: { type: 'boolean', default: false },
    results: { type: 'boolean', default: false },
  },
});

const figures = {
  drain24: { measure: drain(24), unit: 'jobs/s', what: '50 000 no-op jobs, 24 slots' },
  drain100: { measure: drain(100), unit: 'jobs/s', what: '50 000 no-op jobs, 100 slots' },
  // A buffer of 500 is what one claim takes at most. The numbers of buckets and connections are a choice that few runs speak for:
  // `node bench/ahead.mjs` compares others.
  ahead24: {
    measure: drainAhead(24),
    unit: 'jobs/s',
    what: '100 000 no-op jobs, 24 slots, claimed ahead',
    runs: 5,
  },
  ahead100: {
    measure: drainAhead(100, { buckets: 2, exchange: 2 }),
    unit: 'jobs/s',
    what: '100 000 no-op jobs, 100 slots, claimed ahead',
    runs: 5,
  },
  enqueueMany: { measure: enqueueMany, unit: 'jobs/s', what: 'enqueueMany, 10 000 a call' },
  enqueue1000: { measure: enqueue1000, unit: 'jobs/s', what: '1 000 calls of enqueue at once' },
  latencyP50Ms: { measure: latencyP50Ms, unit: 'ms', what: 'idle enqueue to handler start, p50' },
  claimRatio1M: {
    measure: claimRatio1M,
    unit: '×',
    what: 'claim cost at 1 M + 1 M + 1 M over that at 10 000',
  },
};
const only = args.only?.split(',');

const server = await startServer();
const result = {};
let version = '';
try {
  for (const [name, { measure, unit, what, runs: count = 3 }] of Object.entries(figures)) {
    if (only && !only.includes(name)) continue;
    const runs = [];
    for (let run = 0; run <= count; run++) {
      const database = await freshDatabase(server.url, `bench_${name.toLowerCase()}`);
      version = database.version;
      runs.push(await measure(database.url));
    }
    const value = median(runs.slice(1));
    result[name] = Number(value.toFixed(value < 100 ? 2 : 0));
    const spread = runs.slice(1).map((run) => run.toFixed(run < 100 ? 2 : 0));
    console.log(
      `${name.padEnd(14)} ${String(result[name]).padStart(9)} ${unit.padEnd(7)} ${what}  [${spread.join(', ')}]`,
    );
  }
  if (args.pinned) {
    const { pinned } = await import('./pinned.mjs');
    const database = await freshDatabase(server.url, 'bench_pinned');
    await pinned(database.url);
  }
  if (args.results) {
    const { results } = await import('./results.mjs');
    const database = await freshDatabase(server.url, 'bench_results');
    version = database.version;
    await results(database.url);
  }
} finally {
  await server.stop();
}
console.log(
  `\nNode ${process.version}, PostgreSQL ${version}, ${cpus().length} cores shared by client and server, fsync on.`,
);
if (args.json) await writeFile(args.json, `${JSON.stringify(result, null, 2)}\n`);
