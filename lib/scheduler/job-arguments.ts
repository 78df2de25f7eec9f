import { InvalidJobFilterError } from '../errors/control-errors.js';
import { reading } from '../errors/reading.js';
import { InvalidJobIdError } from '../errors/result-errors.js';
import { isAbortSignal } from '../jobs/abort-signal.js';
import { ArgumentCheck } from '../jobs/argument-check.js';
import { FAILURE_SUFFIX } from '../jobs/define-job.js';
import { ACTS_ON, type JobAction } from '../jobs/job-actions.js';
import { type JobFilter } from '../jobs/job-filter.js';
import { isUuid } from '../jobs/job-id.js';
import { LIVE_STATUSES, TERMINAL_STATUSES } from '../jobs/job-status.js';
import { JOB_LIMITS } from '../jobs/limits.js';
import { JOB_PRIORITIES, rankOf } from '../jobs/priority.js';
import { RECURRING_SUFFIX } from '../jobs/recurrence.js';
import { type JobQuery, type PageRequest, type TimeRange } from '../store/job-store.js';
import { idOfCursor } from './page-cursor.js';
import { isHandle } from './read-job-id.js';

/** The arguments of `find`, `count` and the actions, checked. They take `unknown`: they arrive from JavaScript and from URLs too. */

const FILTER_KEYS: readonly string[] = [
  'id',
  'status',
  'name',
  'lane',
  'priority',
  'tag',
  'businessKey',
  'parentId',
  'created',
  'scheduled',
  'ended',
] satisfies (keyof JobFilter)[];

const STATUSES = [...LIVE_STATUSES, ...TERMINAL_STATUSES] as const;
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/** The last year that a time of JavaScript and of PostgreSQL write alike. */
const MAX_TIME_MS = Date.UTC(9999, 11, 31);

/** @throws InvalidJobFilterError */
export function readFilter(call: string, filter: unknown): JobQuery {
  return readable(call, 'filter', filter, () => queryOf(checkOf(call), filter));
}

/**
 * The filter of an action: it must say something, in each of its keys, and nothing that the action cannot act on.
 *
 * @throws InvalidJobFilterError
 */
export function readActionFilter(call: string, action: JobAction, filter: unknown): JobQuery {
  const check: ArgumentCheck = checkOf(call, true);
  const query = readable(call, 'filter', filter, () => queryOf(check, filter));
  const acted = ACTS_ON[action];
  if (Object.keys(query).length === 0) {
    const all = acted.map((status) => `'${status}'`).join(', ');
    check.refuse(
      'filter',
      filter,
      `at least one condition; to ${action} every job say it: { status: [${all}] }`,
    );
  }
  for (const status of query.statuses ?? []) {
    if (!acted.includes(status)) {
      check.refuse('status', status, `what ${action} acts on: ${acted.join(', ')}`);
    }
  }
  if (query.ended && acted.every((status) => LIVE_STATUSES.some((live) => live === status))) {
    check.refuse('ended', query.ended, `nothing here: ${action} acts on live jobs, which have not ended`);
  }
  return query;
}

/** @throws InvalidJobFilterError */
export function readPage(call: string, options: unknown): PageRequest {
  return readable(call, 'options', options, () => {
    const check: ArgumentCheck = checkOf(call);
    const { limit = DEFAULT_LIMIT, cursor } = check.object('options', options === undefined ? {} : options, [
      'limit',
      'cursor',
    ]);
    const most = check.count('options.limit', limit, 1, MAX_LIMIT);
    if (cursor === undefined) return { limit: most };
    const before = idOfCursor(cursor);
    if (before === undefined) {
      check.refuse('options.cursor', cursor, 'the cursor of a page, as find() returned it');
    }
    return { limit: most, before };
  });
}

export interface BulkSettings {
  readonly preview: boolean;
  readonly signal: AbortSignal | undefined;
}

/** @throws InvalidJobFilterError */
export function readBulkOptions(call: string, options: unknown): BulkSettings {
  return readable(call, 'options', options, () => {
    const check: ArgumentCheck = checkOf(call);
    if (isJoining(options)) check.refuse('options', options, `preview, signal: ${NO_TRANSACTION}`);
    const { preview = false, signal } = check.object('options', options === undefined ? {} : options, [
      'preview',
      'signal',
    ]);
    if (typeof preview !== 'boolean') check.refuse('options.preview', preview, 'true, false');
    if (signal === undefined || isAbortSignal(signal)) return { preview, signal };
    return check.refuse('options.signal', signal, 'the signal of an AbortController');
  });
}

/**
 * Whether an action is for the one job of an id. Whatever is no object counts as an id, and is nobody's if it is none.
 *
 * @throws InvalidJobIdError for a handle.
 * @throws InvalidJobFilterError for an id with options, which are those of a filter: it would act where a preview was asked for.
 */
