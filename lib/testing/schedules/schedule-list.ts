import { type HandlerRegistry } from '../../jobs/handler-registry.js';
import { recurrenceMetadata } from '../../jobs/recurrence.js';
import { RuleCache } from '../../recurring/rule-cache.js';
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
  type PlannedRun,
  type ScheduleMark,
  type ScheduleRow,
  ScheduleStore,
  type ScheduleWrite,
  type TriggerRequest,
  type WriteOutcome,
} from '../../store/schedule-store.js';
import { TestingNeedsDatabaseError } from '../testing-errors.js';
import { type JobList } from '../list/job-list.js';
import { type DecidedOccurrence, ListedSchedule } from './listed-schedule.js';

/**
 * The recurring schedules of an application under test without a database: those that are annotated are there from the first
 * question on, as a node would have registered them. The contract of the port is kept as far as one process can see it; a lease and
 * the maintenance of a cluster there is not.
 */
export class ScheduleList extends ScheduleStore {
  readonly #schedules = new Map<string, ListedSchedule>();
  readonly #rules = new RuleCache();
  #seeded = false;

  constructor(
    private readonly jobs: JobList,
    private readonly handlers: HandlerRegistry,
  ) {
    super();
  }

  override now(): Promise<Date> {
    return Promise.resolve(this.jobs.now);
  }

