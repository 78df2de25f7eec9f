import { uuidv7 } from 'uuidv7';
import { type Intake } from '../intake/intake.js';
import { ChildIntake, type ParentClaim } from '../jobs/child-intake.js';
import { type ChildEnqueueOptions, type JobHandle } from '../jobs/enqueue-options.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type NewJob } from '../store/job-store.js';
import { requireSaved, transactionOf } from './call-options.js';
import { handleOf } from './job-handle.js';
import { type JobMaker } from './job-maker.js';
import { type Results } from './results/result-waiter.js';

/**
 * `ctx.enqueue`: the same checks and the same way in as `JobScheduler.enqueue`, fenced by the parent's claim. Children of one
 * claim that are enqueued at the same moment share one insert.
 */
export class SchedulerChildIntake extends ChildIntake {
  constructor(
    private readonly intake: Pick<Intake, 'submit'>,
    private readonly maker: JobMaker,
    private readonly results: Results,
  ) {
    super();
  }

  override async enqueueChild(
    parent: ParentClaim,
    definition: JobDefinition,
    payload: unknown,
    options: ChildEnqueueOptions,
  ): Promise<JobHandle> {
    const id = uuidv7();
    const { id: parentId, claimSeq } = parent;
    requireSaved(definition, options);
    const transaction = transactionOf(definition, options) ?? parent.transaction;
    const making = this.maker
      .make(id, definition, payload, options, ['transaction', 'durability'])
      .then((job): NewJob => ({ ...job, parent: { id: parentId, claimSeq } }));
    const inserted = await this.intake.submit(making, transaction);
    return handleOf(this.results, await making, inserted);
  }
}
