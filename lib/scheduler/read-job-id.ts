import { InvalidJobIdError } from '../errors/result-errors.js';
import { isUuid } from '../jobs/job-id.js';

/**
 * The id of a job that a call was given, as the database writes it, whose answers are told apart by it. What can be nobody's id
 * is a mistake of the caller, not a job that is gone.
 *
 * @throws InvalidJobIdError
 */
export function readJobId(call: string, id: unknown): string {
  if (!isUuid(id)) throw new InvalidJobIdError(call, id);
  return id.toLowerCase();
}

/** A handle where an id or a filter is expected. It has an `id`, so that it would be read as a strange filter. */
export function isHandle(target: object | null): boolean {
  return target !== null && 'result' in target && typeof target.result === 'function';
}
