/**
 * A worker process of the chaos tests. Every execution writes its begin and end to `side`, a table
 * outside the product, on a connection of its own: that is what the checker believes, not our own records.
 *
 * argv: database URL, node id, JSON of module options, URL of the compiled library. Prints a line per event for the parent.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import pg from 'pg';

const [url, nodeId, options, library] = process.argv.slice(2);
const { defineJob, Job, RatchetModule } = await import(library);
const side = new pg.Pool({ connectionString: url, max: 4, application_name: 'ratchet-test' });
side.on('error', () => {});
const say = (event, detail = {}) =>
  process.stdout.write(`${JSON.stringify({ event, pid: process.pid, ...detail })}\n`);

const begin = (ctx) =>
  side.query('insert into side (job, seq, pid, began) values ($1, $2, $3, clock_timestamp())', [
    ctx.jobId,
    ctx.claimSeq,
    process.pid,
  ]);
const end = (ctx) =>
  side.query('update side set ended = clock_timestamp() where job = $1 and seq = $2 and pid = $3', [
    ctx.jobId,
    ctx.claimSeq,
    process.pid,
  ]);

const Work = defineJob('chaos.work', { maxRetries: 5, backoff: { type: 'fixed', delay: 5, jitter: 0 } });
const Poison = defineJob('chaos.poison');
const Hold = defineJob('chaos.hold');

class Handlers {
  async work({ ms, failures }, ctx) {
    await begin(ctx);
    say('begin', { job: ctx.jobId, seq: ctx.claimSeq });
    if (ms) await new Promise((resolve) => setTimeout(resolve, ms));
    await end(ctx);
    if (ctx.failures < (failures ?? 0)) throw new Error(`failure ${ctx.failures + 1} of ${failures}`);
    return { seq: ctx.claimSeq };
  }

  /** Ends the process, as a native crash or the kernel's out-of-memory killer would. */
  async poison(_payload, ctx) {
    await begin(ctx);
    say('poison', { job: ctx.jobId });
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  }

  /** Runs until the parent says go (a row in `side_go`), whatever its signal says. */
  async hold(_payload, ctx) {
    await begin(ctx);
    say('begin', { job: ctx.jobId, seq: ctx.claimSeq });
    ctx.signal.addEventListener('abort', () =>
      say('abort', { job: ctx.jobId, reason: String(ctx.signal.reason?.reason) }),
    );
    for (;;) {
      const { rows } = await side.query('select 1 from side_go where job = $1 and coalesce(pid, $2) = $2', [
        ctx.jobId,
        process.pid,
      ]);
      if (rows.length > 0) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await end(ctx);
    return { pid: process.pid };
  }
}
for (const [definition, method] of [
  [Work, 'work'],
  [Poison, 'poison'],
  [Hold, 'hold'],
]) {
  Job(definition)(Handlers.prototype, method, Object.getOwnPropertyDescriptor(Handlers.prototype, method));
}
class App {}
Module({
  imports: [RatchetModule.forRoot({ connection: url, nodeId, ...JSON.parse(options) })],
  providers: [Handlers],
})(App);

process.on('unhandledRejection', (reason) => say('unhandledRejection', { reason: String(reason) }));
const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
say('ready');
process.on('exit', () => say('exit'));