  override byIds(ids: readonly string[]): Promise<{ now: Date; schedules: readonly ScheduleRow[] }> {
    const schedules = this.#all().filter(({ id }) => ids.includes(id));
    return Promise.resolve({ now: this.jobs.now, schedules: schedules.map((one) => this.#row(one)) });
  }

  override list({
    after = '',
    limit,
    tag,
    businessKey,
    origin,
  }: ListSchedules): Promise<readonly ScheduleRow[]> {
    const found = this.#all().filter(
      ({ spec }) =>
        spec.id > after &&
        (tag === undefined || spec.template.tags.includes(tag)) &&
        (businessKey === undefined || spec.businessKey === businessKey) &&
        (origin === undefined || spec.origin === origin),
    );
    return Promise.resolve(found.slice(0, limit).map((one) => this.#row(one)));
  }

  override write(writes: readonly ScheduleWrite[]): Promise<readonly WriteOutcome[]> {
    this.#seed();
    return Promise.resolve(writes.map((write) => this.#write(write)));
  }

  override mark(id: string, revision: string, mark: ScheduleMark): Promise<boolean> {
    const schedule = this.#at(id, revision);
    if (!schedule) return Promise.resolve(false);
    schedule.paused = mark.kind === 'paused' || (mark.kind === 'broken' && schedule.paused);
    schedule.fault =
      mark.kind === 'broken' ? mark.fault : mark.kind === 'paused' ? schedule.fault : undefined;
    schedule.nextAt = mark.kind === 'resumed' ? mark.nextAt : undefined;
    schedule.changed(this.jobs.now);
    return Promise.resolve(true);
  }

  override async delete(ids: readonly string[]): Promise<readonly DeletedSchedule[]> {
    this.#seed();
    const deleted: DeletedSchedule[] = [];
    for (const id of ids) {
      const schedule = this.#schedules.get(id);
      if (!schedule) continue;
      this.#schedules.delete(id);
      const waiting = this.#live(schedule).filter((jobId) => this.jobs.job(jobId)?.status !== 'running');
      for (const jobId of waiting) await this.jobs.cancel(jobId);
      deleted.push({ id, canceled: waiting });
    }
    return deleted;
  }

  override due({ limit }: DueRequest): Promise<DueAnswer> {
    const { now } = this.jobs;
    const timed = this.#all().flatMap((one) => (one.nextAt ? [{ one, at: one.nextAt.getTime() }] : []));
    const due = timed.filter(({ at }) => at <= now.getTime()).sort((one, other) => one.at - other.at);
    const later = timed.filter(({ at }) => at > now.getTime()).map(({ at }) => at - now.getTime());
    return Promise.resolve({
      now,
      heldForMs: undefined,
      due: due.slice(0, limit).map(({ one, at }) => one.due(new Date(at))),
      broken: [],
      more: due.length > limit,
      promotable: this.#all().some((one) => this.#isPromotable(one)),
      nextInMs: later.length > 0 ? Math.min(...later) : undefined,
    });
  }

  override fire(firings: readonly Firing[]): Promise<readonly FiringOutcome[]> {
    return Promise.resolve(firings.map((firing) => this.#fire(firing)));
  }

  override promote(limit: number): Promise<readonly FiredJob[]> {
    const promotable = this.#all().filter((one) => this.#isPromotable(one));
    return Promise.resolve(
      promotable.slice(0, limit).flatMap((one) => {
        const oldest = one.promote(this.jobs.now);
        return oldest ? [this.#spawn(one, oldest)] : [];
      }),
    );
  }

  override trigger({ id, jobId, ifBusy, payload }: TriggerRequest): Promise<OccurrenceOutcome | undefined> {
    this.#seed();
    const schedule = this.#schedules.get(id);
    if (!schedule) return Promise.resolve(undefined);
    const nowMs = this.jobs.now.getTime();
    let ms = nowMs;
    while (schedule.occurrences.has(ms)) ms += 1;
    // Due now, although the clock stands still.
    const delayMs = nowMs - ms;
    const busy = ifBusy ?? ({ allow: 'run', queue: 'wait', skip: 'skip' } as const)[schedule.spec.overlap];
    const decided = { scheduledFor: new Date(ms), jobId, missed: 0, delayMs, payload, triggered: true };
    const outcome = this.#decide(schedule, decided, busy);
    return Promise.resolve(
      outcome === 'enqueued'
        ? { outcome, job: this.#spawn(schedule, decided) }
        : { outcome, at: decided.scheduledFor },
    );
  }

  override occurrences({
    scheduleId,
    limit,
    before,
    since,
  }: OccurrencesRequest): Promise<readonly OccurrenceRow[]> {
    this.#seed();
    const all = [...(this.#schedules.get(scheduleId)?.occurrences.values() ?? [])];
    const found = all
      .filter(({ scheduledFor: at }) => (!before || at < before) && (!since || at >= since))
      .sort((one, other) => other.scheduledFor.getTime() - one.scheduledFor.getTime());
    return Promise.resolve(
      found.slice(0, limit).map((one) => {
        const job = one.jobId === undefined ? undefined : this.jobs.job(one.jobId);
        return { ...one, jobStatus: job?.status };
      }),
    );
  }

  override sweep(): Promise<never> {
    return Promise.reject(new TestingNeedsDatabaseError('ScheduleStore.sweep'));
  }

  override forget(): Promise<never> {
    return Promise.reject(new TestingNeedsDatabaseError('ScheduleStore.forget'));
  }

  #seed(): void {
    if (this.#seeded) return;
    this.#seeded = true;
    const { now } = this.jobs;
    for (const { spec } of this.handlers.schedules()) {
      const isDue = spec.enabled && spec.scope === 'cluster';
      const nextAt = isDue ? this.#rules.of(spec).next(now, now) : undefined;
      this.#schedules.set(spec.id, new ListedSchedule(spec, now, nextAt, now));
    }
  }

  /** By id. */
  #all(): ListedSchedule[] {
    this.#seed();
    return [...this.#schedules.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  #at(id: string, revision: string): ListedSchedule | undefined {
    this.#seed();
    const schedule = this.#schedules.get(id);
    return schedule && String(schedule.revision) === revision ? schedule : undefined;
  }

  #write({ spec, revision, anchor, nextAt }: ScheduleWrite): WriteOutcome {
    const { businessKey } = spec;
    const holder =
      businessKey === undefined
        ? undefined
        : this.#all().find((one) => one.spec.businessKey === businessKey && one.id !== spec.id);
    if (holder) return { heldBy: holder.id };
    const known = this.#schedules.get(spec.id);
    if ((known && String(known.revision)) !== revision) return 'conflict';
    const { now } = this.jobs;
    if (!known) {
      const first = nextAt === 'keep' ? undefined : nextAt;
      this.#schedules.set(spec.id, new ListedSchedule(spec, anchor, first, now));
      return 'written';
    }
    known.spec = spec;
    known.anchor = anchor;
    if (nextAt !== 'keep') known.nextAt = nextAt;
    known.fault = undefined;
    known.changed(now);
    return 'written';
  }

  #fire({ id, revision, nextAt, advanceTo, runs, missed }: Firing): FiringOutcome {
    const schedule = this.#at(id, revision);
    if (schedule?.nextAt?.getTime() !== nextAt.getTime()) return { id, outcome: 'superseded' };
    schedule.nextAt = advanceTo;
    const jobs: FiredJob[] = [];
    const skipped: Date[] = [];
    const waiting: Date[] = [];
    for (const { from, to, count } of missed) {
      const times = { scheduledFor: from, through: to, count, decidedAt: this.jobs.now };
      schedule.note({ ...times, outcome: 'missed', triggered: false, jobId: undefined });
      schedule.untold += count;
    }
    const free = schedule.waiting.length === 0 && this.#live(schedule).length === 0;
    for (const [index, run] of runs.entries()) {
      if (schedule.occurrences.has(run.at.getTime())) continue;
      const decided = decidedOf(run);
      const follows = free && index > 0 ? 'wait' : 'skip';
      const outcome = this.#decide(schedule, decided, run.ifBusy === 'follow' ? follows : run.ifBusy);
      if (outcome === 'enqueued') jobs.push(this.#spawn(schedule, decided));
      else (outcome === 'skipped' ? skipped : waiting).push(run.at);
    }
    return { id, outcome: 'fired', jobs, skipped, waiting };
  }

  #decide(
    schedule: ListedSchedule,
    decided: DecidedOccurrence,
    ifBusy: Exclude<PlannedRun['ifBusy'], 'follow'>,
  ): 'enqueued' | 'skipped' | 'waiting' {
    return schedule.decide(decided, ifBusy, this.jobs.now, () => this.#live(schedule).length > 0);
  }

  #spawn(schedule: ListedSchedule, decided: DecidedOccurrence): FiredJob {
    const { id: scheduleId, spec, lastAt: previous } = schedule;
    const { scheduledFor, jobId, missed, delayMs, payload } = decided;
    const { name, version, lane, priority, maxRetries, backoff, timeoutMs, tags } = spec.template;
    const runAt = new Date(scheduledFor.getTime() + delayMs);
    this.jobs.spawn({
      id: jobId,
      name,
      version,
      lane,
      priority,
      payload: payload ?? spec.template.payload,
      delayMs: 0,
      runAt,
      tags,
      metadata: recurrenceMetadata({ scheduleId, scheduledFor, previous, missed }),
      ...(maxRetries === undefined ? {} : { maxRetries }),
      ...(backoff === undefined ? {} : { backoff }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    schedule.jobIds.add(jobId);
    if (!previous || previous < scheduledFor) schedule.lastAt = scheduledFor;
    const dueInMs = Math.max(0, runAt.getTime() - this.jobs.now.getTime());
    return { scheduleId, at: scheduledFor, jobId, lane, priority, name, missed, dueInMs };
  }

  /** Ids of its jobs that have not ended. */
  #live({ jobIds }: ListedSchedule): string[] {
    return [...jobIds].filter((jobId) => this.jobs.job(jobId)?.isLive);
  }

  #isPromotable(schedule: ListedSchedule): boolean {
    return schedule.fault === undefined && schedule.waiting.length > 0 && this.#live(schedule).length === 0;
  }

  #row(schedule: ListedSchedule): ScheduleRow {
    const { spec, revision, anchor, nextAt, lastAt, paused, fault, createdAt, updatedAt } = schedule;
    const served = this.handlers.find(spec.template.name) !== undefined;
    return {
      ...spec,
      revision: String(revision),
      anchor,
      nextAt,
      lastAt,
      paused,
      removedAt: undefined,
      fault,
      createdAt,
      updatedAt,
      liveJobs: this.#live(schedule).length,
      waiting: schedule.waiting.length,
      served,
    };
  }
}

function decidedOf({ at, jobId, delayMs, missed }: PlannedRun): DecidedOccurrence {
  return { scheduledFor: at, jobId, delayMs, missed, payload: undefined, triggered: false };
}
