/** A node process of many-nodes.mjs. argv: database URL, JSON of `{ options, only }`; `only` is the one job that it has a handler of. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { defineJob, Job, JobScheduler, RatchetModule } from '../dist/index.js';

const [url, settings] = process.argv.slice(2);
const { options, only } = JSON.parse(settings);
/** Comparable between the processes of a machine. */
const now = () => performance.timeOrigin + performance.now();

class Handlers {
  async noop() {}

  async hold(_payload, { jobId }) {
    process.send({ type: 'begin', jobId, at: now() });
    await new Promise(() => {});
  }

  async stamp({ n }) {
    process.send({ type: 'start', n, at: now() });
  }

  async other() {}
}
for (const method of ['noop', 'hold', 'stamp', 'other']) {
  if (only !== undefined && only !== method) continue;
  Job(defineJob(`bench.${method}`))(
    Handlers.prototype,
    method,
    Object.getOwnPropertyDescriptor(Handlers.prototype, method),
  );
}
class App {}
Module({ imports: [RatchetModule.forRoot({ connection: url, ...options })], providers: [Handlers] })(App);
const app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
const scheduler = app.get(JobScheduler);

process.on('message', async (message) => {
  if (message.type === 'stop') {
    await app.close();
    process.disconnect();
  } else if (message.type === 'enqueue') {
    const at = now();
    await scheduler.enqueueNamed('bench.stamp', { n: message.n });
    process.send({ type: 'enqueued', n: message.n, at });
  }
});
process.send({ type: 'ready' });
