import { type Duration } from './duration.js';
import { type JobDefinition } from './job-definition.js';
import { type JobStatus } from './job-status.js';
import { type JobPriority } from './priority.js';

/** One value, or a list of alternatives. A list has at least one, at most 10 000. */
export type OneOrMore<T> = T | readonly T[];

/** A span of time, half-open: `from` belongs to it, `until` does not. Either end may be left out. */
export interface TimeWindow {
  readonly from?: Date | undefined;
  readonly until?: Date | undefined;
}

/**
 * Which jobs: all conditions must hold. Live jobs, history and the dead letter are looked through alike.
 *
 * For `find` and `count` what is `undefined` is no condition. Actions (`cancel`, `pause`, …) refuse a key that is there and
 * `undefined`: they would act on more jobs than was meant.
 *
 * @example
 * const filter: JobFilter = { name: SendInvoice, status: ['pending', 'paused'], created: { until: yesterday } };
 */
export interface JobFilter {
  readonly id?: OneOrMore<string> | undefined;
  /** `pending`, `running`, `paused`, `succeeded`, `failed` (in the dead letter), `canceled`. */
  readonly status?: OneOrMore<JobStatus> | undefined;
  /** Definitions, or their names. Failure handlers' jobs are named `<name>#failed`. */
  readonly name?: OneOrMore<string | JobDefinition> | undefined;
  readonly lane?: OneOrMore<string> | undefined;
  readonly priority?: OneOrMore<JobPriority> | undefined;
  /** Of a list of tags a job must have all. */
  readonly tag?: OneOrMore<string> | undefined;
  readonly businessKey?: OneOrMore<string> | undefined;
  /** The job whose handler enqueued it by `ctx.enqueue`. */
  readonly parentId?: string | undefined;
  /** When it was enqueued. */
  readonly created?: TimeWindow | undefined;
  /** When it is, or was, due. */
  readonly scheduled?: TimeWindow | undefined;
  /** When it ended. A live job has not. */
  readonly ended?: TimeWindow | undefined;
}

/** Which page of `find`. */
export interface FindOptions {
  /** Jobs on one page, 1 to 1000; fewer come when they are large together. @defaultValue `50` */
  readonly limit?: number | undefined;
  /** The `cursor` of the page before; leave it out for the first. */
  readonly cursor?: string | undefined;
}

/** Options of an action on all jobs of a filter. */
export interface BulkOptions {
  readonly preview?: false | undefined;
  /** An abort ends the action between two steps of some hundred jobs; the outcome says what was done by then. */
  readonly signal?: AbortSignal | undefined;
}

/** Ask how many jobs an action would act on, and change nothing. */
export interface PreviewOptions {
  readonly preview: true;
  readonly signal?: AbortSignal | undefined;
}

/** The options of an action where only the running program knows whether it is a preview. */
export interface MaybePreviewOptions {
  readonly preview?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a preview found. */
export interface BulkPreview {
  /** Jobs that the action would act on now. */
  readonly matched: number;
}

/** What an action on all jobs of a filter did. */
export interface BulkOutcome {
  /** Jobs that the filter means, in a status that the action acts on. */
  readonly matched: number;
  /** Those that it changed. The others moved on before their turn, or (`redrive`) a live job holds their business key. */
  readonly changed: number;
  /** The `signal` ended it before all jobs had their turn. */
  readonly aborted: boolean;
}

/** When a job shall be due: after a delay from now, or at a time, not both. */
export type RescheduleWhen =
  | {
      /** From now on, by the database's clock; `0` is at once. */ readonly delay: Duration;
      readonly runAt?: undefined;
    }
  | { readonly delay?: undefined; /** A time in the past is at once. */ readonly runAt: Date };
