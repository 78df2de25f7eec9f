import { type JobStatus, type TerminalJobStatus } from '../jobs/job-status.js';
import { type PriorityRank } from '../jobs/priority.js';
import { type JobView } from './job-view.js';

/** Questions about many jobs, what is done to jobs, and what comes of it: parts of the port `JobStore`. */

export type Canceled =
  | { readonly outcome: 'canceled'; readonly lane: string; readonly name: string }
  /** It was running: its owner must hear of it (a notice row was left too). `claimSeq` is the claim that was cut off. */
  | {
      readonly outcome: 'canceled_running';
      readonly lane: string;
      readonly name: string;
      readonly claimSeq: string;
      readonly node: string | undefined;
    }
  | { readonly outcome: 'ended'; readonly status: JobStatus }
  | { readonly outcome: 'not_found' };

export type Redriven =
  | { readonly outcome: 'redriven'; readonly lane: string; readonly priority: PriorityRank }
  | { readonly outcome: 'not_failed'; readonly status: JobStatus }
  | { readonly outcome: 'held'; readonly holder: string | undefined; readonly businessKey: string }
  | { readonly outcome: 'not_found' };

/** Conditions on jobs, all of which must hold; none is every job. Lists are alternatives, except `tags`, of which a job has all. */
export interface JobQuery {
  readonly ids?: readonly string[];
  readonly statuses?: readonly JobStatus[];
  readonly names?: readonly string[];
  readonly lanes?: readonly string[];
  readonly priorities?: readonly PriorityRank[];
  readonly tags?: readonly string[];
  readonly businessKeys?: readonly string[];
  readonly parentId?: string;
  /** Half-open: from ≤ time < until. A live job has not ended. */
  readonly created?: TimeRange;
  readonly scheduled?: TimeRange;
  readonly ended?: TimeRange;
}

export interface TimeRange {
  readonly from?: Date;
  readonly until?: Date;
}

/** A page of {@link JobStore.find}: newest ids first. */
export interface PageRequest {
  /** At most so many jobs. */
  readonly limit: number;
  /** The last id of the page before. */
  readonly before?: string;
}

/** A page. It has fewer jobs than were asked for when they are large, but one at least if any is left. */
export interface FoundJobs {
  readonly jobs: readonly JobView[];
  /** Others come behind these. */
  readonly more: boolean;
}

/** What may be done to many jobs. Each acts on the statuses from which the table of transitions allows it, and on no other. */
export type ControlAction =
  | { readonly kind: 'cancel' }
  /** A running job is marked, and paused when its execution gives it back. */
  | { readonly kind: 'pause' }
  /** Also takes back the mark of a running one. */
  | { readonly kind: 'resume' }
  | { readonly kind: 'redrive' }
  /** Pending and paused jobs. `runAt` wins over `delayMs`. */
  | { readonly kind: 'reschedule'; readonly delayMs: number; readonly runAt?: Date };

/** How far a {@link JobStore.control} has come. */
export interface ControlPlace {
  /** The last id that was looked at. */
  readonly after: string;
  /**
   * The database's text of the moment when it began: what came into being (`redrive`: failed) later is left alone, so that it
   * ends. Does not count for jobs that the query names by their ids.
   */
  readonly asOf: string;
}

export interface ControlledJob {
  readonly id: string;
  readonly name: string;
  readonly lane: string;
  readonly priority: PriorityRank;
  /** The claim that was cut off (`cancel`) or marked (`pause`, `resume`): the job was running. */
  readonly claimSeq?: string;
}

/** What one step of {@link JobStore.control} did. */
export interface ControlStep {
  /** Jobs of this step that the query means and the action could act on. */
  readonly matched: number;
  /**
   * Those that it changed. The others changed before their turn, stayed locked by somebody for longer than a step waits, or
   * (`redrive`) have a business key that a live job holds.
   */
  readonly changed: readonly ControlledJob[];
  /** `undefined`: that was the last step. */
  readonly next: ControlPlace | undefined;
  /**
   * It failed with this after it had changed some, or may have: `changed` are those for certain. A step that fails before that
   * rejects.
   */
  readonly failure?: { readonly cause: unknown };
}

/** How a job ended, for those who await it. */
export interface EndedJob {
  readonly id: string;
  readonly name: string;
  readonly status: TerminalJobStatus;
  /** Parsed JSON; `succeeded` only. */
  readonly result: unknown;
  readonly error: string | undefined;
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
}

export interface EndedAnswer {
  readonly ended: readonly EndedJob[];
  /** Ended too, but the answer had no more room for their results: ask again. None, when `ended` is empty. */
  readonly postponed: readonly string[];
  /** Neither live, nor in history, nor in the dead letter: never committed, dropped, or forgotten. */
  readonly absent: readonly string[];
}
