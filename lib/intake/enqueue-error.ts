import { EnqueueConflictError } from '../errors/enqueue-errors.js';
import { EnqueueInDoubtError } from '../errors/intake-errors.js';
import { faultKindOf, isLockTimeout } from '../store/store-fault.js';

/**
 * What the caller of an enqueue is told of a store's error. Another transaction stood in the way: named, and worth trying
 * again (the whole transaction, if it was the caller's). Everything else goes through as it is.
 *
 * @param ids - of the jobs, when they were to be committed by us.
 */
export function enqueueError(error: unknown, ids: readonly string[]): unknown {
  const kind = faultKindOf(error);
  if (kind === 'rolled_back' || isLockTimeout(error)) {
    return new EnqueueConflictError({ cause: error });
  }
  return kind === 'unknown' && ids.length > 0 ? new EnqueueInDoubtError(ids, { cause: error }) : error;
}
