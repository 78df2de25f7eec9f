import { type ExecutionOutcome, type JobStatus } from '../jobs/job-status.js';
import { type PriorityRank } from '../jobs/priority.js';

/** A job as people ask for it: live, finished, or in the dead letter. */
export interface JobView {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly status: JobStatus;
  readonly lane: string;
  readonly priority: PriorityRank;
  readonly payload: unknown;
  readonly result: unknown;
  readonly error: string | undefined;
  readonly progress: unknown;
  readonly scheduledAt: Date;
  readonly createdAt: Date;
  readonly begunAt: Date | undefined;
  readonly endedAt: Date | undefined;
  /** The node that runs it now, or ran it last. */
  readonly node: string | undefined;
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
  readonly claimSeq: string;
  readonly maxRetries: number | undefined;
  readonly businessKey: string | undefined;
  readonly tags: readonly string[];
  readonly metadata: unknown;
  readonly parentId: string | undefined;
  /** It runs, and is paused when this execution ends without ending the job. */
  readonly pauseRequested: boolean;
}

/** One attempt, from the uniting view. */
export interface ExecutionView {
  readonly jobId: string;
  readonly claimSeq: string;
  readonly number: number;
  readonly node: string | undefined;
  readonly outcome: ExecutionOutcome | 'running';
  readonly error: string | undefined;
  readonly beganAt: Date | undefined;
  readonly endedAt: Date | undefined;
  readonly lateOutcome: string | undefined;
  readonly lateError: string | undefined;
  readonly lateAt: Date | undefined;
}