export function isOne(call: string, target: unknown, options: unknown): target is string {
  if (typeof target === 'object') {
    if (isHandle(target)) throw new InvalidJobIdError(call, target);
    return false;
  }
  if (options === undefined) return true;
  const check: ArgumentCheck = checkOf(call);
  return check.refuse(
    'options',
    options,
    isJoining(options)
      ? `none beside an id: ${NO_TRANSACTION}`
      : 'none beside an id; for a preview give { id }',
  );
}

const NO_TRANSACTION =
  'actions take part in no transaction, each is committed at once; call it after the commit of yours';

/** Meant for the caller's transaction. */
function isJoining(options: unknown): boolean {
  return typeof options === 'object' && options !== null && 'transaction' in options;
}

/** Exactly one of the two counts: `runAt` wins. */
export interface ReadWhen {
  readonly delayMs: number;
  readonly runAt?: Date;
}

/** @throws InvalidJobFilterError */
export function readWhen(call: string, when: unknown): ReadWhen {
  return readable(call, 'when', when, () => {
    const check: ArgumentCheck = checkOf(call);
    const { delay, runAt } = check.object('when', when, ['delay', 'runAt']);
    if ((delay === undefined) === (runAt === undefined)) {
      check.refuse('when', when, 'one of { delay } and { runAt }');
    }
    return delay === undefined
      ? { delayMs: 0, runAt: check.runAt('when.runAt', runAt) }
      : { delayMs: check.duration('when.delay', delay) };
  });
}

function queryOf(check: ArgumentCheck, filter: unknown): JobQuery {
  const given = check.object('filter', filter === undefined ? {} : filter, FILTER_KEYS, '');
  const text = (maxLength: number) => (path: string, value: unknown) => check.text(path, value, maxLength);
  const id = (path: string, value: unknown): string =>
    isUuid(value) ? value.toLowerCase() : check.refuse(path, value, 'the id of a job, a UUID');
  const nameText = text(JOB_LIMITS.nameLength + Math.max(FAILURE_SUFFIX.length, RECURRING_SUFFIX.length));
  const name = (path: string, value: unknown): string =>
    typeof value === 'object' && value !== null && 'name' in value && 'version' in value
      ? nameText(`${path}.name`, value.name)
      : nameText(path, value);
  const query = {
    ids: check.list('id', given['id'], id),
    statuses: check.list('status', given['status'], (path, value) => check.oneOf(path, value, STATUSES)),
    names: check.list('name', given['name'], name),
    lanes: check.list('lane', given['lane'], text(JOB_LIMITS.laneLength)),
    priorities: check.list('priority', given['priority'], (path, value) =>
      rankOf(check.oneOf(path, value, JOB_PRIORITIES)),
    ),
    tags: check.list('tag', given['tag'], text(JOB_LIMITS.tagLength)),
    businessKeys: check.list('businessKey', given['businessKey'], text(JOB_LIMITS.keyLength)),
    parentId: check.optional('parentId', given['parentId'], id),
    created: windowOf(check, 'created', given['created']),
    scheduled: windowOf(check, 'scheduled', given['scheduled']),
    ended: windowOf(check, 'ended', given['ended']),
  };
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}

function windowOf(check: ArgumentCheck, key: string, value: unknown): TimeRange | undefined {
  if (value === undefined) return undefined;
  const given = check.object(key, value, ['from', 'until']);
  const allowed = 'a valid Date, from 1970 to 9999';
  const end = (path: string, time: unknown): number => check.date(path, time, MAX_TIME_MS, allowed);
  const from = check.optional(`${key}.from`, given['from'], end);
  const until = check.optional(`${key}.until`, given['until'], end);
  // A Date has no ends either, and a filter with less than what was meant must not be acted on.
  if (Object.prototype.toString.call(value) === '[object Date]') {
    check.refuse(key, value, 'one of its ends: { from, until }');
  }
  if (from === undefined && until === undefined) {
    return check.isWhole ? check.refuse(key, value, 'from, until, or both') : undefined;
  }
  if (from !== undefined && until !== undefined && from >= until) {
    check.refuse(key, value, 'from before until');
  }
  return {
    ...(from === undefined ? {} : { from: new Date(from) }),
    ...(until === undefined ? {} : { until: new Date(until) }),
  };
}

function checkOf(call: string, isWhole = false): ArgumentCheck {
  return new ArgumentCheck(
    (path, value, allowed) => new InvalidJobFilterError(call, path, value, allowed),
    isWhole,
  );
}

function readable<T>(call: string, path: string, value: unknown, read: () => T): T {
  return reading(read, (allowed, cause) => new InvalidJobFilterError(call, path, value, allowed, { cause }));
}
