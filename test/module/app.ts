import { type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type JobInfo } from '../../lib/scheduler/job-info.js';
import { JobScheduler } from '../../lib/scheduler/job-scheduler.js';
import { type TestDatabase } from '../support/database.js';

/** Boots the apps of one test, closes them after it. */
export class Apps {
  readonly #open: TestingModule[] = [];

  async boot(
    metadata: ModuleMetadata,
    prepare: (builder: TestingModuleBuilder) => TestingModuleBuilder = (builder) => builder,
  ): Promise<TestingModule> {
    const app = await prepare(Test.createTestingModule(metadata)).compile();
    this.#open.push(app);
    return app.init();
  }

  async closeAll(): Promise<void> {
    for (const app of this.#open.splice(0)) await app.close();
  }
}

export function typeOrm(database: TestDatabase, name?: string): ReturnType<typeof TypeOrmModule.forRoot> {
  return TypeOrmModule.forRoot({
    type: 'postgres',
    url: database.url,
    retryAttempts: 0,
    ...(name === undefined ? {} : { name }),
  });
}

/** The job once its end is recorded. */
export async function ended(app: TestingModule, id: string): Promise<JobInfo | undefined> {
  const scheduler = app.get(JobScheduler);
  const isLive = (job: JobInfo | undefined): boolean =>
    job === undefined || ['pending', 'running', 'paused'].includes(job.status);
  const events = app.get(EngineEvents, { strict: false });
  for (;;) {
    const next = events.next('settled', ({ jobId }) => jobId === id);
    const job = await scheduler.get(id);
    if (!isLive(job)) return job;
    await next;
  }
}
