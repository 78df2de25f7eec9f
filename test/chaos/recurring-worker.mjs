/**
 * A node with schedules that are due each second. Every run is written to `side_run`, a table outside the product, on a connection of
 * its own.
 *
 * argv: as of worker.mjs.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import pg from 'pg';

const [url, nodeId, options, library, sideUrl] = process.argv.slice(2);
const { RatchetModule, Recurring } = await import(library);
const side = new pg.Pool({ connectionString: sideUrl, max: 2, application_name: 'ratchet-test' });
side.on('error', () => {});
const say = (event, detail = {}) =>
  process.stdout.write(`${JSON.stringify({ event, pid: process.pid, ...detail })}\n`);

class Handlers {
  async run(ctx) {
    await side.query('insert into side_run values ($1, $2, $3, $4, $5)', [
      ctx.scheduleId,
      ctx.scheduledFor,
      ctx.previous ?? null,
      ctx.jobId,
      process.pid,
    ]);
    say('begin', { job: ctx.jobId, seq: ctx.claimSeq, name: ctx.scheduleId });
  }
}
const every = { overlap: 'allow', maxRetries: 5 };
for (const [expression, id] of [
  ['* * * * * *', 'cron'],
  [{ every: '1s' }, 'interval'],
]) {
  Recurring(expression, { ...every, id })(
    Handlers.prototype,
    'run',
    Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'),
  );
}
process.on('unhandledRejection', (reason) => say('unhandledRejection', { reason: String(reason) }));

class App {}
Module({
  imports: [RatchetModule.forRoot({ connection: url, nodeId, ...JSON.parse(options) })],
  providers: [Handlers],
})(App);
const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
say('ready');
