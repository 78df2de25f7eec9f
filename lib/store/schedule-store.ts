import { type PriorityRank } from '../jobs/priority.js';
import { type ScheduleSpec } from '../jobs/schedule-spec.js';
import { type NodeRef } from './membership.js';

export type { JobTemplate, ScheduleSpec } from '../jobs/schedule-spec.js';

/** The lease of the node that fires what is due: {@link ScheduleStore.due} takes it. */
export const RECURRING_LEASE = 'ratchet:recurring';

/** So many occurrences of a schedule wait at most (`overlap: 'queue'`); further ones are skipped. */
export const MOST_WAITING = 1_000;

/**
 * The port to recurring schedules. A schedule says when, an occurrence is one of these times, and a job is what runs.
 *
 * What makes a duplicate impossible is here and nowhere else: {@link ScheduleStore.fire} writes the occurrences of a schedule, their
 * jobs and the next due time in one transaction, only while that schedule is still due at the time that the caller saw, and an
 * occurrence is unique by (schedule, time). Which times those are is the caller's arithmetic; "now" is always the store's clock,
 * plus the offset of `JobStore.travel`.
 *
 * Dates of occurrences have whole milliseconds. A method that fails changes nothing, or rejects with an error for which `StoreFault`
 * says that the outcome is unknown; each may then be called again.
 */
export abstract class ScheduleStore {
  /** The store's clock, in whole milliseconds, rounded down. */
  abstract now(): Promise<Date>;

  /** Those that exist, in no order, the removed ones too. What cannot be read of a row is its `fault`. */
  abstract byIds(
    ids: readonly string[],
  ): Promise<{ readonly now: Date; readonly schedules: readonly ScheduleRow[] }>;
  /** By id, ascending. */
  abstract list(request: ListSchedules): Promise<readonly ScheduleRow[]>;

  /**
   * Writes schedules, each a compare-and-set: `revision` undefined inserts, and finds that somebody was faster when the id exists;
   * with a revision it overwrites that one. All that can be written are. `held`: another schedule has the business key.
   */
  abstract write(writes: readonly ScheduleWrite[]): Promise<readonly WriteOutcome[]>;
  /** Pauses, resumes, marks as removed or broken: a compare-and-set like {@link ScheduleStore.write}. */
  abstract mark(id: string, revision: string, mark: ScheduleMark): Promise<boolean>;
  /** Deletes schedules with their occurrences, and cancels their jobs that are not running. Says what existed. */
  abstract delete(ids: readonly string[]): Promise<readonly DeletedSchedule[]>;

  /**
   * What is due, for the one node that holds the lease: the oldest `limit` schedules. Takes or prolongs the lease in the same
   * statement, and only when something is due.
   */
  abstract due(request: DueRequest): Promise<DueAnswer>;
  /** See the class. One statement for all; a firing that fails alone is reported as `failed` and does not hold up the others. */
  abstract fire(firings: readonly Firing[]): Promise<readonly FiringOutcome[]>;
  /** Occurrences that waited (`overlap: 'queue'`) become jobs, the oldest of each schedule that has no live job. */
  abstract promote(limit: number): Promise<readonly FiredJob[]>;
  /** An occurrence now, whatever the plan says. Undefined: there is no such schedule. */
  abstract trigger(request: TriggerRequest): Promise<OccurrenceOutcome | undefined>;

  /** Newest first. */
  abstract occurrences(request: OccurrencesRequest): Promise<readonly OccurrenceRow[]>;

  /**
   * The schedules of annotations that no live node has: marked as orphaned when first seen so, unmarked when a node has them again;
   * removed (see {@link ScheduleStore.removed}) once orphaned for longer than `windowMs`. Their jobs that are not running are canceled.
   */
  abstract sweep(windowMs: number): Promise<readonly string[]>;
  /** Deletes occurrences of so long ago, and schedules removed as long ago; in chunks. Returns how many occurrences. */
  abstract forget(ageMs: number, signal?: AbortSignal): Promise<number>;
}

export interface ScheduleWrite {
  readonly spec: ScheduleSpec;
  readonly revision: string | undefined;
  /** Where intervals count from. */
  readonly anchor: Date;
  /**
   * Undefined: it is not due at any time (disabled, paused, of scope `node`, or its rule has come to its end). `keep`: as it stands
   * when it is written; firing does not change the revision, so whoever has read it may not know it any more.
   */
  readonly nextAt: Date | undefined | 'keep';
}

export type WriteOutcome = 'written' | 'conflict' | { readonly heldBy: string };

export interface ScheduleRow extends ScheduleSpec {
  /** Rises with every change; firing is none. */
  readonly revision: string;
  readonly anchor: Date;
  readonly nextAt: Date | undefined;
  /** The newest occurrence that became a job. */
  readonly lastAt: Date | undefined;
  readonly paused: boolean;
  /** An annotation that no node has had for longer than the convergence window. */
  readonly removedAt: Date | undefined;
  /** Why it does not run: its row cannot be read or fired. */
  readonly fault: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Live jobs of it. Filled by {@link ScheduleStore.list} and {@link ScheduleStore.byIds}. */
  readonly liveJobs: number;
  /** Occurrences that wait for one of them to end. */
  readonly waiting: number;
  /** Some live node has a handler for its jobs. */
  readonly served: boolean;
  /** Every node that serves its lane has switched its priority off: no occurrence of it becomes a job. */
  readonly switchedOff?: boolean;
}

/** A row whose content cannot be read is not a {@link ScheduleRow}: it has an id, a revision and a fault only. */
export interface BrokenSchedule {
  readonly id: string;
  readonly revision: string;
  readonly fault: string;
}

