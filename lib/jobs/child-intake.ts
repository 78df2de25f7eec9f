import { type ChildEnqueueOptions, type JobHandle } from './enqueue-options.js';
import { type JobDefinition } from './job-definition.js';

/** The claim on whose behalf a child is enqueued. */
export interface ParentClaim {
  readonly id: string;
  readonly claimSeq: string;
  /** Of a transactional handler: joined, unless the call names another. */
  readonly transaction?: unknown;
}

/** What `ctx.enqueue` calls. The insert is fenced: it happens only while the parent's claim stands. */
export abstract class ChildIntake {
  /** Rejects with `ClaimLostError` when the parent's claim no longer stands, else as `JobScheduler.enqueue` does. */
  abstract enqueueChild(
    parent: ParentClaim,
    definition: JobDefinition,
    payload: unknown,
    options: ChildEnqueueOptions,
  ): Promise<JobHandle>;
}
