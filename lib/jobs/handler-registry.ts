import { type JobContext } from './job-context.js';
import { type JobDefinition } from './job-definition.js';
import { type AnnotatedSchedule } from './schedule-spec.js';
import { type TransactionSettings } from './transactional.js';

/** A decorated method that discovery found, ready to be called. */
export interface RegisteredHandler {
  readonly definition: JobDefinition;
  /** `InvoiceJobs.send`, for logs and errors. */
  readonly owner: string;
  /** A failure handler: whose failures it is told of. */
  readonly failureOf?: JobDefinition;
  /** It runs in a transaction of the app's, and gets a `TransactionalJobContext`. */
  readonly transactional?: TransactionSettings;
  /** Of a schedule of scope `node`: this node calls it, and no job is ever for it. */
  readonly ofNode?: boolean;
  /** Calls the method on its instance (an instance of its own for request-scoped providers). */
  invoke(payload: unknown, context: JobContext): Promise<unknown>;
}

/** What the engine asks of discovery. Filled at init, read-only afterwards. */
export abstract class HandlerRegistry {
  abstract find(name: string): RegisteredHandler | undefined;
  /** Those that jobs may be for. */
  abstract all(): readonly RegisteredHandler[];
  /** What the methods are annotated with. */
  schedules(): readonly AnnotatedSchedule[] {
    return [];
  }
  /** The lanes that this process must serve: those of its handlers, and of the jobs that its schedules make. */
  lanes(): readonly string[] {
    const ofSchedules = this.schedules().filter(({ spec }) => spec.scope === 'cluster');
    return [
      ...this.all().map(({ definition }) => definition.lane),
      ...ofSchedules.map(({ spec }) => spec.template.lane),
    ];
  }
}
