/**
 * The heartbeat of a node, in a thread of its own and on a connection of its own: a handler that blocks the event loop of the main
 * thread does not make the node look dead. Plain JavaScript, so that it is the same file in the sources and in the package.
 *
 * It beats while the main thread shows signs of life in shared memory, and for `stallMs` after the last one. Then it falls
 * silent on purpose: a main thread that never comes back must not keep its jobs for ever.
 */
import pg from 'pg';
import { parentPort, workerData } from 'node:worker_threads';

/** Indexes of the shared memory; worker-thread-beater.ts has the same. Times are milliseconds of the process's monotonic clock. */
const ALIVE_AT = 0;
const RUNNING = 1;
const LAG = 2;
const INTERVAL = 3;
/** The time in the lower bits, above them the number of the node's name under which it was sent: one write for both. */
const ACKNOWLEDGED = 4;
const STARTED = 5;
const TIME_BITS = 44n;

const RETRY_MS = 1_000;
/** The longest that one beat may take before its socket counts as dead: part of the grace, so that there is time for another. */
const MOST_BEAT_MS = 5_000;

const { statement, offsetMs, graceMs, stallMs, applicationName } = workerData;
const shared = new BigInt64Array(workerData.shared);
/** A name of the node (id and epoch) and its number in this process. */
let { node, naming } = workerData;
let client;
let connecting;
let timer;
let beating = false;
let again = false;
let stopped = false;
let silent = false;
let withOptions = true;
/** Told by the main thread for each connect; the last ones serve when it does not answer. */
let settings = workerData.settings;
let askedFor;

const nowMs = () => Number(process.hrtime.bigint() / 1_000_000n);
const read = (index) => Number(Atomics.load(shared, index));

parentPort.on('message', (message) => {
  if (message.type === 'settings') {
    settings = message.settings;
    askedFor?.();
  } else if (message.type === 'node') {
    ({ node, naming } = message);
    beatNow();
  } else if (message.type === 'now') {
    beatNow();
  } else if (message.type === 'stop') {
    void stop();
  }
});

function beatNow() {
  if (stopped) return;
  if (beating) {
    again = true;
    return;
  }
  clearTimeout(timer);
  void beat();
}

async function beat() {
  beating = true;
  const aliveAgoMs = nowMs() - read(ALIVE_AT);
  let waitMs = read(INTERVAL);
  if (aliveAgoMs > stallMs) {
    if (!silent) parentPort.postMessage({ type: 'silent', aliveAgoMs });
    silent = true;
    waitMs = Math.min(waitMs, RETRY_MS);
  } else {
    silent = false;
    const sentAtMs = nowMs();
    // It may have another epoch by the time of the answer, of which the answer says nothing.
    const asked = node;
    const askedNaming = naming;
    try {
      const lagMs = Math.max(read(LAG), aliveAgoMs);
      const row = await send([
        offsetMs,
        asked.id,
        asked.epoch,
        graceMs,
        read(RUNNING),
        Math.min(lagMs, 2_000_000_000),
      ]);
      if (row.alive === 'true') {
        Atomics.store(shared, ACKNOWLEDGED, (BigInt(askedNaming) << TIME_BITS) | BigInt(sentAtMs));
      }
      parentPort.postMessage({ type: 'answered', row, node: asked });
    } catch (error) {
      parentPort.postMessage({ type: 'failed', error: { message: error.message, code: error.code } });
      waitMs = Math.min(waitMs, RETRY_MS);
    }
  }
  beating = false;
  if (stopped) return;
  timer = setTimeout(beatNow, again ? 0 : waitMs);
  again = false;
}

async function send(values) {
  const limitMs = Math.min(MOST_BEAT_MS, graceMs / 3);
  client ??= await connect(limitMs);
  const used = client;
  try {
    const { rows } = await within(limitMs, used, used.query({ ...statement, values }));
    return rows[0];
  } catch (error) {
    drop(used);
    throw error;
  }
}

async function connect(limitMs) {
  await freshSettings(limitMs);
  if (stopped) throw new Error('stopped');
  const made = new pg.Client({
    keepAlive: true,
    ...settings,
    ...(withOptions ? {} : { options: undefined }),
    application_name: applicationName,
    connectionTimeoutMillis: Math.ceil(limitMs),
  });
  // The loss of an idle connection must not end the thread.
  made.on('error', () => drop(made));
  made.on('end', () => drop(made));
  connecting = made;
  try {
    await made.connect();
    if (stopped) throw new Error('stopped');
  } catch (error) {
    drop(made);
    // A pooler that takes no start-up options: a heartbeat works without them.
    if (/startup parameter|command.line option|options/i.test(error.message)) withOptions = false;
    throw error;
  } finally {
    connecting = undefined;
  }
  return made;
}

/** A password may be good for one connect only; a main thread that is busy does not answer in time. */
async function freshSettings(limitMs) {
  await new Promise((resolve) => {
    const limit = setTimeout(resolve, settings ? Math.min(500, limitMs) : limitMs);
    askedFor = () => {
      clearTimeout(limit);
      resolve();
    };
    parentPort.postMessage({ type: 'settings?' });
  });
  askedFor = undefined;
  if (!settings) throw new Error('the connection settings did not come');
}

function drop(used) {
  if (client === used) client = undefined;
  used.connection.stream.destroy();
}

async function within(ms, used, reply) {
  reply.catch(() => {});
  let limit;
  const silence = new Promise((_, reject) => {
    limit = setTimeout(() => {
      drop(used);
      reject(
        Object.assign(new Error(`no reply to a heartbeat within ${Math.round(ms)} ms`), {
          code: 'ETIMEDOUT',
        }),
      );
    }, ms);
  });
  try {
    return await Promise.race([reply, silence]);
  } finally {
    clearTimeout(limit);
  }
}

async function stop() {
  stopped = true;
  clearTimeout(timer);
  askedFor?.();
  if (connecting) drop(connecting);
  const used = client;
  client = undefined;
  if (used) {
    // A timer that is left behind would keep the thread alive, and whoever waits for its end.
    let limit;
    const late = new Promise((resolve) => (limit = setTimeout(resolve, 500)));
    await Promise.race([used.end().catch(() => {}), late]);
    clearTimeout(limit);
    used.connection.stream.destroy();
  }
  parentPort.postMessage({ type: 'stopped' });
  parentPort.close();
}

Atomics.store(shared, STARTED, BigInt(workerData.start));
beatNow();
