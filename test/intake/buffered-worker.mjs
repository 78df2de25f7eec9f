/**
 * A process that enqueues without a pause, `durability: 'buffered'`, until it is told to stop. Prints `begin` for each job that was
 * taken, `ended` for each that is said to be saved.
 *
 * argv: as test/chaos/worker.mjs.
 */
import { setImmediate } from 'node:timers/promises';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const [url, nodeId, options, library] = process.argv.slice(2);
const { defineJob, JobScheduler, RatchetModule } = await import(library);
const say = (event, detail = {}) =>
  process.stdout.write(`${JSON.stringify({ event, pid: process.pid, ...detail })}\n`);
const Click = defineJob('click');

let stopping = false;
class Stop {
  onModuleDestroy() {
    stopping = true;
  }
}
class App {}
Module({
  imports: [RatchetModule.forRoot({ connection: url, nodeId, ...JSON.parse(options) })],
  providers: [Stop],
})(App);

process.on('unhandledRejection', (reason) => say('unhandledRejection', { reason: String(reason) }));
const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const scheduler = app.get(JobScheduler);
say('ready');
while (!stopping) {
  const handles = await Promise.all(
    Array.from({ length: 20 }, () => scheduler.enqueue(Click, undefined, { durability: 'buffered' })),
  );
  for (const { id, saved } of handles) {
    say('begin', { job: id });
    saved.then(
      () => say('ended', { job: id }),
      (error) => say('failed', { job: id, reason: error.code }),
    );
  }
  await setImmediate();
}
