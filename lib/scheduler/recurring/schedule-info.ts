import { type ResolvedBackoff } from '../../jobs/backoff.js';
import { type JobPriority, priorityOf } from '../../jobs/priority.js';
import { type Misfire, type Overlap, type RecurringScope } from '../../jobs/recurrence.js';
import { type OccurrenceRow, type ScheduleRow } from '../../store/schedule-store.js';

/** What has become of an occurrence. */
export type RecurringOccurrence = OccurrenceRow;

/** A recurring schedule as it stands. */
export interface RecurringScheduleInfo {
  readonly id: string;
  readonly name: string;
  /** As it was given; intervals as `@every 15s`. */
  readonly expression: string;
  readonly timeZone: string;
  /** `annotation`: a `@Recurring`. `api`: made by `create`. */
  readonly origin: 'annotation' | 'api';
  /** `ReportJobs.daily`, of annotations. */
  readonly owner: string | undefined;
  readonly businessKey: string | undefined;
  readonly misfire: Misfire;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  readonly scope: RecurringScope;
  readonly enabled: boolean;
  readonly paused: boolean;
  /**
   * Why it does not run: what is stored cannot be read or fired, and a change, or a resume, mends it; or `PRIORITY_DISABLED`: every node
   * that serves its lane has switched its priority off, and it runs again when one has not.
   */
  readonly fault: string | undefined;
  /** Its annotation is gone: no live node has had it for longer than `recurring.convergence`. */
  readonly removedAt: Date | undefined;
  /** Before the jitter. `undefined`: never, or (with scope `node`) each node knows for itself. */
  readonly nextOccurrence: Date | undefined;
  /** The newest that became a job. */
  readonly lastOccurrence: Date | undefined;
  /** Jobs of it that have not ended: with `overlap: 'skip'` the next occurrence waits for none of them, and does not run. */
  readonly liveJobs: number;
  /** Occurrences that wait for one of them to end. */
  readonly waiting: number;
  /** No live node has a handler for its jobs (with scope `node`: the method). */
  readonly handlerMissing: boolean;
  /** What each occurrence runs. */
  readonly job: {
    readonly name: string;
    readonly version: number;
    readonly lane: string;
    readonly priority: JobPriority;
    readonly payload: unknown;
    /** `undefined`: as the definition of the running node says; so of `backoff` and `timeoutMs`. */
    readonly maxRetries: number | undefined;
    readonly backoff: ResolvedBackoff | undefined;
    readonly timeoutMs: number | undefined;
  };
  readonly tags: readonly string[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** One page of `RecurringScheduler.list`. */
export interface RecurringSchedulePage {
  /** By id. */
  readonly schedules: readonly RecurringScheduleInfo[];
  /** Gets the next page; `undefined` on the last one. */
  readonly after: string | undefined;
}

function switchedOff({ lane, priority }: ScheduleRow['template']): string {
  return (
    `PRIORITY_DISABLED: priority "${priorityOf(priority)}" of lane "${lane}" is switched off by every node that serves the lane: ` +
    'occurrences are skipped until one has a bucket for it'
  );
}

/** The store's row in the words of users. */
export function scheduleInfo(row: ScheduleRow): RecurringScheduleInfo {
  const { template } = row;
  const { name, version, lane, maxRetries, backoff, timeoutMs, tags } = template;
  return {
    id: row.id,
    name: row.name,
    expression: row.expression,
    timeZone: row.timeZone,
    origin: row.origin,
    owner: row.owner,
    businessKey: row.businessKey,
    misfire: row.misfire,
    overlap: row.overlap,
    jitterMs: row.jitterMs,
    scope: row.scope,
    enabled: row.enabled,
    paused: row.paused,
    fault: row.fault ?? (row.switchedOff ? switchedOff(template) : undefined),
    removedAt: row.removedAt,
    nextOccurrence: row.nextAt,
    lastOccurrence: row.lastAt,
    liveJobs: row.liveJobs,
    waiting: row.waiting,
    handlerMissing: !row.served,
    job: {
      name,
      version,
      lane,
      priority: priorityOf(template.priority),
      payload: payloadOf(template.payload),
      maxRetries,
      backoff,
      timeoutMs,
    },
    tags,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

/** A row that somebody broke by hand must not hide the others. */
function payloadOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
