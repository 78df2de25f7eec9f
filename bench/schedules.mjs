/**
 * `npm run build && node bench/schedules.mjs`: what recurring schedules cost the store. 10 000 that are due at one instant become jobs, the
 * look at what is due beside 100 000 stored ones, and a heartbeat with and without them. Without handlers and without a planner.
 */
import { uuidv7 } from 'uuidv7';
import { PostgresScheduleStore } from '../dist/store/postgres/postgres-schedule-store.js';
import { freshDatabase, startServer } from './server.mjs';
import { openStore } from './turns.mjs';

const STORED = 100_000;
const DUE = 10_000;
const BATCH = 500;
const DAY_MS = 86_400_000;

const specOf = (id) => ({
  id,
  name: id,
  expression: '0 0 * * *',
  timeZone: 'UTC',
  origin: 'api',
  owner: undefined,
  template: {
    name: 'bench.noop',
    version: 1,
    lane: 'default',
    priority: 2,
    payload: '{"report":"daily"}',
    maxRetries: 0,
    backoff: undefined,
    timeoutMs: undefined,
    tags: ['bench'],
  },
  misfire: 'once',
  overlap: 'skip',
  jitterMs: 0,
  scope: 'cluster',
  enabled: true,
  businessKey: undefined,
});

async function write(schedules, from, count, nextAt) {
  for (let done = 0; done < count; done += 1_000) {
    const writes = Array.from({ length: Math.min(1_000, count - done) }, (_, index) => ({
      spec: specOf(`schedule ${String(from + done + index).padStart(7, '0')}`),
      revision: undefined,
      anchor: nextAt,
      nextAt,
    }));
    await schedules.write(writes);
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

async function medianMs(times, work) {
  const taken = [];
  for (let time = 0; time < times; time += 1) {
    const start = performance.now();
    await work();
    taken.push(performance.now() - start);
  }
  return median(taken).toFixed(2);
}

async function fireAll(schedules, node) {
  const start = performance.now();
  const statements = [];
  let jobs = 0;
  for (let more = true; more;) {
    const answer = await schedules.due({ node, leaseMs: 3_000, limit: BATCH });
    const firings = answer.due.map(({ id, revision, nextAt }) => ({
      id,
      revision,
      nextAt,
      advanceTo: new Date(nextAt.getTime() + DAY_MS),
      runs: [{ at: nextAt, jobId: uuidv7(), delayMs: 0, missed: 0, ifBusy: 'skip' }],
      missed: [],
    }));
    const sent = performance.now();
    for (const outcome of await schedules.fire(firings)) jobs += outcome.jobs?.length ?? 0;
    statements.push(performance.now() - sent);
    more = answer.more;
  }
  return { ms: performance.now() - start, jobs, statementMs: median(statements) };
}

const server = await startServer();
try {
  const { url } = await freshDatabase(server.url, 'ratchet_bench_schedules');
  const { store, bucket } = await openStore(url);
  const schedules = new PostgresScheduleStore(store);
  const { node } = bucket;
  const beat = () => store.beat({ node, graceMs: 30_000, running: 0, lagMs: 0 });
  const due = () => schedules.due({ node, leaseMs: 3_000, limit: BATCH });
  await beat();
  console.log(`heartbeat without schedules: ${await medianMs(500, beat)} ms`);

  const now = await schedules.now();
  await write(schedules, 0, STORED, new Date(now.getTime() + DAY_MS));
  await beat();
  console.log(`heartbeat with ${STORED} distant schedules: ${await medianMs(500, beat)} ms`);
  await due();
  console.log(`look, ${STORED} stored, none due: ${await medianMs(500, due)} ms`);

  await write(schedules, STORED, DUE, now);
  console.log(`look, ${BATCH} of ${DUE} due: ${await medianMs(20, due)} ms`);
  const fired = await fireAll(schedules, node);
  console.log(
    `${fired.jobs} schedules due at once are jobs within ${fired.ms.toFixed(0)} ms, ${fired.statementMs.toFixed(1)} ms for ${BATCH}`,
  );
  console.log(`look after that: ${await medianMs(500, due)} ms`);
  await store.close();
} finally {
  await server.stop();
}
