import {
  type DeletedSchedule,
  type DueAnswer,
  type DueRequest,
  type FiredJob,
  type Firing,
  type FiringOutcome,
  type ListSchedules,
  type OccurrenceOutcome,
  type OccurrenceRow,
  type OccurrencesRequest,
  type ScheduleMark,
  type ScheduleRow,
  ScheduleStore,
  type ScheduleWrite,
  type TriggerRequest,
  type WriteOutcome,
} from '../schedule-store.js';
import { type PostgresJobStore } from './postgres-job-store.js';
import { type PostgresSession } from './postgres-session.js';
import { retriedRollback } from './retried-rollback.js';
import { ScheduleFiring } from './schedules/firing.js';
import { Promotion } from './schedules/promotion.js';
import { ScheduleRemoval } from './schedules/removal.js';
import { triggerOccurrence } from './schedules/triggering.js';
import { writeSchedules } from './schedules/writing.js';
import { selectNow } from './statements/now.js';
import { decodeDue, due, dueParameters } from './statements/schedules/due.js';
import { markParameters, markSchedule } from './statements/schedules/mark.js';
import {
  decodeOccurrence,
  occurrencesParameters,
  selectOccurrences,
} from './statements/schedules/select-occurrences.js';
import {
  decodeSchedule,
  listParameters,
  listSchedules,
  schedulesByIds,
} from './statements/schedules/select-schedules.js';

/**
 * Recurring schedules as rows, on the job store's connections and by its clock. What a process without an engine asks for, too, goes by
 * the application's side; the rest by the service connection. Opens and closes nothing itself.
 */
export class PostgresScheduleStore extends ScheduleStore {
  readonly #session: PostgresSession;
  readonly #firing: ScheduleFiring;
  readonly #promotion: Promotion;
  readonly #removal: ScheduleRemoval;

  constructor(store: PostgresJobStore) {
    super();
    this.#session = store.session;
    this.#firing = new ScheduleFiring(store.session);
    this.#promotion = new Promotion(store.session);
    this.#removal = new ScheduleRemoval(store.session);
  }

  override async now(): Promise<Date> {
    const [row] = await this.#session.app(selectNow, [this.#session.offsetMs]);
    return new Date(Math.floor(Number(row?.['ms'])));
  }

  override async byIds(
    ids: readonly string[],
  ): Promise<{ readonly now: Date; readonly schedules: readonly ScheduleRow[] }> {
    const rows = await this.#session.app(schedulesByIds, [this.#session.offsetMs, ids]);
    const now = rows.find((row) => row['id'] === null);
    return {
      now: new Date(Number(now?.['row'])),
      schedules: rows.filter((row) => row !== now).map(decodeSchedule),
    };
  }

  override async list(request: ListSchedules): Promise<readonly ScheduleRow[]> {
    return (await this.#session.app(listSchedules, listParameters(request))).map(decodeSchedule);
  }

  override write(writes: readonly ScheduleWrite[]): Promise<readonly WriteOutcome[]> {
    return writeSchedules(this.#session, writes);
  }

  override async mark(id: string, revision: string, mark: ScheduleMark): Promise<boolean> {
    const parameters = markParameters(id, revision, mark, this.#session.offsetMs);
    // Only nodes that fire find one broken: an application that has no connection left must not hold up what is due.
    const send = (): Promise<readonly unknown[]> =>
      mark.kind === 'broken'
        ? this.#session.service(markSchedule, parameters)
        : this.#session.app(markSchedule, parameters);
    return (await retriedRollback(send)).length > 0;
  }

  override delete(ids: readonly string[]): Promise<readonly DeletedSchedule[]> {
    return this.#removal.delete(ids);
  }

  override async due(request: DueRequest): Promise<DueAnswer> {
    const parameters = dueParameters(request, this.#session.offsetMs);
    return decodeDue(await retriedRollback(() => this.#session.service(due, parameters)));
  }

  override fire(firings: readonly Firing[]): Promise<readonly FiringOutcome[]> {
    return this.#firing.fire(firings);
  }

  override promote(limit: number): Promise<readonly FiredJob[]> {
    return this.#promotion.promote(limit);
  }

  override trigger(request: TriggerRequest): Promise<OccurrenceOutcome | undefined> {
    return triggerOccurrence(this.#session, request);
  }

  override async occurrences(request: OccurrencesRequest): Promise<readonly OccurrenceRow[]> {
    return (await this.#session.read(selectOccurrences, occurrencesParameters(request))).map(
      decodeOccurrence,
    );
  }

  override sweep(windowMs: number): Promise<readonly string[]> {
    return this.#removal.sweep(windowMs);
  }

  override forget(ageMs: number, signal?: AbortSignal): Promise<number> {
    return this.#removal.forget(ageMs, signal);
  }
}
