import { type ResolvedBackoff } from './backoff.js';
import { type PriorityRank } from './priority.js';
import { type Misfire, type Overlap, type RecurringScope } from './recurrence.js';

/** What every occurrence of a schedule runs. */
export interface JobTemplate {
  readonly name: string;
  readonly version: number;
  readonly lane: string;
  readonly priority: PriorityRank;
  /** JSON text. */
  readonly payload: string;
  /** Undefined: the running node's definition counts. */
  readonly maxRetries: number | undefined;
  readonly backoff: ResolvedBackoff | undefined;
  readonly timeoutMs: number | undefined;
  readonly tags: readonly string[];
}

/** What a schedule says. */
export interface ScheduleSpec {
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** As `RecurrenceRule.expression` writes it. */
  readonly expression: string;
  readonly timeZone: string;
  readonly origin: 'annotation' | 'api';
  /** `ReportJobs.daily`, of annotations. */
  readonly owner: string | undefined;
  readonly template: JobTemplate;
  readonly misfire: Misfire;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  readonly scope: RecurringScope;
  readonly enabled: boolean;
  readonly businessKey: string | undefined;
}

/** A schedule that a method of this process is annotated with, read and checked. */
export interface AnnotatedSchedule {
  readonly spec: ScheduleSpec;
  /** The name of the method alone: a schedule whose class was renamed or minified is found again by it. */
  readonly method: string;
  /** Scope `node`: calls the method; the job's handler, otherwise. */
  readonly jobName: string;
  /** False: the method gets the context alone. */
  readonly takesPayload: boolean;
  /** Of a `@Cron` of @nestjs/schedule, by `adoptCron`. */
  readonly adopted?: { /** It said no zone. */ readonly zoneOfProcess: boolean };
}
