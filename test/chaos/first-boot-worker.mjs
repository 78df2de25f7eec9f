/**
 * A process that boots the whole module when it is told to (SIGUSR2), then enqueues a job in a lane of its own,
 * and says so when it has run.
 *
 * argv: as of worker.mjs. The option `own`: the application has a DataSource of its own.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';

const [url, nodeId, options, library] = process.argv.slice(2);
const { defineJob, Job, JobScheduler, RatchetModule } = await import(library);
const { own, ...settings } = JSON.parse(options);
const say = (event, detail = {}) =>
  process.stdout.write(`${JSON.stringify({ event, pid: process.pid, ...detail })}\n`);

const Hello = defineJob(`hello.${nodeId}`, { lane: nodeId });
class Handlers {
  async hello(_payload, ctx) {
    say('begin', { job: ctx.jobId, seq: ctx.claimSeq });
    return nodeId;
  }
}
Job(Hello)(Handlers.prototype, 'hello', Object.getOwnPropertyDescriptor(Handlers.prototype, 'hello'));
process.on('unhandledRejection', (reason) => say('unhandledRejection', { reason: String(reason) }));

await new Promise((resolve) => {
  process.once('SIGUSR2', resolve);
  say('ready');
  const wait = setInterval(() => {}, 1_000);
  process.once('SIGUSR2', () => clearInterval(wait));
});
const database = own
  ? { dataSource: await new DataSource({ type: 'postgres', url, poolSize: 3 }).initialize() }
  : { connection: url };
class App {}
Module({ imports: [RatchetModule.forRoot({ ...database, nodeId, ...settings })], providers: [Handlers] })(
  App,
);
const app = await NestFactory.createApplicationContext(App);
app.enableShutdownHooks();
const handle = await app.get(JobScheduler).enqueue(Hello);
say('ended', { job: handle.id, answer: await handle.result() });
