import { InvalidRecurringOptionError } from '../../errors/recurring-scheduler-errors.js';
import { reading } from '../../errors/reading.js';
import { showValue } from '../../errors/show-value.js';
import { ArgumentCheck, type Given } from '../../jobs/argument-check.js';
import { type JobDefinition } from '../../jobs/job-definition.js';
import { JOB_LIMITS } from '../../jobs/limits.js';
import { type Overlap } from '../../jobs/recurrence.js';
import {
  type ReadScheduleOptions,
  readOverlap,
  readScheduleId,
  readScheduleOptions,
  SCHEDULE_KEYS,
} from '../../recurring/schedule-options.js';
import { type RuleSource } from '../../recurring/time/recurrence-rule.js';
import { type OccurrencesRequest } from '../../store/schedule-store.js';
import { type ListSchedulesFilter } from './schedule-types.js';

/** The arguments of `RecurringScheduler`, checked. They take `unknown`: they arrive from JavaScript and from URLs too. */

const CHANGE_KEYS: readonly string[] = [
  ...SCHEDULE_KEYS,
  'expression',
  'every',
  'job',
  'payload',
  'businessKey',
];
const CREATE_KEYS: readonly string[] = [...CHANGE_KEYS, 'id', 'ifExists'];
const IF_EXISTS = ['reject', 'keep', 'replace'] as const;
const ORIGINS = ['annotation', 'api'] as const;
const MAX_LIMIT = 1_000;
const DEFAULT_LIMIT = 50;
const DEFAULT_PREVIEW = 10;
/** The last year that a time of JavaScript and of PostgreSQL write alike. */
const MAX_TIME_MS = Date.UTC(9999, 11, 31);

export interface ReadNewSchedule {
  /** Whose errors these are: `create("digest")`. */
  readonly label: string;
  readonly id: string;
  readonly source: RuleSource;
  readonly options: ReadScheduleOptions;
  readonly job: JobDefinition;
  readonly payload: unknown;
  readonly businessKey: string | undefined;
  readonly ifExists: (typeof IF_EXISTS)[number];
}

/** @throws InvalidRecurringOptionError */
export function readNewSchedule(given: unknown): ReadNewSchedule {
  const { id } = readable('create', 'schedule', given, () => ({ ...(given as { id?: unknown } | null) }));
  const label = labelOf('create', id);
  return readable(label, 'schedule', given, () => {
    const check: ArgumentCheck = checkOf(label);
    const all = check.object('schedule', given, CREATE_KEYS, '');
    return {
      label,
      id: readScheduleId(check, 'id', all['id']),
      source:
        sourceOf(check, all) ?? check.refuse('expression', undefined, 'one of { expression } and { every }'),
      options: readScheduleOptions(check, all),
      job: readJob(check, all['job']),
      payload: all['payload'],
      businessKey: check.optionalText('businessKey', all['businessKey'], JOB_LIMITS.keyLength),
      ifExists: check.optional('ifExists', all['ifExists'], oneOf(check, IF_EXISTS)) ?? 'reject',
    };
  });
}

export interface ReadPatch {
  readonly label: string;
  /** Undefined: the times stay. */
  readonly source: RuleSource | undefined;
  readonly options: ReadScheduleOptions;
  readonly job: JobDefinition | undefined;
  /** Undefined: it stays. */
  readonly payload: { readonly value: unknown } | undefined;
  /** Undefined: it stays. `null`: none from now on. */
  readonly businessKey: string | null | undefined;
  readonly clears: { readonly backoff: boolean; readonly timeout: boolean };
}

/** @throws InvalidRecurringOptionError */
export function readPatch(id: unknown, given: unknown): ReadPatch {
  const label = labelOf('update', id);
  return readable(label, 'patch', given, () => {
    const check: ArgumentCheck = checkOf(label);
    const all = check.object('patch', given, CHANGE_KEYS, '');
    const clears = { backoff: all['backoff'] === null, timeout: all['timeout'] === null };
    const job = check.optional('job', all['job'], (_, value) => readJob(check, value));
    return {
      label,
      source: sourceOf(check, all),
      options: readScheduleOptions(check, {
        ...all,
        ...(clears.backoff ? { backoff: undefined } : {}),
        ...(clears.timeout ? { timeout: undefined } : {}),
      }),
      job,
      payload: job || all['payload'] !== undefined ? { value: all['payload'] } : undefined,
      businessKey:
        all['businessKey'] === null
          ? null
          : check.optionalText('businessKey', all['businessKey'], JOB_LIMITS.keyLength),
      clears,
    };
  });
}

export interface ReadTrigger {
  readonly label: string;
  readonly payload: { readonly value: unknown } | undefined;
  readonly ifBusy: 'run' | 'skip' | 'wait' | undefined;
}

const IF_BUSY: Record<Overlap, 'run' | 'skip' | 'wait'> = { allow: 'run', skip: 'skip', queue: 'wait' };

