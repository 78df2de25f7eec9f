import { AsyncLocalStorage } from 'node:async_hooks';
import { type JobContext } from '../jobs/job-context.js';
import { inOwnContext } from '../observability/own-context.js';

const storage = new AsyncLocalStorage<JobContext>();

/**
 * The job that the calling code runs for, however deep it is called; `undefined` outside of jobs. For log lines and traces:
 * work that needs the context takes it as a parameter.
 */
export function currentJob(): JobContext | undefined {
  return storage.getStore();
}

/** Runs `work` and all that it starts as part of a job, and of nothing else: whoever woke the engine is no part of it. */
export function runInJob<T>(context: JobContext, work: () => T): T {
  return inOwnContext(() => storage.run(context, work));
}
