/**
 * `npm run build && node bench/ahead.mjs [--runs N] [--slots 24,100] [--buffers 0,200,500,1000] [--buckets 1,2] [--exchange 1,2]`: jobs a
 * second of every combination, 100 000 no-op jobs each. One run of each after the other, then the next one of each, so that a machine that
 * slows down slows all of them.
 */
import { parseArgs } from 'node:util';
import { drainAhead, median } from './measures.mjs';
import { freshDatabase, startServer } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    runs: { type: 'string', default: '3' },
    slots: { type: 'string', default: '24,100' },
    buffers: { type: 'string', default: '0,200,500,1000' },
    buckets: { type: 'string', default: '1,2' },
    exchange: { type: 'string', default: '1,2' },
  },
});
const list = (text) => text.split(',').map(Number);
const combinations = list(args.slots).flatMap((slots) =>
  list(args.buffers).flatMap((bufferSize) =>
    list(args.buckets).flatMap((buckets) =>
      list(args.exchange)
        // A bucket has one exchange in flight: a second connection is of no use to a bucket alone.
        .filter((exchange) => exchange <= buckets)
        .map((exchange) => ({ slots, bufferSize, buckets, exchange, runs: [] })),
    ),
  ),
);

const server = await startServer();
try {
  const warmUp = await freshDatabase(server.url, 'bench_ahead');
  await drainAhead(24)(warmUp.url);
  for (let run = 0; run < Number(args.runs); run++) {
    for (const { runs, slots, ...options } of combinations) {
      const { url } = await freshDatabase(server.url, 'bench_ahead');
      runs.push(await drainAhead(slots, options)(url));
    }
  }
} finally {
  await server.stop();
}
console.log('slots  bufferSize  buckets  pool.exchange  jobs/s (median)');
for (const { slots, bufferSize, buckets, exchange, runs } of combinations) {
  const all = runs.map((rate) => rate.toFixed(0)).join(', ');
  console.log(
    `${String(slots).padStart(5)}  ${String(bufferSize).padStart(10)}  ${String(buckets).padStart(7)}  ` +
      `${String(exchange).padStart(13)}  ${median(runs).toFixed(0).padStart(15)}  [${all}]`,
  );
}
