import { SystemClock } from '../../lib/cluster/clock.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import {
  type Results,
  ResultWaiter,
  type ResultWaiterParts,
} from '../../lib/scheduler/results/result-waiter.js';
import { testSettings } from './engine-node.js';

/** As the module would make it, on a clock that passes. */
export function resultWaiter(
  parts: Pick<ResultWaiterParts, 'store' | 'messages'> & Partial<ResultWaiterParts>,
): ResultWaiter {
  return new ResultWaiter({
    clock: new SystemClock(),
    events: new EngineEvents(),
    settings: testSettings,
    ...parts,
  });
}

/** For tests in which nobody awaits a result. */
export const noResults: Results = {
  result: () => Promise.reject(new Error('no result is awaited in this test')),
};
