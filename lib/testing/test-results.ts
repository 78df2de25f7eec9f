import { SystemClock } from '../cluster/clock.js';
import { ResultWaiter, type ResultWaiterParts } from '../scheduler/results/result-waiter.js';

/**
 * For an application under test, whose clock stands still: timeouts of `result()` pass when the tester moves it, and ends are
 * noticed all the same.
 */
export function testResults(parts: Omit<ResultWaiterParts, 'pacing'>): ResultWaiter {
  return new ResultWaiter({ ...parts, pacing: new SystemClock() });
}
