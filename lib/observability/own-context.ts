import { AsyncLocalStorage } from 'node:async_hooks';

/** Taken when this module is loaded, at the top of the program: whatever a caller's request holds is not in it. */
const run = AsyncLocalStorage.snapshot();

/**
 * Runs `work`, and all that it starts, in an async context that inherits nothing of whoever happens to call: no tenant, no
 * trace, no ambient transaction. The engine's turns are set off by enqueues of other requests; without this, a job would
 * run, and write, in the context of the request that came last.
 */
export function inOwnContext<T>(work: () => T): T {
  return run(work);
}
