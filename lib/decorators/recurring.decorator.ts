import { JobDecoratorMisplacedError } from '../errors/discovery-errors.js';
import { type TransactionalJobContext } from '../jobs/job-context.js';
import { type RecurringScope } from '../jobs/recurrence.js';
import { type RecurringContext } from '../jobs/recurring-context.js';
import { type ScheduleOptions } from '../recurring/schedule-options.js';
import { type RuleSource } from '../recurring/time/recurrence-rule.js';
import { decoratedMethod } from './marked-place.js';
import { type PayloadFor } from './payload-for.js';
import { RECURRING_MARK, type RecurringMark } from './recurring-mark.js';
import { readRecurring } from './recurring-options.js';

/** What `@Recurring` takes beside the expression. */
export interface RecurringOptions extends ScheduleOptions {
  /**
   * What the schedule is known by, for good: unique in the database, 1 to 200 characters. Give one. The default changes when
   * somebody renames the class or the method, or minifies the program, and then it is another schedule.
   *
   * @defaultValue `Class.method`
   */
  id?: string | undefined;
  /**
   * `cluster`: one run of each occurrence for all nodes, as a job. `node`: each node calls the method for itself, in memory, without
   * retries and without a trace in the database: for caches.
   *
   * @defaultValue `'cluster'`
   */
  scope?: RecurringScope | undefined;
}

/** {@link RecurringOptions} of a method that takes a payload. */
export interface RecurringPayloadOptions<P> extends RecurringOptions {
  /**
   * The first parameter of the method. JSON; beside a `@Job` it is what `enqueue` would take for that definition, and checked by its
   * schema at boot: see {@link payloadFor} where that makes something else of it. For a `@Job` without a payload write
   * `payload: undefined`.
   */
  payload: P;
}

/** A method that a schedule may call. It may do without the parameter. */
export type RecurringHandler = (context: RecurringContext<undefined>) => unknown;

/** A method that a schedule with a payload may call. Fewer parameters are fine. (The context is only transactional if a `@Job` beside says so.) */
export type RecurringPayloadHandler<P> = (
  payload: P,
  context: RecurringContext<P> & TransactionalJobContext<P>,
) => unknown;

/** What `@Recurring` returns: it only fits on a method that takes what the schedule gives. */
export type RecurringDecorator<Handler extends (...parameters: never) => unknown> = <Method extends Handler>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** What the method gets. A payload is written as a literal, which the compiler takes for a constant: the method need not. */
export type GivenPayload<P> = P extends PayloadFor<infer Out> ? Out : Writable<P>;

type Writable<T> = T extends (...parameters: never) => unknown
  ? T
  : T extends object
    ? { -readonly [K in keyof T]: Writable<T[K]> }
    : T;

/**
 * Calls a provider's method again and again: once in the whole cluster for each occurrence, whatever the number of nodes, with
 * the next due time kept in the database. An occurrence is a job of its own (`<id>#recurring`), so everything that is known of
 * jobs is true of it: it is at least once, found by `scheduler.find`, and may be retried if you say so.
 *
 * A method may have several, and beside them one `@Job`: then the jobs are that definition's, with the `payload`. Discovery has
 * the rules of {@link Job}. Wrong options, expressions and time zones fail when the class is loaded, by class and method; an id
 * that two methods have fails at boot.
 *
 * @param expression - five or six fields of cron, an alias (`@daily`), a `CronExpression` of @nestjs/schedule, or an interval:
 *   `{ every: '15s' }`.
 * @throws InvalidRecurringOptionError, InvalidRecurrenceError, InvalidTimeZoneError, JobDecoratorMisplacedError
 *
 * @example
 * ```ts
 * @Injectable()
 * export class ReportJobs {
 *   @Recurring('0 6 * * *', { id: 'daily-digest', timeZone: 'Europe/Lisbon' })
 *   async digest(ctx: RecurringContext) {
 *     await this.reports.build({ until: ctx.scheduledFor, since: ctx.previous });
 *   }
 * }
 * ```
 */
export function Recurring<const P>(
  expression: RuleSource,
  options: RecurringPayloadOptions<P>,
): RecurringDecorator<RecurringPayloadHandler<GivenPayload<P>>>;
export function Recurring(
  expression: RuleSource,
  options?: RecurringOptions & { payload?: never },
): RecurringDecorator<RecurringHandler>;
export function Recurring(expression: RuleSource, options?: RecurringOptions): RecurringDecorator<never> {
  return (target, key, descriptor) => {
    const { owner, method } = decoratedMethod('@Recurring', { target, key, descriptor });
    const declaration = readRecurring(owner, expression, options);
    const earlier = Reflect.getOwnMetadata(RECURRING_MARK, method) as RecurringMark | undefined;
    if (declaration.id === undefined && earlier?.declarations.some(({ id }) => id === undefined)) {
      throw new JobDecoratorMisplacedError(
        owner,
        '@Recurring',
        'stands beside another one without an id; give each an id, since the default is the same for both',
      );
    }
    add({ owner, declarations: [declaration] }, method);
    add({ owner, declarations: [declaration] }, target, key);
  };
}

/** A decorator in between may have replaced the method: discovery compares what the two places have. */
function add(mark: RecurringMark, place: object, key?: string | symbol): void {
  const earlier = (
    key === undefined
      ? Reflect.getOwnMetadata(RECURRING_MARK, place)
      : Reflect.getOwnMetadata(RECURRING_MARK, place, key)
  ) as RecurringMark | undefined;
  const all = { ...mark, declarations: [...(earlier?.declarations ?? []), ...mark.declarations] };
  if (key === undefined) Reflect.defineMetadata(RECURRING_MARK, all, place);
  else Reflect.defineMetadata(RECURRING_MARK, all, place, key);
}
