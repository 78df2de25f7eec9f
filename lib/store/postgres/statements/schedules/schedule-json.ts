import { type ResolvedBackoff } from '../../../../jobs/backoff.js';
import { type PriorityRank } from '../../../../jobs/priority.js';
import { type Misfire } from '../../../../jobs/recurrence.js';
import { type JobTemplate } from '../../../../jobs/schedule-spec.js';
import { showValue } from '../../../../errors/show-value.js';
import { type ScheduleRow } from '../../../schedule-store.js';

/** Milliseconds since the epoch, exact, as a number of JSON. */
export const epochMs = (time: string): string => `(extract(epoch from ${time}) * 1000)::float8`;

/** The columns of a schedule, `s`, that {@link readSchedule} reads as one JSON object. */
export const SCHEDULE_COLUMNS = `
       s.id, s.revision::text as revision, s.name, s.expression, s.time_zone, s.origin, s.owner, s.job_name, s.job_version, s.lane,
       s.priority, coalesce(s.payload::text, 'null') as payload, s.max_retries, s.backoff, s.timeout_ms, s.tags, s.misfire,
       s.catch_up, s.overlap, s.jitter_ms, s.scope, s.business_key, s.enabled, s.paused, s.fault, s.untold,
       ${epochMs('s.anchor_at')} as anchor_at, ${epochMs('s.next_at')} as next_at, ${epochMs('s.last_at')} as last_at,
       ${epochMs('s.created_at')} as created_at, ${epochMs('s.updated_at')} as updated_at,
       ${epochMs('s.removed_at')} as removed_at`;

/** A schedule as it is stored. */
export type StoredSchedule = Omit<ScheduleRow, 'liveJobs' | 'waiting' | 'served' | 'switchedOff'> & {
  readonly untold: number;
};

/** What could be read of a row: in place of what could not there is something harmless, and `unreadable` names it. */
export interface ReadSchedule {
  readonly schedule: StoredSchedule;
  readonly unreadable: string | undefined;
}

const MOST_CAUGHT_UP = 1_000;

/** Reads a row that anybody may have changed by hand. Throws only for what is no JSON object. */
export function readSchedule(text: string): ReadSchedule {
  const columns = new Columns(JSON.parse(text) as Record<string, unknown>);
  const stored: StoredSchedule = {
    id: columns.text('id'),
    name: columns.text('name'),
    expression: columns.text('expression'),
    timeZone: columns.text('time_zone'),
    origin: columns.text('origin') as StoredSchedule['origin'],
    owner: columns.optional('owner', String),
    template: templateOf(columns),
    misfire: misfireOf(columns),
    overlap: columns.text('overlap') as StoredSchedule['overlap'],
    jitterMs: columns.count('jitter_ms'),
    scope: columns.text('scope') as StoredSchedule['scope'],
    enabled: columns.flag('enabled'),
    businessKey: columns.optional('business_key', String),
    revision: columns.text('revision'),
    anchor: columns.date('anchor_at') ?? new Date(0),
    nextAt: columns.date('next_at'),
    lastAt: columns.date('last_at'),
    paused: columns.flag('paused'),
    removedAt: columns.date('removed_at'),
    fault: columns.optional('fault', String),
    createdAt: columns.date('created_at') ?? new Date(0),
    updatedAt: columns.date('updated_at') ?? new Date(0),
    untold: columns.count('untold'),
  };
  const { unreadable } = columns;
  return {
    schedule: unreadable === undefined ? stored : { ...stored, fault: stored.fault ?? unreadable },
    unreadable,
  };
}

function templateOf(columns: Columns): JobTemplate {
  return {
    name: columns.text('job_name'),
    version: columns.count('job_version'),
    lane: columns.text('lane'),
    priority: columns.count('priority') as PriorityRank,
    payload: columns.text('payload'),
    maxRetries: columns.optional('max_retries', () => columns.count('max_retries')),
    backoff: columns.optional('backoff', (value) => backoffOf(columns, value)),
    timeoutMs: columns.optional('timeout_ms', () => columns.count('timeout_ms')),
    tags: columns.texts('tags'),
  };
}

function misfireOf(columns: Columns): Misfire {
  const misfire = columns.text('misfire');
  if (misfire !== 'catchUp') return misfire as Misfire;
  const catchUp = columns.count('catch_up');
  if (catchUp < 1 || catchUp > MOST_CAUGHT_UP) columns.refuse('catch_up', catchUp, 0);
  return { catchUp };
}

function backoffOf(columns: Columns, value: unknown): ResolvedBackoff | undefined {
  const { type, delayMs, maxDelayMs, jitter } = value as Partial<Record<keyof ResolvedBackoff, unknown>>;
  const isOne =
    ['none', 'fixed', 'exponential'].includes(type as string) &&
    [delayMs, maxDelayMs, jitter].every((each) => typeof each === 'number' && each >= 0);
  return isOne ? (value as ResolvedBackoff) : columns.refuse('backoff', value, undefined);
}

/** Columns by name, each checked for its kind. The first that is wrong is remembered. */
class Columns {
  unreadable: string | undefined;

  constructor(private readonly values: Readonly<Record<string, unknown>>) {}

  refuse<T>(column: string, value: unknown, instead: T): T {
    this.unreadable ??= `column ${column} cannot be ${showValue(value, 80)}`;
    return instead;
  }

  text(column: string): string {
    const value = this.values[column];
    return typeof value === 'string' && value !== '' ? value : this.refuse(column, value, '');
  }

  texts(column: string): readonly string[] {
    const value = this.values[column];
    const areTexts = Array.isArray(value) && value.every((each) => typeof each === 'string');
    return areTexts ? value : this.refuse(column, value, []);
  }

  count(column: string): number {
    const value = this.values[column];
    return typeof value === 'number' && value >= 0 ? value : this.refuse(column, value, 0);
  }

  flag(column: string): boolean {
    return this.values[column] === true;
  }

  date(column: string): Date | undefined {
    const value = this.values[column];
    if (value === null || value === undefined) return undefined;
    // A finer time than a millisecond was not written by us: rounded down, as it is compared.
    const date = new Date(typeof value === 'number' ? Math.floor(value) : Number.NaN);
    return Number.isNaN(date.getTime()) ? this.refuse(column, value, undefined) : date;
  }

  optional<T>(column: string, read: (value: unknown) => T): T | undefined {
    const value = this.values[column];
    return value === null || value === undefined ? undefined : read(value);
  }
}
