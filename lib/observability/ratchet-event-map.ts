/**
 * The catalogue of {@link RatchetEvents}: every event with what it carries, in this file only. Names are `<thing>.<past
 * tense>`; later features add theirs here. An event says what **this process** did; none is sent to other processes.
 */
export interface RatchetEventMap {
  /** This process enqueued a job, and its commit was heard of. */
  'job.enqueued': JobEnqueuedEvent;
  /** A job of `durability: 'buffered'` could not be saved: it is not there, or nobody can say whether it is. */
  'job.unsaved': JobUnsavedEvent;
  /** This node claimed a job and begins to run it. */
  'job.started': JobStartedEvent;
  /** The success is recorded. */
  'job.succeeded': JobSucceededEvent;
  /** The failure is recorded; the job is tried again. */
  'job.retrying': JobRetryingEvent;
  /** The failure is recorded; the job is in the dead letter. Also told by the node that buries a job of a node that stopped. */
  'job.failed': JobFailedEvent;
  /** The job was given back until later, by `ctx.snooze()`, uncharged. */
  'job.snoozed': JobSnoozedEvent;
  /** The job was given back unfinished, uncharged, because this node stops. */
  'job.released': JobReleasedEvent;
  /** An execution of this node no longer owns its job: what it still says is discarded. */
  'job.lost': JobLostEvent;
  /** This process canceled a job. */
  'job.canceled': JobCanceledEvent;
  /** This node made a job of an occurrence of a recurring schedule, or, with scope `node`, runs one. */
  'schedule.fired': ScheduleFiredEvent;
  /** This node found occurrences that nobody had seen to in time, and that have no run of their own. */
  'schedule.missed': ScheduleMissedEvent;
  /** This node found an occurrence due that does not run, because of its `overlap` rule. */
  'schedule.skipped': ScheduleSkippedEvent;
}

/** The name of an event of {@link RatchetEvents}. */
export type RatchetEventName = keyof RatchetEventMap;

/** Which occurrence. */
export interface OccurrenceEvent {
  readonly scheduleId: string;
  /** The planned time. */
  readonly scheduledFor: Date;
}

export interface ScheduleFiredEvent extends OccurrenceEvent {
  /** Of the job that it is now; absent with scope `node`, which makes none. */
  readonly jobId?: string;
  /** As `ctx.missed`: how many were missed since the run before it and have no run of their own. */
  readonly missed: number;
}

export interface ScheduleMissedEvent extends OccurrenceEvent {
  /** Of several, the last; `scheduledFor` is the first. */
  readonly through: Date;
  readonly count: number;
}

export interface ScheduleSkippedEvent extends OccurrenceEvent {
  /**
   * `overlap`: a job of the schedule is live. `queue_full`: too many occurrences wait already. `priority_disabled`: every node that
   * serves the lane has switched the priority off.
   */
  readonly reason: 'overlap' | 'queue_full' | 'priority_disabled';
}

/** Which job. */
export interface JobEvent {
  readonly jobId: string;
  /** Of its definition. */
  readonly name: string;
  readonly lane: string;
}

/** Which execution of a job. */
export interface ExecutionEvent extends JobEvent {
  /** The node that ran it: this process, but for a `job.failed` of a node that stopped. */
  readonly node: string;
  /** The claim: with `jobId` it names one execution for ever. */
  readonly claimSeq: string;
  /** The how-many-eth execution of the job this is, from 1. */
  readonly execution: number;
}

export interface JobEnqueuedEvent extends JobEvent {
  readonly priority: 'lowest' | 'low' | 'normal' | 'high' | 'critical';
  /** When it may run; absent: at once. Of a `delay` by this process's clock; the database goes by its own. */
  readonly dueAt?: Date;
  /** The job that enqueued it with `ctx.enqueue`. */
  readonly parentId?: string;
}

export interface JobUnsavedEvent extends JobEvent {
  /** The message of what `saved` rejects with. */
  readonly error: string;
}

export interface JobStartedEvent extends ExecutionEvent {
  /** Milliseconds between its due time and its claim, both by the database's clock. */
  readonly waitedMs: number;
}

export interface JobSucceededEvent extends ExecutionEvent {
  /** How long the execution took, in milliseconds. */
  readonly durationMs: number;
}

export interface JobRetryingEvent extends ExecutionEvent {
  /** As it is stored: name, message and stack, cut to `limits.errorBytes`. */
  readonly error: string;
  /** Failures so far, this one included. */
  readonly failures: number;
  /** Milliseconds until it is due again. */
  readonly delayMs: number;
  /** How long the execution took, in milliseconds. */
  readonly durationMs: number;
}

export interface JobFailedEvent extends ExecutionEvent {
  /** As it is stored: name, message and stack, cut to `limits.errorBytes`. */
  readonly error: string;
  /** Failures so far, this one included. */
  readonly failures: number;
  /** How often a node died while it ran the job. */
  readonly crashes: number;
  /** How long the execution took, in milliseconds; absent when its node stopped. */
  readonly durationMs?: number;
}

export interface JobSnoozedEvent extends ExecutionEvent {
  /** Milliseconds until it is due again. */
  readonly delayMs: number;
  /** How long the execution took, in milliseconds. */
  readonly durationMs: number;
}

export interface JobReleasedEvent extends ExecutionEvent {
  /**
   * `shutdown`: it had not finished when the node stopped. `unbegun`: it only waited in a buffer, and was given back: the node stopped,
   * another had nothing to do, or its lane was paused or its bucket drained by hand. `unrecordable`: it had finished, and the database
   * refused to record the outcome until the node stopped; or the last statement of its transaction met what is not its doing.
   */
  readonly reason: 'shutdown' | 'unbegun' | 'unrecordable';
}

export interface JobLostEvent extends ExecutionEvent {
  /**
   * `canceled`: somebody canceled the job, and the node was told. `claim`: the database says that the claim no longer stands:
   * the job was canceled, or taken over because this node seemed dead.
   */
  readonly reason: 'canceled' | 'claim';
}

export interface JobCanceledEvent {
  readonly jobId: string;
  /** Unknown for a job that an enqueue with `onConflict: 'replace'` took the place of. */
  readonly name?: string;
  readonly lane?: string;
  /** It was running: its node tells `job.lost`. */
  readonly running: boolean;
}