/** @throws InvalidRecurringOptionError */
export function readTrigger(id: unknown, given: unknown): ReadTrigger {
  const label = labelOf('trigger', id);
  return readable(label, 'options', given, () => {
    const check: ArgumentCheck = checkOf(label);
    const all = optionsOf(check, given, ['payload', 'overlap']);
    const overlap = check.optional('overlap', all['overlap'], (path, value) =>
      readOverlap(check, path, value),
    );
    return {
      label,
      payload: all['payload'] === undefined ? undefined : { value: all['payload'] },
      ifBusy: overlap && IF_BUSY[overlap],
    };
  });
}

export interface ReadList extends ListSchedulesFilter {
  readonly after: string | undefined;
  readonly limit: number;
}

/** @throws InvalidRecurringOptionError */
export function readList(call: string, given: unknown, paging: readonly string[]): ReadList {
  return readable(call, 'options', given, () => {
    const check: ArgumentCheck = checkOf(call);
    const all = optionsOf(check, given, ['tag', 'origin', 'removed', ...paging]);
    return {
      tag: check.optionalText('tag', all['tag'], JOB_LIMITS.tagLength),
      origin: check.optional('origin', all['origin'], oneOf(check, ORIGINS)),
      removed: check.optional('removed', all['removed'], (path, value) =>
        typeof value === 'boolean' ? value : check.refuse(path, value, 'true, false'),
      ),
      after: check.optional('after', all['after'], (path, value) => readScheduleId(check, path, value)),
      limit: limitOf(check, all['limit']),
    };
  });
}

export interface ReadPreview {
  readonly id: string;
  readonly timeZone: string | undefined;
  readonly from: Date | undefined;
  readonly count: number;
}

/** @throws InvalidRecurringOptionError */
export function readPreview(given: unknown): ReadPreview {
  return readable('preview', 'options', given, () => {
    const check: ArgumentCheck = checkOf('preview');
    const all = optionsOf(check, given, ['id', 'timeZone', 'from', 'count']);
    const { timeZone } = readScheduleOptions(check, { timeZone: all['timeZone'] });
    return {
      id: check.optional('id', all['id'], (path, value) => readScheduleId(check, path, value)) ?? 'preview',
      timeZone,
      from: check.optional('from', all['from'], dateOf(check)),
      count:
        check.optional('count', all['count'], (path, value) => check.count(path, value, 1, MAX_LIMIT)) ??
        DEFAULT_PREVIEW,
    };
  });
}

/** @throws InvalidRecurringOptionError */
export function readOccurrences(id: unknown, given: unknown): Omit<OccurrencesRequest, 'scheduleId'> {
  const label = labelOf('occurrences', id);
  return readable(label, 'options', given, () => {
    const check: ArgumentCheck = checkOf(label);
    const all = optionsOf(check, given, ['since', 'before', 'limit']);
    return {
      since: check.optional('since', all['since'], dateOf(check)),
      before: check.optional('before', all['before'], dateOf(check)),
      limit: limitOf(check, all['limit']),
    };
  });
}

/** An id, a key or a tag that a call is about. @throws InvalidRecurringOptionError */
export function readText(call: string, path: string, value: unknown, maxLength: number): string {
  return checkOf(call).text(path, value, maxLength);
}

/** How errors call the call: `update("digest")`. */
export function labelOf(call: string, id: unknown): string {
  return typeof id === 'string' ? `${call}(${showValue(id, 200)})` : call;
}

function sourceOf(check: ArgumentCheck, given: Given): RuleSource | undefined {
  const { expression, every } = given;
  if (expression === null)
    check.refuse('expression', null, 'a cron text such as "0 6 * * *"; leave the key out otherwise');
  if (every === undefined) return expression as RuleSource | undefined;
  if (expression !== undefined) check.refuse('every', every, 'expression or every, not both');
  return { every } as RuleSource;
}

function readJob(check: ArgumentCheck, value: unknown): JobDefinition {
  const given = value as Partial<JobDefinition> | undefined | null;
  const isOne =
    typeof given === 'object' &&
    given !== null &&
    typeof given.name === 'string' &&
    typeof given.version === 'number' &&
    typeof given.lane === 'string';
  return isOne ? (given as JobDefinition) : check.refuse('job', value, 'what defineJob() returned');
}

function limitOf(check: ArgumentCheck, value: unknown): number {
  return (
    check.optional('limit', value, (path, limit) => check.count(path, limit, 1, MAX_LIMIT)) ?? DEFAULT_LIMIT
  );
}

function dateOf(check: ArgumentCheck) {
  return (path: string, value: unknown): Date =>
    new Date(check.date(path, value, MAX_TIME_MS, 'a valid Date, from 1970 to 9999'));
}

function oneOf<T extends string>(check: ArgumentCheck, allowed: readonly T[]) {
  return (path: string, value: unknown): T => check.oneOf(path, value, allowed);
}

function optionsOf(check: ArgumentCheck, given: unknown, keys: readonly string[]): Given {
  return check.object('options', given === undefined ? {} : given, keys, '');
}

function checkOf(label: string): ArgumentCheck {
  return new ArgumentCheck(
    (path, value, allowed) => new InvalidRecurringOptionError(label, path, value, allowed),
  );
}

function readable<T>(label: string, path: string, value: unknown, read: () => T): T {
  return reading(
    read,
    (allowed, cause) => new InvalidRecurringOptionError(label, path, value, allowed, { cause }),
  );
}
