/** The app that is measured: a Nest application context with one no-op job. Plain JavaScript: decorators are called by hand. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { defineJob, Job, JobScheduler, RatchetModule } from '../dist/index.js';

export const Noop = defineJob('bench.noop');

/** Starts an app; `onRun(payload, context)` is called by each execution, which ends with what it returns. */
export async function startApp(url, options, onRun = () => {}) {
  class Handlers {
    async run(payload, context) {
      await onRun(payload, context);
    }
  }
  Job(Noop)(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'));
  class App {}
  Module({ imports: [RatchetModule.forRoot({ connection: url, ...options })], providers: [Handlers] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
  return { app, scheduler: app.get(JobScheduler), close: () => app.close() };
}