export type ScheduleMark =
  | { readonly kind: 'paused' }
  /** With the time that it is due next. */
  | { readonly kind: 'resumed'; readonly nextAt: Date | undefined }
  | { readonly kind: 'broken'; readonly fault: string };

export interface DeletedSchedule {
  readonly id: string;
  readonly canceled: readonly string[];
}

export interface ListSchedules {
  readonly after?: string | undefined;
  readonly limit: number;
  readonly tag?: string | undefined;
  readonly businessKey?: string | undefined;
  readonly origin?: 'annotation' | 'api' | undefined;
  /** Removed ones too. */
  readonly removed?: boolean | undefined;
}

export interface DueRequest {
  readonly node: NodeRef;
  readonly leaseMs: number;
  readonly limit: number;
}

export interface DueAnswer {
  readonly now: Date;
  /** Another node holds the lease and does the work; it expires then. `due` is empty. */
  readonly heldForMs: number | undefined;
  readonly due: readonly DueSchedule[];
  readonly broken: readonly BrokenSchedule[];
  /** More were due than `limit`, or than the answer had room for, because of the size of their payloads. */
  readonly more: boolean;
  /** Some occurrence waits, and no job of its schedule is live. */
  readonly promotable: boolean;
  /** Until the next one is due, of those that are not due yet, rounded up; undefined: none. */
  readonly nextInMs: number | undefined;
}

export type DueSchedule = ScheduleSpec & {
  readonly revision: string;
  readonly anchor: Date;
  readonly nextAt: Date;
  readonly lastAt: Date | undefined;
  /**
   * How many occurrences were missed that no run has been told of: a firing adds the counts of {@link Firing.missed}, and one of
   * which a run became a job, or waits, sets it to 0. (The planner adds it to the `missed` of its first run.)
   */
  readonly untold: number;
};

/** One schedule's turn. */
export interface Firing {
  readonly id: string;
  readonly revision: string;
  /** It must still be due at this time. */
  readonly nextAt: Date;
  /** Due next then; undefined: never again. */
  readonly advanceTo: Date | undefined;
  /** Those to run, oldest first. */
  readonly runs: readonly PlannedRun[];
  /** Those that do not run because nobody was there in time, as ranges, oldest first. */
  readonly missed: readonly MissedRange[];
}

export interface PlannedRun {
  readonly at: Date;
  /** UUIDv7 of the job, if it becomes one. */
  readonly jobId: string;
  /** After `at`: the jitter. */
  readonly delayMs: number;
  readonly missed: number;
  /**
   * When a job of the schedule is live or waits, or a run of the same firing went before it. `follow`: it waits for the runs of the
   * same firing, and is skipped for anything else.
   */
  readonly ifBusy: 'run' | 'skip' | 'wait' | 'follow';
}

export interface MissedRange {
  readonly from: Date;
  readonly to: Date;
  readonly count: number;
}

/** A job that an occurrence has become. */
export interface FiredJob {
  readonly scheduleId: string;
  readonly at: Date;
  readonly jobId: string;
  readonly lane: string;
  readonly priority: PriorityRank;
  readonly name: string;
  /** What its context is told. */
  readonly missed: number;
  /** Until it is due; 0 is now. */
  readonly dueInMs: number;
}

export type FiringOutcome =
  | {
      readonly id: string;
      readonly outcome: 'fired';
      readonly jobs: readonly FiredJob[];
      readonly skipped: readonly Date[];
      readonly waiting: readonly Date[];
      /** Skipped because the priority is switched off in the lane: see {@link ScheduleRow.switchedOff}. */
      readonly refused?: readonly Date[];
    }
  /** It is not due any more at that time, or not to be had just now: somebody else fires or changes it. */
  | { readonly id: string; readonly outcome: 'superseded' }
  /** `bad_row` (see `faultKindOf`): it cannot be fired as it stands. Otherwise the database went away after it had fired others. */
  | { readonly id: string; readonly outcome: 'failed'; readonly error: unknown };

export interface TriggerRequest {
  readonly id: string;
  readonly jobId: string;
  /** Of the job, when a job of the schedule is live. */
  readonly ifBusy: 'run' | 'skip' | 'wait' | undefined;
  /** JSON text, instead of the template's. */
  readonly payload?: string | undefined;
}

export type OccurrenceOutcome =
  | { readonly outcome: 'enqueued'; readonly job: FiredJob }
  | { readonly outcome: 'skipped' | 'waiting'; readonly at: Date }
  /** Nothing was done: see {@link ScheduleRow.switchedOff}. `nodes` are their ids. */
  | {
      readonly outcome: 'disabled';
      readonly lane: string;
      readonly priority: PriorityRank;
      readonly nodes: readonly string[];
    };

export interface OccurrencesRequest {
  readonly scheduleId: string;
  readonly limit: number;
  /** Only those planned before. */
  readonly before?: Date | undefined;
  /** Only those planned at or after. */
  readonly since?: Date | undefined;
}

export interface OccurrenceRow {
  readonly scheduledFor: Date;
  /** Of a range of missed ones, the last; otherwise the same. */
  readonly through: Date;
  readonly count: number;
  /** `skipped`: a job of the schedule was live. `missed`: nobody was there in time, and the misfire policy dropped it. */
  readonly outcome: 'enqueued' | 'waiting' | 'skipped' | 'missed';
  /** Asked for by `trigger`, not by the plan. */
  readonly triggered: boolean;
  /** When it was decided. */
  readonly decidedAt: Date;
  readonly jobId: string | undefined;
  /** Of the job: a live status or an outcome; undefined when it has none, or when retention has taken it. */
  readonly jobStatus: string | undefined;
}
