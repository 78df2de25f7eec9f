import { JOB_LIMITS } from '../../jobs/limits.js';
import { SCHEDULE_LIMITS } from '../../recurring/schedule-options.js';
import { preview } from '../../recurring/time/preview.js';
import { parseRule, type RuleSource } from '../../recurring/time/recurrence-rule.js';
import { handleTo } from '../job-handle.js';
import { type Results } from '../results/result-waiter.js';
import {
  labelOf,
  readList,
  readNewSchedule,
  readOccurrences,
  readPatch,
  readPreview,
  readText,
  readTrigger,
} from './schedule-arguments.js';
import { ScheduleControl, type ScheduleControlParts } from './schedule-control.js';
import {
  type RecurringOccurrence,
  type RecurringScheduleInfo,
  type RecurringSchedulePage,
  scheduleInfo,
} from './schedule-info.js';
import {
  type ListSchedulesFilter,
  type ListSchedulesOptions,
  type NewRecurringSchedule,
  type OccurrencesOptions,
  type PreviewScheduleOptions,
  type RecurringSchedulePatch,
  type TriggeredOccurrence,
  type TriggerOptions,
} from './schedule-types.js';

export interface RecurringSchedulerParts extends ScheduleControlParts {
  readonly results: Results;
}

/** Schedules of one page of an iteration that nobody asked the size of. */
const ITERATED_AT_A_TIME = 100;

/**
 * Inject it to make recurring schedules in code, to change and end these, to pause, resume and trigger any, and to ask when they
 * are due and what became of their occurrences.
 *
 * It works from the moment that the module is initialised, in processes with `worker: false` too. Schedules that it makes live in the
 * database until they are deleted: restarts and deploys leave them alone. Those of `@Recurring` are changed where they stand.
 *
 * @example
 * constructor(private readonly recurring: RecurringScheduler) {}
 *
 * await this.recurring.create({
 *   id: `digest:${tenant.id}`,
 *   expression: '0 6 * * 1-5',
 *   timeZone: tenant.timeZone,
 *   job: SendDigest,
 *   payload: { tenantId: tenant.id },
 *   ifExists: 'replace',
 * });
 */
export class RecurringScheduler {
  readonly #parts: RecurringSchedulerParts;
  readonly #control: ScheduleControl;

  constructor(parts: RecurringSchedulerParts) {
    this.#parts = parts;
    this.#control = new ScheduleControl(parts);
  }

