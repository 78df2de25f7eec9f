/**
 * `npm run bench:many-nodes -- [rescue] [wakeup] [throughput] [soak] [--minutes N]`: several node processes on one database. Without a
 * name: all but the soak. Clients, nodes and server share the machine.
 */
import { fork } from 'node:child_process';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { defineJob } from '../dist/index.js';
import { startApp } from './app.mjs';
import { median } from './measures.mjs';
import { freshDatabase, startServer } from './server.mjs';

const BACKLOG = 40_000;
const SLOTS = 24;
const WAKEUPS = 500;
const HELD = 50;
const NODES = 8;
/** For the backlog to be written. */
const FILL_MS = 15_000;
/** Of the soak. */
const JOBS_PER_SECOND = 100;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => performance.timeOrigin + performance.now();

/** A node in a process of its own, ready. */
async function startNode(url, options = {}, only = undefined) {
  const path = fileURLToPath(new URL('./many-nodes-worker.mjs', import.meta.url));
  const child = fork(path, [url, JSON.stringify({ options, only })]);
  const node = {
    child,
    onMessage: () => {},
    exited: new Promise((resolve) => child.once('exit', resolve)),
    async stop() {
      child.send({ type: 'stop' });
      await node.exited;
    },
  };
  await new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('the node ended before it was ready')));
    child.on('message', (message) => (message.type === 'ready' ? resolve() : node.onMessage(message)));
  });
  return node;
}

async function withClient(url, work) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function enqueueMany(url, name, count, options = {}) {
  const filler = await startApp(url, { worker: false });
  for (let n = 0; n < count; n += 10_000) {
    const size = Math.min(10_000, count - n);
    await filler.scheduler.enqueueMany(
      defineJob(name),
      Array.from({ length: size }, (_, i) => ({ payload: { n: n + i } })),
      options,
    );
  }
  await filler.close();
}

const empty = (client) =>
  client.query('select not exists (select from ratchet.job) as empty').then(({ rows }) => rows[0].empty);

/** Seconds from the SIGKILL of a node with 50 running jobs until all of them run on another. */
async function rescueSeconds(url, heartbeat) {
  await enqueueMany(url, 'bench.hold', HELD);
  const begun = (node) =>
    new Promise((resolve) => {
      const ids = new Set();
      node.onMessage = ({ type, jobId, at }) => {
        if (type === 'begin') ids.add(jobId);
        if (ids.size === HELD) resolve(at);
      };
    });
  const options = { concurrency: HELD, heartbeat };
  const victim = await startNode(url, { ...options, nodeId: 'victim' });
  await begun(victim);
  const heir = await startNode(url, { ...options, nodeId: 'heir' });
  const taken = begun(heir);
  const killedAt = now();
  victim.child.kill('SIGKILL');
  const seconds = ((await taken) - killedAt) / 1_000;
  heir.child.kill('SIGKILL');
  await heir.exited;
  return seconds;
}

/** Milliseconds from the call of `enqueue` on one node to the start of the handler on another, sorted. */
async function wakeupMs(url) {
  const sender = await startNode(url, { nodeId: 'sender' }, 'other');
  const receiver = await startNode(url, { nodeId: 'receiver' }, 'stamp');
  const waits = [];
  for (let n = 0; n < WAKEUPS; n++) {
    const enqueued = new Promise((resolve) => (sender.onMessage = ({ at }) => resolve(at)));
    const started = new Promise((resolve) => (receiver.onMessage = ({ at }) => resolve(at)));
    sender.child.send({ type: 'enqueue', n });
    const [from, to] = await Promise.all([enqueued, started]);
    waits.push(to - from);
    await pause(20);
  }
  await Promise.all([sender.stop(), receiver.stop()]);
  return waits.slice(50).sort((a, b) => a - b);
}

