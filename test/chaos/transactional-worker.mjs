/**
 * A worker process with a transactional handler, to which something happens at its commit: `kill` is `before` (the last
 * statement is done, COMMIT is not sent) or `after`; with `freeze` it stops there, once, until it is told to go on.
 *
 * argv: as of worker.mjs.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';

const [url, nodeId, options, library] = process.argv.slice(2);
const { Job, RatchetModule } = await import(library);
const { DebugPoints } = await import(new URL('./observability/debug-points.js', library).href);
const { kill, freeze, ...settings } = JSON.parse(options);
const say = (event, detail = {}) =>
  process.stdout.write(`${JSON.stringify({ event, pid: process.pid, ...detail })}\n`);
const source = new DataSource({ type: 'postgres', url });
await source.initialize();

class Handlers {
  async write(_payload, ctx) {
    await ctx.manager.query('insert into note values ($1)', [`execution ${ctx.execution}`]);
    say('begin', { job: ctx.jobId, seq: ctx.claimSeq });
  }
}
Job('chaos.write', { transactional: true })(
  Handlers.prototype,
  'write',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'write'),
);
class App {}
Module({
  imports: [RatchetModule.forRoot({ dataSource: source, nodeId, ...settings })],
  providers: [Handlers],
})(App);

const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const debug = app.get(DebugPoints, { strict: false });
const die = () => process.kill(process.pid, 'SIGKILL');
if (kill === 'before') debug.at('transaction.committing', die);
if (kill === 'after') debug.at('transaction.committed', die);
if (freeze) {
  const off = debug.at('transaction.committing', () => {
    off();
    say('freezing');
    process.kill(process.pid, 'SIGSTOP');
  });
}
say('ready');
