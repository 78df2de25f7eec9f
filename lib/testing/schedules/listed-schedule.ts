import { type ScheduleSpec } from '../../jobs/schedule-spec.js';
import {
  type DueSchedule,
  MOST_WAITING,
  type OccurrenceRow,
  type PlannedRun,
} from '../../store/schedule-store.js';

/** An occurrence, and what a job of it is told. */
export interface DecidedOccurrence {
  readonly scheduledFor: Date;
  readonly jobId: string;
  readonly missed: number;
  readonly delayMs: number;
  /** JSON text, instead of the template's. */
  readonly payload: string | undefined;
  readonly triggered: boolean;
}

type ListedOccurrence = Omit<OccurrenceRow, 'jobStatus'>;

/** A schedule of the list, and what became of its occurrences. */
export class ListedSchedule {
  /** By their time. */
  readonly occurrences = new Map<number, ListedOccurrence>();
  /** Oldest first. */
  readonly waiting: DecidedOccurrence[] = [];
  /** Of all its jobs. */
  readonly jobIds = new Set<string>();
  revision = 1;
  lastAt: Date | undefined;
  paused = false;
  fault: string | undefined;
  untold = 0;
  updatedAt: Date;

  constructor(
    public spec: ScheduleSpec,
    public anchor: Date,
    public nextAt: Date | undefined,
    readonly createdAt: Date,
  ) {
    this.updatedAt = createdAt;
  }

  get id(): string {
    return this.spec.id;
  }

  /** As `due` gives it. */
  due(nextAt: Date): DueSchedule {
    const { spec, revision, anchor, lastAt, untold } = this;
    return { ...spec, revision: String(revision), anchor, nextAt, lastAt, untold };
  }

  changed(now: Date): void {
    this.revision += 1;
    this.updatedAt = now;
  }

  /** Notes what becomes of an occurrence; what is enqueued is for the caller to enqueue. */
  decide(
    occurrence: DecidedOccurrence,
    ifBusy: Exclude<PlannedRun['ifBusy'], 'follow'>,
    now: Date,
    isLive: () => boolean,
  ): 'enqueued' | 'skipped' | 'waiting' {
    const runs = ifBusy === 'run' || (this.waiting.length === 0 && !isLive());
    const waits = ifBusy === 'wait' && this.waiting.length < MOST_WAITING;
    const outcome = runs ? 'enqueued' : waits ? 'waiting' : 'skipped';
    const { scheduledFor, jobId, triggered } = occurrence;
    this.note({
      scheduledFor,
      through: scheduledFor,
      count: 1,
      outcome,
      triggered,
      decidedAt: now,
      jobId: runs ? jobId : undefined,
    });
    if (outcome === 'waiting') this.waiting.push(occurrence);
    if (outcome !== 'skipped') this.untold = 0;
    return outcome;
  }

  /** The one that has waited longest becomes a job. */
  promote(now: Date): DecidedOccurrence | undefined {
    const oldest = this.waiting.shift();
    const noted = oldest && this.occurrences.get(oldest.scheduledFor.getTime());
    if (!noted) return undefined;
    this.note({ ...noted, outcome: 'enqueued', decidedAt: now, jobId: oldest.jobId });
    return oldest;
  }

  note(occurrence: ListedOccurrence): void {
    this.occurrences.set(occurrence.scheduledFor.getTime(), occurrence);
  }
}