/** Jobs a second that so many nodes make of one backlog together, from the first outcome to the last. */
async function jobsPerSecond(url, count) {
  await startApp(url, { worker: false }).then((app) => app.close());
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      startNode(url, { concurrency: SLOTS, nodeId: `node-${n}` }, 'noop'),
    ),
  );
  // Nobody claims before everything is there.
  const beganAt = now() + FILL_MS;
  await enqueueMany(url, 'bench.noop', BACKLOG, { runAt: new Date(beganAt) });
  await withClient(url, (client) => client.query('analyze ratchet.job'));
  if (now() > beganAt) throw new Error('the backlog was not there in time: the machine is busy');
  await withClient(url, async (client) => {
    while (!(await empty(client))) await pause(20);
  });
  const seconds = (now() - beganAt) / 1_000;
  await Promise.all(nodes.map((node) => node.stop()));
  return BACKLOG / seconds;
}

/** Eight nodes under a steady load for so many minutes. */
async function soak(url, minutes) {
  const { scheduler, close } = await startApp(url, { worker: false });
  const nodes = await Promise.all(
    Array.from({ length: NODES }, (_, n) => startNode(url, { nodeId: `node-${n}` }, 'noop')),
  );
  const Noop = defineJob('bench.noop');
  const endAt = now() + minutes * 60_000;
  const ids = [];
  while (now() < endAt) {
    const second = pause(1_000);
    const made = await Promise.all(
      Array.from({ length: JOBS_PER_SECOND }, (_, n) => scheduler.enqueue(Noop, { n })),
    );
    ids.push(...made.map(({ id }) => id));
    await second;
  }
  const report = await withClient(url, async (client) => {
    const lastAt = now() + 60_000;
    while (now() < lastAt && !(await empty(client))) await pause(100);
    const { rows } = await client.query(
      `select (select count(*)::int from unnest($1::uuid[]) w (id)
                where (select count(*) from ratchet.job_history h where h.id = w.id and h.outcome = 'succeeded') <> 1) as lost,
              (select count(*)::int from ratchet.job) as left,
              (select count(*)::int from ratchet.dead_letter) as dead,
              (select count(*)::int from ratchet.execution) as repeated,
              (select deadlocks::int from pg_stat_database where datname = current_database()) as deadlocks`,
      [ids],
    );
    return rows[0];
  });
  await Promise.all(nodes.map((node) => node.stop()));
  await close();
  return { jobs: ids.length, ...report };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: 'string', default: '30' } },
});
const wanted = positionals.length > 0 ? positionals : ['rescue', 'wakeup', 'throughput'];
const server = await startServer();
let version = '';
const fresh = async (name) => {
  const database = await freshDatabase(server.url, `bench_many_${name}`);
  version = database.version;
  return database.url;
};
try {
  if (wanted.includes('rescue')) {
    const byDefault = await rescueSeconds(await fresh('rescue'), undefined);
    console.log(`rescue with defaults: ${HELD} jobs run elsewhere after ${byDefault.toFixed(1)} s`);
    const short = await rescueSeconds(await fresh('rescue'), { grace: '3s', interval: '1s' });
    console.log(`rescue with grace 3 s: ${HELD} jobs run elsewhere after ${short.toFixed(1)} s`);
  }
  if (wanted.includes('wakeup')) {
    const waits = await wakeupMs(await fresh('wakeup'));
    const p99 = waits[Math.floor(waits.length * 0.99)];
    console.log(`wakeup from node to node: p50 ${median(waits).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
  }
  if (wanted.includes('throughput')) {
    const rates = { 1: [], [NODES]: [] };
    for (let run = 0; run < 4; run++) {
      for (const count of [1, NODES])
        rates[count].push(await jobsPerSecond(await fresh('throughput'), count));
    }
    const [one, many] = [1, NODES].map((count) => median(rates[count].slice(1)));
    console.log(
      `throughput: 1 node ${one.toFixed(0)} jobs/s, ${NODES} nodes ${many.toFixed(0)} jobs/s: ${((100 * many) / one).toFixed(0)} %`,
    );
  }
  if (wanted.includes('soak')) {
    const minutes = Number(values.minutes);
    console.log(
      `soak, ${minutes} min, ${NODES} nodes: ${JSON.stringify(await soak(await fresh('soak'), minutes))}`,
    );
  }
} finally {
  await server.stop();
}
console.log(
  `\nNode ${process.version}, PostgreSQL ${version}, ${cpus().length} cores shared by clients, nodes and server, fsync on.`,
);
