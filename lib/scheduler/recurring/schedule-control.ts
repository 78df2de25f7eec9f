import { uuidv7 } from 'uuidv7';
import { type ClusterMessages } from '../../cluster/cluster-messages.js';
import { PriorityDisabledError } from '../../errors/bucket-errors.js';
import { nearest } from '../../errors/nearest.js';
import {
  AnnotatedScheduleError,
  InvalidRecurringOptionError,
  NodeScheduleError,
  RecurringScheduleExistsError,
  RecurringScheduleNotFoundError,
  ScheduleContendedError,
  ScheduleKeyHeldError,
} from '../../errors/recurring-scheduler-errors.js';
import { type HandlerRegistry } from '../../jobs/handler-registry.js';
import { type JobDefinition } from '../../jobs/job-definition.js';
import { priorityOf } from '../../jobs/priority.js';
import { type JobTemplate, type ScheduleSpec } from '../../jobs/schedule-spec.js';
import { type EngineEvents } from '../../observability/engine-events.js';
import { annotatedWrite } from '../../recurring/annotated-write.js';
import { OccurrenceReport } from '../../recurring/occurrence-report.js';
import { tellSchedule } from '../../recurring/recurring-lane.js';
import { RuleCache } from '../../recurring/rule-cache.js';
import { refuseLongJitter } from '../../recurring/refuse-long-jitter.js';
import { scheduleSpecOf, templateOf } from '../../recurring/schedule-spec-of.js';
import { parseRule } from '../../recurring/time/recurrence-rule.js';
import {
  type OccurrenceOutcome,
  type ScheduleMark,
  type ScheduleRow,
  type ScheduleStore,
} from '../../store/schedule-store.js';
import { type JobMaker } from '../job-maker.js';
import { type ReadNewSchedule, type ReadPatch, type ReadTrigger } from './schedule-arguments.js';
import { ScheduleLog } from './schedule-log.js';
import { patchedSpec } from './schedule-patch.js';

type Decided = Exclude<OccurrenceOutcome, { readonly outcome: 'disabled' }>;

export interface ScheduleControlParts {
  readonly store: ScheduleStore;
  readonly maker: Pick<JobMaker, 'payload'>;
  readonly messages: ClusterMessages;
  readonly events: EngineEvents;
  readonly handlers: HandlerRegistry;
  /** Of schedules that do not say one. */
  readonly timeZone: string;
}

/** Each means that somebody else has changed the schedule meanwhile. */
const TRIES = 20;
/** As many are looked at for an id that was misspelt. */
const NEAR_IDS = 1_000;
/** Schedules that one call of the store deletes. */
const DELETED_AT_A_TIME = 100;

/** A schedule as it was read, and when. */
interface Seen {
  readonly now: Date;
  readonly row: ScheduleRow;
}

/**
 * Makes, changes and ends schedules. Every change says which revision it has seen, and is made anew on what somebody else has
 * written meanwhile. What is done is told to all nodes after its commit: their timers may have to ring earlier.
 */
export class ScheduleControl {
  readonly #parts: ScheduleControlParts;
  readonly #rules = new RuleCache();
  readonly #report: OccurrenceReport;
  readonly #log = new ScheduleLog();

  constructor(parts: ScheduleControlParts) {
    this.#parts = parts;
    this.#report = new OccurrenceReport(parts);
  }

  async create(asked: ReadNewSchedule): Promise<ScheduleRow> {
    const { store } = this.#parts;
    const { id, label, ifExists } = asked;
    const annotated = this.#parts.handlers.schedules().find(({ spec }) => spec.id === id);
    if (annotated) throw new RecurringScheduleExistsError(id, annotated.spec.owner ?? id);
    const spec = await this.#specOf(asked);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { now, schedules } = await store.byIds([id]);
      const [row] = schedules;
      if (row && row.removedAt === undefined) {
        if (row.origin === 'annotation') throw new RecurringScheduleExistsError(id, row.owner ?? id);
        if (ifExists === 'reject') throw new RecurringScheduleExistsError(id, undefined);
        if (ifExists === 'keep') return row;
      }
      const written = await this.#write(label, spec, row, now);
      if (!written) continue;
      // Of a removed annotation only the id is taken over, not that somebody had paused it.
      if (!row?.removedAt || !written.paused) return written;
      await this.resume(id);
      return (await this.#existing('create', id)).row;
    }
    throw new ScheduleContendedError('create', id, TRIES);
  }

