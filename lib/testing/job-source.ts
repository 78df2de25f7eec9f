import {
  type ClaimedJob,
  type HandlerFilter,
  type JobView,
  type LateOutcome,
  type NewJob,
  type ProgressReport,
  type Settlement,
} from '../store/job-store.js';
import { type ScheduleStore } from '../store/schedule-store.js';

export interface ClaimRequest {
  /** Looked at in this order: the first with a job that is due yields it. */
  readonly lanes: readonly string[];
  readonly handlers: readonly HandlerFilter[];
}

export interface ClaimAnswer {
  readonly job: ClaimedJob | undefined;
  /** Without a job: how long until a pending one of these lanes is due. */
  readonly nextDueInMs: number | undefined;
}

/** Where the tester takes jobs from, one at a time: a list, or a database. */
export abstract class JobSource {
  abstract claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** False: the claim no longer stands, and the outcome was discarded. */
  abstract settle(settlement: Settlement): Promise<boolean>;
  abstract report(progress: ProgressReport): Promise<void>;
  /** What the body of a claim that was cut off had to say in the end. */
  abstract late(outcome: LateOutcome): Promise<void>;
  /** The jobs that this application enqueued, in the order of the calls. */
  abstract jobs(): Promise<readonly JobView[]>;
  /** Where its recurring schedules are; undefined: nowhere. */
  abstract readonly schedules: ScheduleStore | undefined;
  /** Brings the annotated schedules there, as a node that starts does. */
  abstract register(): Promise<void>;
  /** A job that nobody but the tester asked for. */
  abstract enqueue(job: NewJob): Promise<void>;
  abstract now(): Promise<Date>;
  /** Milliseconds until a date, rounded so that what is due on it is due then; negative when it has passed. */
  abstract until(date: Date): Promise<number>;
  /** Moves on by so much. */
  abstract travel(ms: number): Promise<void>;
  abstract close(): Promise<void>;
}
