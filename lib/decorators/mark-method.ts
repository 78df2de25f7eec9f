import { JobDecoratorMisplacedError } from '../errors/discovery-errors.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { decoratorOf, JOB_MARK, type JobMark } from './job-mark.js';
import { decoratedMethod, type MarkedPlace } from './marked-place.js';

/**
 * Leaves the mark on a method and its place.
 *
 * @param decorator - its name, for messages.
 * @param definition - as it was given.
 * @param made - makes the mark's own part, once the place and the definition are known to be right.
 * @throws JobDecoratorMisplacedError
 */
export function markMethod(
  decorator: '@Job' | '@OnJobFailure',
  definition: JobDefinition,
  place: MarkedPlace,
  made: () => Omit<JobMark, 'owner'>,
): void {
  const { owner, method } = decoratedMethod(decorator, place);
  const misplaced = (problem: string): JobDecoratorMisplacedError =>
    new JobDecoratorMisplacedError(owner, decorator, problem);
  if (!isDefinition(definition)) {
    const names =
      decorator === '@Job' ? 'neither a definition (defineJob) nor a name' : 'no definition (defineJob)';
    throw misplaced(`was given ${names}`);
  }
  const earlier = Reflect.getOwnMetadata(JOB_MARK, method) as JobMark | undefined;
  if (earlier) {
    throw misplaced(`("${definition.name}") stands beside ${decoratorOf(earlier)}; a method handles one job`);
  }
  const mark: JobMark = { ...made(), owner };
  Reflect.defineMetadata(JOB_MARK, mark, method);
  Reflect.defineMetadata(JOB_MARK, mark, place.target, place.key);
}

/** JavaScript callers, and a definition of a circular import that is not there yet. */
function isDefinition(value: unknown): value is JobDefinition {
  return typeof value === 'object' && value !== null && 'name' in value && 'version' in value;
}
