import { setTimeout as pause } from 'node:timers/promises';
import { faultKindOf, type StoreFaultKind } from '../store-fault.js';

/** Waits between the attempts, in milliseconds, before the jitter. */
const RETRY_DELAYS_MS = [20, 200];

/** What waited this long already (a lock timeout, a connect timeout) is not tried again: the caller has other things to do. */
const PATIENCE_MS = 1_500;

/** Also after a lost reply: whoever took, renewed or released a lease may do so again. */
const PASSING: ReadonlySet<StoreFaultKind> = new Set(['rolled_back', 'unavailable', 'unknown']);

/** Runs one statement about a lease, through faults that pass. Rejects with the last one. */
export async function retriedLease<T>(
  work: () => Promise<T>,
  random: () => number = Math.random,
): Promise<T> {
  const startedMs = performance.now();
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const delayMs = RETRY_DELAYS_MS[attempt];
      const spent = performance.now() - startedMs > PATIENCE_MS;
      if (delayMs === undefined || spent || !PASSING.has(faultKindOf(error))) throw error;
      await pause(delayMs * (0.5 + random() / 2));
    }
  }
}
