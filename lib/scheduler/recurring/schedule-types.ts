import { type Backoff } from '../../jobs/backoff.js';
import { type Duration } from '../../jobs/duration.js';
import { type JobHandle } from '../../jobs/enqueue-options.js';
import { type JobDefinition } from '../../jobs/job-definition.js';
import { type Overlap } from '../../jobs/recurrence.js';
import { type ScheduleOptions } from '../../recurring/schedule-options.js';
import { type RuleSource } from '../../recurring/time/recurrence-rule.js';

/** When a schedule is due: an expression, or an interval, not both. */
export type ScheduleTiming =
  | {
      /** Five or six fields of cron, an alias (`@daily`), or `{ every: '15s' }`. */
      expression: RuleSource;
      every?: undefined;
    }
  | {
      expression?: undefined;
      /** Short for `expression: { every }`: 1 second to 10 years. */
      every: Duration;
    };

/** What every occurrence gives its job: it may be left out when the definition takes none. */
export type SchedulePayload<In> = undefined extends In ? { payload?: In } : { payload: In };

/** What `RecurringScheduler.create` takes. */
export type NewRecurringSchedule<In = unknown, Out = In, Result = unknown> = ScheduleTiming &
  ScheduleOptions & {
    /** Unique in the database, 1 to 200 characters. */
    id: string;
    /** What `defineJob` returned: each occurrence is a job of it. */
    job: JobDefinition<In, Out, Result>;
    /** At most one schedule has it. 1 to 200 characters. @defaultValue none */
    businessKey?: string | undefined;
    /**
     * When there is a schedule of that id: refuse (`RecurringScheduleExistsError`), leave it as it is, or give it what is said here. A
     * replaced one goes on in its rhythm unless its times are others: calling it at each start makes no extra run.
     *
     * @defaultValue `'reject'`
     */
    ifExists?: 'reject' | 'keep' | 'replace' | undefined;
  } & SchedulePayload<NoInfer<In>>;

/** What may be changed without naming the job. What is left out stays; `null` takes a value away. */
export type ScheduleChanges = Omit<ScheduleOptions, 'backoff' | 'timeout'> & {
  expression?: RuleSource | undefined;
  every?: Duration | undefined;
  backoff?: Backoff | null | undefined;
  timeout?: Duration | null | undefined;
  businessKey?: string | null | undefined;
};

/**
 * What `RecurringScheduler.update` takes. With `job` the payload has its type; a `job` of another name brings its own lane,
 * priority and retries with it, unless they are said too.
 */
export type RecurringSchedulePatch<In = unknown, Out = In, Result = unknown> =
  | (ScheduleChanges & { job: JobDefinition<In, Out, Result> } & SchedulePayload<NoInfer<In>>)
  | (ScheduleChanges & {
      job?: undefined;
      /** Checked by the definition, if this process has its handler. */
      payload?: unknown;
    });

/** What `RecurringScheduler.trigger` takes. */
export interface TriggerOptions {
  /** For this run, instead of the schedule's. Checked by the definition, if this process has its handler. */
  payload?: unknown;
  /** When a job of the schedule is live. @defaultValue the schedule's own */
  overlap?: Overlap | undefined;
}

/** What came of a trigger. */
export interface TriggeredOccurrence {
  /** `skipped`, `waiting`: a job of the schedule is live. */
  readonly outcome: 'enqueued' | 'skipped' | 'waiting';
  readonly scheduledFor: Date;
  /** `undefined` unless enqueued. */
  readonly job: JobHandle | undefined;
}

/** Which schedules `RecurringScheduler.listAll` gives. */
export interface ListSchedulesFilter {
  tag?: string | undefined;
  /** `annotation`: a `@Recurring`. `api`: made by `create`. @defaultValue both */
  origin?: 'annotation' | 'api' | undefined;
  /** Those too whose annotation is gone. @defaultValue `false` */
  removed?: boolean | undefined;
}

/** What `RecurringScheduler.list` takes. */
export interface ListSchedulesOptions extends ListSchedulesFilter {
  /** The id behind which the page begins: `after` of the page before it. */
  after?: string | undefined;
  /** 1 to 1000. @defaultValue `50` */
  limit?: number | undefined;
}

export interface PreviewScheduleOptions {
  /** What `H` is drawn from: the id of the schedule that is meant. @defaultValue `'preview'` */
  id?: string | undefined;
  /** @defaultValue the module option `recurring.timeZone`, `'UTC'` */
  timeZone?: string | undefined;
  /** Occurrences after it; intervals count from it. @defaultValue now, by the database's clock */
  from?: Date | undefined;
  /** 1 to 1000. @defaultValue `10` */
  count?: number | undefined;
}

export interface OccurrencesOptions {
  /** Only those planned at or after. */
  since?: Date | undefined;
  /** Only those planned before: `scheduledFor` of the last one gets the next page. */
  before?: Date | undefined;
  /** 1 to 1000. @defaultValue `50` */
  limit?: number | undefined;
}
