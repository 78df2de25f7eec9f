import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** A run of a schedule of scope `node` asked its context for what only a job can have. */
export class NodeRunError extends RatchetError {
  override readonly code = 'NODE_RUN_HAS_NO_JOB';

  constructor(
    /** Of the context. */
    readonly method: string,
    readonly scheduleId: string,
    mend: string,
  ) {
    super(
      `NODE_RUN_HAS_NO_JOB: ${showValue(scheduleId, 200)}: ctx.${method}: each node runs this schedule for itself (scope 'node'), and no ` +
        `job is made of it; ${mend}, or give it the scope 'cluster'`,
    );
  }
}