  async update(id: string, patch: ReadPatch): Promise<ScheduleRow> {
    const { job, label, payload } = patch;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { now, row } = await this.#existing('update', id);
      if (row.origin === 'annotation') throw new AnnotatedScheduleError('update', id, row.owner ?? id);
      const definition = job ?? this.#definitionOf(row.template);
      const text = payload && (await this.#parts.maker.payload(definition, payload.value));
      const spec = patchedSpec(row, patch, text, definition.version);
      const written = await this.#write(label, spec, row, now);
      if (written) return written;
    }
    throw new ScheduleContendedError('update', id, TRIES);
  }

  /** False: it was paused. */
  pause(id: string): Promise<boolean> {
    return this.#mark('pause', id, ({ row }) => (row.paused ? undefined : { kind: 'paused' }));
  }

  /** False: it was neither paused nor broken. */
  async resume(id: string): Promise<boolean> {
    return await this.#mark('resume', id, ({ row, now }) => {
      if (!row.paused && row.fault === undefined) return undefined;
      const isDue = row.enabled && row.scope === 'cluster';
      return { kind: 'resumed', nextAt: isDue ? this.#rules.of(row).next(now, row.anchor) : undefined };
    });
  }

  async trigger(id: string, { label, payload, ifBusy }: ReadTrigger): Promise<Decided> {
    const { row } = await this.#existing('trigger', id);
    if (row.scope === 'node') throw new NodeScheduleError('trigger', id);
    const { template } = row;
    const text = payload && (await this.#payloadOf(label, template, payload.value, id));
    const occurrence = await this.#parts.store.trigger({ id, jobId: uuidv7(), ifBusy, payload: text });
    if (!occurrence) throw await this.notFound('trigger', id);
    if (occurrence.outcome === 'disabled') {
      const { lane, priority, nodes } = occurrence;
      throw new PriorityDisabledError(template.name, lane, priorityOf(priority), nodes);
    }
    this.#log.triggered(id, occurrence.outcome);
    if (occurrence.outcome === 'enqueued') this.#report.fired([occurrence.job]);
    if (occurrence.outcome === 'skipped') {
      const reason = ifBusy === 'wait' || (!ifBusy && row.overlap === 'queue') ? 'queue_full' : 'overlap';
      const { events } = this.#parts;
      events.emit('schedule_skipped', { scheduleId: id, scheduledFor: occurrence.at, reason });
    }
    return occurrence;
  }

  /** Returns how many of its jobs were canceled. */
  async delete(id: string): Promise<number> {
    const { row } = await this.#existing('delete', id);
    if (row.origin === 'annotation') throw new AnnotatedScheduleError('delete', id, row.owner ?? id);
    const deleted = await this.#delete([row]);
    const canceled = deleted.get(id);
    if (!canceled) throw await this.notFound('delete', id);
    return canceled.length;
  }

  /** Returns how many schedules are gone. */
  async deleteAll(filter: { readonly tag?: string; readonly businessKey?: string }): Promise<number> {
    let count = 0;
    for (let after: string | undefined; ;) {
      const request = { ...filter, after, origin: 'api', limit: DELETED_AT_A_TIME } as const;
      const rows = await this.#parts.store.list(request);
      count += (await this.#delete(rows)).size;
      after = rows.at(-1)?.id;
      if (rows.length < DELETED_AT_A_TIME) return count;
    }
  }

  /** The error for an id that no schedule has. Asks for the ids that there are. */
  async notFound(call: string, id: string): Promise<RecurringScheduleNotFoundError> {
    const { store, handlers } = this.#parts;
    // What would be a hint only must not hide what is wrong.
    const rows = await store.list({ limit: NEAR_IDS }).catch(() => []);
    const ids = [...rows.map((row) => row.id), ...handlers.schedules().map(({ spec }) => spec.id)];
    const near = nearest(
      id,
      ids.filter((one) => one !== id),
    );
    return new RecurringScheduleNotFoundError(call, id, near);
  }

  async #specOf(asked: ReadNewSchedule): Promise<ScheduleSpec> {
    const { id, label, source, options, job, businessKey } = asked;
    const rule = parseRule(source, options.timeZone ?? this.#parts.timeZone, { hashSeed: id, owner: label });
    refuseLongJitter(label, options.jitterMs, rule);
    const payload = await this.#parts.maker.payload(job, asked.payload);
    const identity = { id, origin: 'api', owner: undefined, scope: 'cluster', businessKey } as const;
    return scheduleSpecOf(identity, rule, templateOf(job, payload), options);
  }

  /** Undefined: somebody else was faster. */
  async #write(
    label: string,
    spec: ScheduleSpec,
    row: ScheduleRow | undefined,
    now: Date,
  ): Promise<ScheduleRow | undefined> {
    const { store, messages } = this.#parts;
    const write = annotatedWrite(spec, row, now, this.#rules);
    if (!write) return row;
    const [outcome] = await store.write([write]);
    if (typeof outcome === 'object')
      throw new ScheduleKeyHeldError(label, spec.businessKey ?? '', outcome.heldBy);
    if (outcome !== 'written') return undefined;
    this.#log.changed(spec.id, row && row.removedAt === undefined ? 'changed' : 'created');
    const seen = await store.byIds([spec.id]);
    const [written] = seen.schedules;
    if (written?.nextAt) tellSchedule(messages, written.nextAt.getTime() - seen.now.getTime());
    return written;
  }

  async #mark(call: string, id: string, markOf: (seen: Seen) => ScheduleMark | undefined): Promise<boolean> {
    const { store, messages } = this.#parts;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const seen = await this.#existing(call, id);
      const mark = markOf(seen);
      if (!mark) return false;
      if (!(await store.mark(id, seen.row.revision, mark))) continue;
      this.#log.changed(id, mark.kind);
      if (mark.kind === 'resumed' && mark.nextAt) {
        tellSchedule(messages, mark.nextAt.getTime() - seen.now.getTime());
      }
      // Nodes that run it for themselves have no other way to hear of it soon.
      if (seen.row.scope === 'node') tellSchedule(messages);
      return true;
    }
    throw new ScheduleContendedError(call, id, TRIES);
  }

  async #delete(rows: readonly ScheduleRow[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const { store, events } = this.#parts;
    const templates = new Map(rows.map(({ id, template }) => [id, template]));
    const deleted = rows.length > 0 ? await store.delete([...templates.keys()]) : [];
    for (const { id, canceled } of deleted) {
      const { name, lane } = templates.get(id) ?? {};
      const about = name === undefined || lane === undefined ? {} : { name, lane };
      for (const jobId of canceled) events.emit('withdrawn', { jobId, ...about, running: false });
    }
    this.#log.deleted(
      deleted.map(({ id }) => id),
      deleted.reduce((sum, { canceled }) => sum + canceled.length, 0),
    );
    return new Map(deleted.map(({ id, canceled }) => [id, canceled]));
  }

  async #existing(call: string, id: string): Promise<Seen> {
    const { now, schedules } = await this.#parts.store.byIds([id]);
    const [row] = schedules;
    if (row && row.removedAt === undefined) return { now, row };
    throw await this.notFound(call, id);
  }

  async #payloadOf(label: string, template: JobTemplate, value: unknown, id: string): Promise<string> {
    const { handlers, maker } = this.#parts;
    const annotated = handlers.schedules().find(({ spec }) => spec.id === id);
    if (annotated && !annotated.takesPayload) {
      const allowed = `none: ${annotated.spec.owner ?? id} takes the context alone`;
      throw new InvalidRecurringOptionError(label, 'payload', value, allowed);
    }
    return await maker.payload(this.#definitionOf(template), value);
  }

  /** That of this process, if it is the one that the payload is for; else one with nothing but the name. */
  #definitionOf({ name, version, lane }: JobTemplate): JobDefinition {
    const known = this.#parts.handlers.find(name)?.definition;
    if (known?.version === version) return known;
    return {
      name,
      version,
      lane,
      priority: 'normal',
      maxRetries: undefined,
      backoff: undefined,
      timeoutMs: undefined,
      history: 'keep',
      schema: undefined,
      upcast: undefined,
    };
  }
}
