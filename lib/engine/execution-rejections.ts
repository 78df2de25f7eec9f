import { describeError, errorText } from '../errors/describe-error.js';
import { type JobContext } from '../jobs/job-context.js';
import { currentJob } from './async-context.js';

interface RejectionLogger {
  error(message: string): void;
}

const watchers = new Set<RejectionLogger>();

/**
 * While an engine runs: a promise that a handler left behind and that rejects is logged with its job, and does not end the
 * process, as it would by Node's default. Rejections of other code keep that default, or go to the app's own listeners.
 *
 * One listener for all engines of the process. Returns the function that takes it away again.
 */
export function watchRejections(logger: RejectionLogger): () => void {
  if (watchers.size === 0) process.on('unhandledRejection', onRejection);
  watchers.add(logger);
  return () => {
    if (watchers.delete(logger) && watchers.size === 0) process.off('unhandledRejection', onRejection);
  };
}

function onRejection(reason: unknown, promise: Promise<unknown>): void {
  // Node runs the listener in the async context in which the promise was made.
  const job = currentJob();
  if (job) report(job, reason);
  else if (process.listenerCount('unhandledRejection') === 1) rejectByDefault(promise);
}

function report(job: JobContext, reason: unknown): void {
  const [logger] = watchers;
  try {
    logger?.error(
      `${job.name} (${job.jobId}): a promise that its handler did not await was rejected: ${describeError(reason).message}; ` +
        `the outcome of the job is not touched by it: await the promise, or catch its error\n${errorText(reason)}`,
    );
  } catch {
    // A logger that throws here would end the process.
  }
}

/**
 * A listener, whatever it does, turns Node's default off (end the process, or what `--unhandled-rejections` says). So the
 * rejection is passed on to a promise of its own, without one.
 */
function rejectByDefault(promise: Promise<unknown>): void {
  process.off('unhandledRejection', onRejection);
  setImmediate(() => {
    if (watchers.size > 0) process.on('unhandledRejection', onRejection);
  });
  void promise.then();
}