  /**
   * Makes a schedule. Each of its occurrences is a job of the definition, with the payload.
   *
   * @throws InvalidRecurringOptionError, InvalidRecurrenceError, InvalidTimeZoneError before anything is sent; and what `enqueue` throws
   *   for the payload.
   * @throws RecurringScheduleExistsError when there is one of that id (see `ifExists`), or a `@Recurring` has it.
   * @throws ScheduleKeyHeldError when another schedule has the business key.
   *
   * @example
   * await recurring.create({ id: 'heartbeat', every: '15s', job: Ping });
   */
  async create<In, Out, Result>(
    schedule: NewRecurringSchedule<In, Out, Result>,
  ): Promise<RecurringScheduleInfo> {
    return scheduleInfo(await this.#control.create(readNewSchedule(schedule)));
  }

  /**
   * Changes what is said, and leaves the rest. Unless its times change it goes on in its rhythm; otherwise it is due next at the
   * first of the new times from now on.
   *
   * @throws RecurringScheduleNotFoundError
   * @throws AnnotatedScheduleError for that of a `@Recurring`.
   * @throws as {@link RecurringScheduler.create}.
   *
   * @example
   * await recurring.update('digest:7', { expression: '0 7 * * 1-5' });
   * await recurring.update('digest:7', { job: SendDigest, payload: { tenantId: 8 } });
   */
  async update<In, Out, Result>(
    id: string,
    patch: RecurringSchedulePatch<In, Out, Result>,
  ): Promise<RecurringScheduleInfo> {
    const read = readPatch(id, patch);
    return scheduleInfo(await this.#control.update(readId('update', id), read));
  }

  /**
   * Stops a schedule on all nodes, that of a `@Recurring` too, until it is resumed: deploys do not. What passes meanwhile is no
   * misfire. Jobs that it has made go on.
   *
   * @returns false when it was paused.
   * @throws RecurringScheduleNotFoundError
   *
   * @example
   * await recurring.pause('daily-digest');
   */
  async pause(id: string): Promise<boolean> {
    return await this.#control.pause(readId('pause', id));
  }

  /**
   * Lets a paused schedule, or one with a `fault`, run again, from its next occurrence on.
   *
   * @returns false when there was nothing to resume.
   * @throws RecurringScheduleNotFoundError
   *
   * @example
   * await recurring.resume('daily-digest');
   */
  async resume(id: string): Promise<boolean> {
    return await this.#control.resume(readId('resume', id));
  }

  /**
   * An occurrence now, beside the plan: of any schedule, paused ones too.
   *
   * @throws RecurringScheduleNotFoundError
   * @throws NodeScheduleError with scope `node`.
   * @throws PriorityDisabledError when every live node of its lane has switched its priority off.
   * @throws InvalidRecurringOptionError, and what `enqueue` throws for the payload.
   *
   * @example
   * const { job } = await recurring.trigger('daily-digest', { overlap: 'allow' });
   * await job?.result({ timeout: '1m' });
   */
  async trigger(id: string, options?: TriggerOptions): Promise<TriggeredOccurrence> {
    const read = readTrigger(id, options);
    const occurrence = await this.#control.trigger(readId('trigger', id), read);
    if (occurrence.outcome !== 'enqueued') {
      return { outcome: occurrence.outcome, scheduledFor: occurrence.at, job: undefined };
    }
    const { at, jobId, name, lane } = occurrence.job;
    return {
      outcome: 'enqueued',
      scheduledFor: at,
      job: handleTo(this.#parts.results, jobId, { name, lane }, true),
    };
  }

  /**
   * Ends a schedule that was made in code, with the record of its occurrences. Its jobs that are not running are canceled.
   *
   * @throws RecurringScheduleNotFoundError
   * @throws AnnotatedScheduleError for that of a `@Recurring`.
   *
   * @example
   * await recurring.delete('digest:7');
   */
  async delete(id: string): Promise<{ readonly canceledJobs: number }> {
    return { canceledJobs: await this.#control.delete(readId('delete', id)) };
  }

  /**
   * Ends the schedule that has a business key, as {@link RecurringScheduler.delete}.
   *
   * @returns false when none has it.
   * @throws InvalidRecurringOptionError
   *
   * @example
   * await recurring.cancelRecurringJobByBusinessKey(`digest:${tenant.id}`);
   */
  async cancelRecurringJobByBusinessKey(businessKey: string): Promise<boolean> {
    const call = labelOf('cancelRecurringJobByBusinessKey', businessKey);
    const key = readText(call, 'businessKey', businessKey, JOB_LIMITS.keyLength);
    return (await this.#control.deleteAll({ businessKey: key })) > 0;
  }

  /**
   * Ends the schedules that have a tag, as {@link RecurringScheduler.delete}. Those of `@Recurring` stay.
   *
   * @returns how many there were.
   * @throws InvalidRecurringOptionError
   *
   * @example
   * await recurring.cancelRecurringJobsByTag(`tenant:${tenant.id}`);
   */
  async cancelRecurringJobsByTag(tag: string): Promise<number> {
    const call = labelOf('cancelRecurringJobsByTag', tag);
    return await this.#control.deleteAll({ tag: readText(call, 'tag', tag, JOB_LIMITS.tagLength) });
  }

  /**
   * A schedule as it stands; `undefined` when there is none of that id.
   *
   * @throws InvalidRecurringOptionError
   *
   * @example
   * const { nextOccurrence, paused, fault } = (await recurring.get('daily-digest'))!;
   */
  async get(id: string): Promise<RecurringScheduleInfo | undefined> {
    const { schedules } = await this.#parts.store.byIds([readId('get', id)]);
    return schedules[0] && scheduleInfo(schedules[0]);
  }

  /**
   * Schedules by id, a page at a time, each with its next and its last occurrence, and what keeps it from running: paused, a fault, no
   * handler anywhere, live jobs.
   *
   * @throws InvalidRecurringOptionError
   *
   * @example
   * const { schedules, after } = await recurring.list({ tag: 'tenant:7', limit: 20 });
   * const next = after && (await recurring.list({ tag: 'tenant:7', limit: 20, after }));
   */
  async list(options?: ListSchedulesOptions): Promise<RecurringSchedulePage> {
    const { limit, ...filter } = readList('list', options, ['after', 'limit']);
    const rows = await this.#parts.store.list({ ...filter, limit: limit + 1 });
    const schedules = rows.slice(0, limit).map(scheduleInfo);
    return { schedules, after: rows.length > limit ? schedules.at(-1)?.id : undefined };
  }

  /**
   * The same, one schedule after another: fetches page by page.
   *
   * @throws InvalidRecurringOptionError in the call itself.
   *
   * @example
   * for await (const { id, handlerMissing } of recurring.listAll()) if (handlerMissing) console.log(id);
   */
  listAll(filter?: ListSchedulesFilter): AsyncIterableIterator<RecurringScheduleInfo> {
    const { tag, origin, removed } = readList('listAll', filter, []);
    return this.#each({ tag, origin, removed });
  }

  /**
   * When an expression would be due. With `from` it asks no database.
   *
   * @returns the next `count` occurrences, oldest first: fewer when there are no more.
   * @throws InvalidRecurringOptionError, InvalidRecurrenceError, InvalidTimeZoneError
   *
   * @example
   * await recurring.preview('30 2 * * *', { timeZone: 'America/New_York', count: 3 });
   */
  async preview(expression: RuleSource, options?: PreviewScheduleOptions): Promise<Date[]> {
    const { id, timeZone, from, count } = readPreview(options);
    const zone = timeZone ?? this.#parts.timeZone;
    const rule = parseRule(expression, zone, { hashSeed: id, owner: 'preview' });
    const start = from ?? (await this.#parts.store.now());
    return preview(rule, { from: start, count, anchor: start });
  }

  /**
   * What has become of a schedule's occurrences, newest first: why it did not run at 02:30. A time that is not there was none by
   * the rule, or the schedule was not there, disabled or paused.
   *
   * @throws RecurringScheduleNotFoundError
   * @throws InvalidRecurringOptionError
   *
   * @example
   * for (const { scheduledFor, outcome, jobStatus } of await recurring.occurrences('daily-digest', { since: yesterday }))
   *   console.log(scheduledFor, outcome, jobStatus);
   */
  async occurrences(id: string, options?: OccurrencesOptions): Promise<readonly RecurringOccurrence[]> {
    const { store } = this.#parts;
    const request = readOccurrences(id, options);
    const scheduleId = readId('occurrences', id);
    const rows = await store.occurrences({ scheduleId, ...request });
    if (rows.length > 0 || (await store.byIds([scheduleId])).schedules.length > 0) return rows;
    throw await this.#control.notFound('occurrences', scheduleId);
  }

  async *#each(filter: ListSchedulesFilter): AsyncGenerator<RecurringScheduleInfo, undefined> {
    for (let after: string | undefined; ;) {
      const page = await this.list({ ...filter, after, limit: ITERATED_AT_A_TIME });
      yield* page.schedules;
      if (page.after === undefined) return undefined;
      after = page.after;
    }
  }
}

function readId(call: string, id: unknown): string {
  return readText(call, 'id', id, SCHEDULE_LIMITS.idLength);
}
