import { NodeRunError } from '../errors/node-run-errors.js';
import { type JobHandle } from '../jobs/enqueue-options.js';
import { ExecutionContext } from './execution-context.js';

/**
 * The context of a run of scope `node`, which has no job: what needs one is refused, and its progress is kept nowhere.
 */
export class NodeRunContext extends ExecutionContext {
  override snooze(): void {
    throw new NodeRunError('snooze', this.scheduleId, 'return, and wait for the next run');
  }

  override enqueue<Result>(): Promise<JobHandle<Result>> {
    const mend = 'inject JobScheduler and enqueue with that';
    return Promise.reject(new NodeRunError('enqueue', this.scheduleId, mend));
  }
}
