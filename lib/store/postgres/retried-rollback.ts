import { setTimeout as pause } from 'node:timers/promises';
import { faultKindOf } from '../store-fault.js';

/** Waits between the attempts, in milliseconds, before the jitter. */
const RETRY_DELAYS_MS = [5, 20, 80, 200];

/** Runs a statement again that was rolled back for certain: a deadlock, a conflict of serialization. Rejects with the last one. */
export async function retriedRollback<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const delayMs = RETRY_DELAYS_MS[attempt];
      if (delayMs === undefined || faultKindOf(error) !== 'rolled_back') throw error;
      await pause(delayMs * (0.5 + Math.random() / 2));
    }
  }
}
