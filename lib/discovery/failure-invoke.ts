import { type RegisteredHandler } from '../jobs/handler-registry.js';
import { type JobContext } from '../jobs/job-context.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type JobFailure, readFailure } from '../jobs/job-failure.js';
import { type CallMethod } from './handler-invoker.js';

/** How long the payload may take to be read. */
const PATIENCE_MS = 10_000;

/**
 * Calls an `@OnJobFailure` method with what the payload of its job holds.
 *
 * @param definition - of that job.
 */
export function failureInvoke(
  failureOf: JobDefinition,
  definition: Pick<JobDefinition, 'timeoutMs'>,
  call: CallMethod,
): RegisteredHandler['invoke'] {
  const { timeoutMs } = definition;
  // The method needs the other half.
  const patienceMs = timeoutMs === undefined ? PATIENCE_MS : Math.min(PATIENCE_MS, timeoutMs / 2);
  return async (failure, context) => {
    const { payload, error, unread } = await readFailure(failureOf, failure as JobFailure, patienceMs);
    if (unread !== undefined) {
      warn(context, `the payload of job ${error.jobId} is given as it was stored: ${unread}`);
    }
    return call([payload, error, context], context);
  };
}

/** A logger of the app that throws is no reason not to tell of a failure. */
function warn(context: JobContext, line: string): void {
  try {
    context.logger.warn(line);
  } catch {
    // See above.
  }
}
