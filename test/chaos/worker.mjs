/**
 * A worker process of the chaos tests. Every execution writes its begin and end to `side`, a table outside the product, on
 * connections of its own: that is what the checker believes, not our own records. Side writes are repeated until they are
 * done, and work while the database is read-only for everybody else.
 *
 * argv: database URL, node id, JSON of module options, URL of the compiled library, URL for the side tables. Prints a line per
 * event for the parent. With `nodes` among the options the process is so many nodes, which die together.
 */
import { existsSync } from 'node:fs';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import pg from 'pg';

const [url, nodeId, options, library, sideUrl = url] = process.argv.slice(2);
const { defineJob, Job, OnJobFailure, RatchetModule, UnrecoverableError } = await import(library);
const { DebugPoints } = await import(new URL('./observability/debug-points.js', library).href);
const { ENGINE_PARTS } = await import(new URL('./ratchet.tokens.js', library).href);
const side = new pg.Pool({
  connectionString: sideUrl,
  max: 4,
  application_name: 'ratchet-test',
  options: '-c default_transaction_read_only=off',
});
side.on('error', () => {});
const say = (event, detail = {}) =>
  process.stdout.write(`${JSON.stringify({ event, pid: process.pid, ...detail })}\n`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function write(text, values) {
  for (;;) {
    try {
      return await side.query(text, values);
    } catch {
      await pause(50);
    }
  }
}
const begin = async (ctx) => {
  await write(
    'insert into side (job, seq, pid, began) values ($1, $2, $3, clock_timestamp()) on conflict do nothing',
    [ctx.jobId, ctx.claimSeq, process.pid],
  );
  say('begin', { job: ctx.jobId, seq: ctx.claimSeq, name: ctx.name });
  ctx.signal.addEventListener('abort', () =>
    say('abort', { job: ctx.jobId, seq: ctx.claimSeq, reason: String(ctx.signal.reason?.reason) }),
  );
};
/** What the job returns: the checker compares it with the claim that it is recorded under. */
const end = async (ctx) => {
  await write(
    'update side set ended = coalesce(ended, clock_timestamp()) where job = $1 and seq = $2 and pid = $3',
    [ctx.jobId, ctx.claimSeq, process.pid],
  );
  return { pid: process.pid, seq: ctx.claimSeq };
};
/** Jobs that wait until the parent says go by a row in `side_go`: one look for all of them. */
const waiting = new Map();
let looking = false;
const look = async () => {
  looking = true;
  while (waiting.size > 0) {
    const { rows } = await write('select job from side_go where job = any ($1) and coalesce(pid, $2) = $2', [
      [...waiting.keys()],
      process.pid,
    ]);
    for (const { job } of rows) {
      for (const resolve of waiting.get(job) ?? []) resolve();
      waiting.delete(job);
    }
    await pause(20);
  }
  looking = false;
};
const go = (ctx) =>
  new Promise((resolve) => {
    waiting.set(ctx.jobId, [...(waiting.get(ctx.jobId) ?? []), resolve]);
    if (!looking) void look();
  });

const quick = { type: 'fixed', delay: 5, jitter: 0 };
/** This process dies as soon as its last job is in the dead letter. */
let mortal = false;

const Child = defineJob('chaos.child', { maxRetries: 50, backoff: quick });
const definitions = {
  work: defineJob('chaos.work', { maxRetries: 5, backoff: quick }),
  poison: defineJob('chaos.poison'),
  abort: defineJob('chaos.abort'),
  hold: defineJob('chaos.hold'),
  spin: defineJob('chaos.spin'),
  nap: defineJob('chaos.nap'),
  late: defineJob('chaos.late', { maxRetries: 50, backoff: quick, timeout: '200ms' }),
  parent: defineJob('chaos.parent', { maxRetries: 50, backoff: quick }),
  zombie: defineJob('chaos.zombie', { maxRetries: 5, backoff: quick }),
  child: Child,
  doomed: defineJob('chaos.doomed'),
  quick: defineJob('chaos.quick'),
};

class Handlers {
  async work({ ms, failures }, ctx) {
    await begin(ctx);
    if (ms) await pause(ms);
    const result = await end(ctx);
    if (ctx.failures < (failures ?? 0)) throw new Error(`failure ${ctx.failures + 1} of ${failures}`);
    return result;
  }

  /** For thousands: begun and ended in one, and nothing is said of it. */
  async quick(_payload, ctx) {
    await write(
      'insert into side (job, seq, pid, began, ended) values ($1, $2, $3, clock_timestamp(), clock_timestamp())',
      [ctx.jobId, ctx.claimSeq, process.pid],
    );
    return { pid: process.pid, seq: ctx.claimSeq };
  }

  /** Ends the process, as the kernel's out-of-memory killer would. */
  async poison(_payload, ctx) {
    await begin(ctx);
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  }

  /** Ends the process, as a native crash would. */
  async abort(_payload, ctx) {
    await begin(ctx);
    process.abort();
  }

  /** Runs until the parent says go, whatever its signal says. */
  async hold(_payload, ctx) {
    await begin(ctx);
    await go(ctx);
    return end(ctx);
  }

  async doomed({ kill }, ctx) {
    await begin(ctx);
    await end(ctx);
    mortal = kill;
    throw new UnrecoverableError('doomed');
  }

  async doomedFailed({ kill }, error, ctx) {
    await begin(ctx);
    say('failed', { job: error.jobId, reason: String(kill) });
    return end(ctx);
  }

  /** Blocks the event loop, for a time or until there is a file. */
  async spin({ ms = 20, until }, ctx) {
    await begin(ctx);
    do Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    while (until && !existsSync(until));
    return end(ctx);
  }

  async nap(_payload, ctx) {
    await begin(ctx);
    const result = await end(ctx);
    if (ctx.execution === 1) ctx.snooze('100ms');
    return result;
  }

  /** Times out once, heeding its signal. */
  async late(_payload, ctx) {
    await begin(ctx);
    if (ctx.failures === 0 && !ctx.signal.aborted) {
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
    }
    return end(ctx);
  }

  async parent({ n }, ctx) {
    await begin(ctx);
    try {
      await ctx.enqueue(Child, { child: n });
    } finally {
      await end(ctx);
    }
    return { pid: process.pid, seq: ctx.claimSeq };
  }

  async child(_payload, ctx) {
    await begin(ctx);
    return end(ctx);
  }

  /** When told to, does all that an execution may do, and says what it was answered. */
  async zombie({ way }, ctx) {
    await begin(ctx);
    await go(ctx);
    ctx.progress({ pid: process.pid });
    const child = await ctx.enqueue(Child, { by: process.pid, seq: ctx.claimSeq }).then(
      () => 'enqueued',
      (error) => error.code,
    );
    say('child', { job: ctx.jobId, answer: child });
    const result = await end(ctx);
    if (way === 'fail') throw new Error(`failed by ${process.pid}`);
    if (way === 'snooze') ctx.snooze('1h');
    return result;
  }
}
for (const [method, definition] of Object.entries(definitions)) {
  Job(definition)(Handlers.prototype, method, Object.getOwnPropertyDescriptor(Handlers.prototype, method));
}
OnJobFailure(definitions.doomed)(
  Handlers.prototype,
  'doomedFailed',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'doomedFailed'),
);
const { nodes = 1, ...settings } = JSON.parse(options);

process.on('unhandledRejection', (reason) => say('unhandledRejection', { reason: String(reason) }));
async function start(id) {
  class App {}
  Module({
    imports: [RatchetModule.forRoot({ connection: url, nodeId: id, ...settings })],
    providers: [Handlers],
  })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  const { events } = app.get(ENGINE_PARTS, { strict: false });
  for (const event of [
    'registered',
    'declared_dead',
    'node_dead',
    'lease',
    'rescued',
    'lost',
    'late',
    'loop_lag',
    'coordinator',
    'fallback',
  ]) {
    events.on(event, (detail) => say(event, detail));
  }
  app.get(DebugPoints, { strict: false }).at('exchange.answered', async () => {
    if (!mortal) return;
    const { rows } = await side.query('select 1 from ratchet.dead_letter');
    if (rows.length === 0) return;
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  });
}
if (nodes === 1) await start(nodeId);
else await Promise.all(Array.from({ length: nodes }, (_, n) => start(`${nodeId}-${n + 1}`)));
say('ready');
process.on('exit', () => say('exit'));
