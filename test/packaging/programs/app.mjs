/** A small worker on embedded PostgreSQL, in plain JavaScript: decorators are functions. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { defineJob, Job, JobScheduler, RatchetModule } from 'nestjs-ratchet';

export const Slow = defineJob('slow');
export const After = defineJob('after');

export class Jobs {
  static scheduler;
  /** How long the slow job takes. */
  static slowMs = 0;
  static told = (line) => process.send?.(line);

  async slow() {
    Jobs.told('begun');
    await new Promise((resolve) => setTimeout(resolve, Jobs.slowMs));
    await Jobs.scheduler.enqueue(After);
    return 'finished';
  }

  after() {
    return 'finished too';
  }
}

for (const [name, definition] of [
  ['slow', Slow],
  ['after', After],
]) {
  Job(definition)(Jobs.prototype, name, Object.getOwnPropertyDescriptor(Jobs.prototype, name));
}

export async function boot(dataDir, modules = []) {
  class AppModule {}
  Module({
    imports: [RatchetModule.forRoot({ database: { embedded: { dataDir } }, nodeId: 'smoke' }), ...modules],
    providers: [Jobs],
  })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, {
    logger: ['error'],
    abortOnError: false,
  });
  Jobs.scheduler = app.get(JobScheduler);
  return app;
}

/** Polls: this is a user's program, which has nothing else. */
export async function ended(id) {
  for (;;) {
    const job = await Jobs.scheduler.get(id);
    if (job && !['pending', 'running'].includes(job.status)) return job;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
