import { InvalidEnqueueOptionError } from '../../errors/enqueue-errors.js';
import { type JobDefinition } from '../../jobs/job-definition.js';
import { readJobId } from '../read-job-id.js';
import { type AboutJob } from './lane-waits.js';

/**
 * The arguments of `scheduler.handle`: an id, or a definition and an id.
 *
 * @throws InvalidJobIdError, InvalidEnqueueOptionError
 */
export function handleTarget(args: readonly unknown[]): { id: string; about: AboutJob | undefined } {
  const [first, second] = args;
  if (args.length < 2) return { id: readJobId('handle', first), about: undefined };
  const { name, lane } = (first ?? {}) as Partial<JobDefinition>;
  if (typeof name === 'string' && typeof lane === 'string')
    return { id: readJobId('handle', second), about: { name, lane } };
  throw new InvalidEnqueueOptionError(
    'handle',
    'definition',
    first,
    'what defineJob() returned, before the id; or the id alone',
  );
}
