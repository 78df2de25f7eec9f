import { uuidv7 } from 'uuidv7';
import { type ClusterMessages } from '../../cluster/cluster-messages.js';
import { nearest } from '../../errors/nearest.js';
import { RecurringScheduleNotFoundError } from '../../errors/recurring-scheduler-errors.js';
import { type HandlerRegistry } from '../../jobs/handler-registry.js';
import { type Recurrence, recurrenceMetadata } from '../../jobs/recurrence.js';
import { type EngineEvents } from '../../observability/engine-events.js';
import { jitterOf } from '../../recurring/jitter.js';
import { OccurrenceReport } from '../../recurring/occurrence-report.js';
import { RuleCache } from '../../recurring/rule-cache.js';
import { type NewJob } from '../../store/job-store.js';
import {
  type Firing,
  type PlannedRun,
  type ScheduleRow,
  type ScheduleStore,
} from '../../store/schedule-store.js';
import { type JobSource } from '../job-source.js';

/** A schedule that is due at some time. */
type Timed = ScheduleRow & { readonly nextAt: Date };

export interface TestSchedulesParts {
  readonly source: JobSource;
  readonly handlers: HandlerRegistry;
  readonly messages: ClusterMessages;
  readonly events: EngineEvents;
}

/** Runs of one firing; what is due beyond them is of the next. */
const MOST_RUNS = 1_000;
/** Schedules of one look. */
const LIMIT = 500;
const IF_BUSY = { allow: 'run', queue: 'wait', skip: 'skip' } as const;

/**
 * The recurring schedules of an application under test: they fire when the tester moves the clock over them, each occurrence at its
 * time, so that none is ever missed. What other applications have left in a database that is shared stays as it is.
 */
export class TestSchedules {
  readonly #parts: TestSchedulesParts;
  readonly #rules = new RuleCache();
  readonly #report: OccurrenceReport;
  #hasFired = false;
  #registering: Promise<void> | undefined;

  constructor(parts: TestSchedulesParts) {
    this.#parts = parts;
    this.#report = new OccurrenceReport(parts);
    parts.events.on('schedule_fired', () => (this.#hasFired = true));
  }

  /** Annotated ones, as a node does when it starts. Once. */
  register(): Promise<void> {
    this.#registering ??= this.#parts.source.register();
    return this.#registering;
  }

  /** Fires what is due, and says how long it is until something else is; undefined: nothing will be. */
  async look(): Promise<{ readonly fired: boolean; readonly nextInMs?: number | undefined }> {
    const { schedules: store } = this.#parts.source;
    if (!store) return { fired: false };
    await this.register();
    for (let fired = false; ; fired = true) {
      const { now, schedules } = await this.#own(store);
      const due = schedules.filter(({ nextAt }) => nextAt <= now);
      if (due.length === 0) {
        const waits = schedules.map(({ nextAt }) => nextAt.getTime() - now.getTime());
        return { fired, nextInMs: waits.length > 0 ? Math.min(...waits) : undefined };
      }
      await this.#fire(
        store,
        due.map((schedule) => this.#plan(schedule, now)),
      );
    }
  }

  /** Some occurrence may wait: whoever asks is spared a question otherwise. */
  get #waits(): boolean {
    return this.#hasFired || this.#parts.handlers.schedules().length > 0;
  }

  /** Occurrences that waited for a job that has ended by now become jobs. */
  async promote(): Promise<void> {
    const jobs = this.#waits ? await this.#parts.source.schedules?.promote(LIMIT) : [];
    if (jobs) this.#report.fired(jobs);
  }

  /** An occurrence now, whatever the plan says. Returns the id of its job. */
  async fire(id: string, said: Partial<Omit<Recurrence, 'scheduleId'>>): Promise<string> {
    const { source } = this.#parts;
    const { schedules: store } = source;
    await this.register();
    const row = (await store?.byIds([id]))?.schedules[0];
    if (!store || !row || row.removedAt) throw await this.#notFound(id);
    const isPlain = Object.values(said).every((value) => value === undefined);
    if (row.scope === 'cluster' && isPlain) {
      const fired = await store.trigger({ id, jobId: uuidv7(), ifBusy: 'run' });
      if (fired?.outcome === 'enqueued') {
        this.#report.fired([fired.job]);
        return fired.job.jobId;
      }
    }
    const job = occurrenceJob(row, { previous: row.lastAt, ...said }, await source.now());
    await source.enqueue(job);
    return job.id;
  }

  /**
   * Those that may become due, of the annotations of this application and of code. Not by `ScheduleStore.due`: its lease would be held
   * by this journey's clock, beyond the time of whoever comes after it.
   */
  async #own(store: ScheduleStore): Promise<{ readonly now: Date; readonly schedules: readonly Timed[] }> {
    const ids = this.#parts.handlers.schedules().map(({ spec }) => spec.id);
    const { now, schedules } = await store.byIds(ids);
    const own = schedules.filter(({ origin }) => origin === 'annotation');
    for (let after: string | undefined; ;) {
      const page = await store.list({ after, limit: LIMIT, origin: 'api' });
      own.push(...page);
      after = page.at(-1)?.id;
      if (page.length < LIMIT) break;
    }
    return { now, schedules: own.filter((row): row is Timed => row.nextAt !== undefined) };
  }

  #plan(schedule: Timed, now: Date): Firing {
    const { id, revision, nextAt, anchor, overlap, jitterMs } = schedule;
    const rule = this.#rules.of(schedule);
    const runs: PlannedRun[] = [];
    let at: Date | undefined = nextAt;
    while (at && at <= now && runs.length < MOST_RUNS) {
      const delayMs = jitterOf(id, at, jitterMs);
      runs.push({ at, jobId: uuidv7(), delayMs, missed: 0, ifBusy: IF_BUSY[overlap] });
      at = rule.next(at, anchor);
    }
    return { id, revision, nextAt, advanceTo: at, runs, missed: [] };
  }

  async #fire(store: ScheduleStore, firings: readonly Firing[]): Promise<void> {
    const outcomes = await store.fire(firings);
    outcomes.forEach((outcome, index) => {
      const firing = firings[index];
      if (outcome.outcome === 'failed') throw outcome.error;
      if (firing && outcome.outcome === 'fired') this.#report.decided(firing, outcome);
    });
  }

  async #notFound(id: string): Promise<RecurringScheduleNotFoundError> {
    const { source, handlers } = this.#parts;
    const rows = (await source.schedules?.list({ limit: MOST_RUNS })) ?? [];
    const ids = [...rows.map((row) => row.id), ...handlers.schedules().map(({ spec }) => spec.id)];
    return new RecurringScheduleNotFoundError('fire', id, nearest(id, ids));
  }
}

/** A job that stands for an occurrence beside the plan, and is not recorded as one. */
function occurrenceJob(
  { id: scheduleId, template }: ScheduleRow,
  { scheduledFor, previous, missed = 0 }: Partial<Omit<Recurrence, 'scheduleId'>>,
  now: Date,
): NewJob {
  const { name, version, lane, priority, payload, maxRetries, backoff, timeoutMs, tags } = template;
  return {
    id: uuidv7(),
    name,
    version,
    lane,
    priority,
    payload,
    delayMs: 0,
    tags,
    metadata: recurrenceMetadata({ scheduleId, scheduledFor: scheduledFor ?? now, previous, missed }),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}
