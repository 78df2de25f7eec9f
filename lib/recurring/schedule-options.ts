import { type ArgumentCheck, type Given } from '../jobs/argument-check.js';
import { type Backoff, type ResolvedBackoff } from '../jobs/backoff.js';
import { FAILURE_SUFFIX } from '../jobs/define-job.js';
import { type Duration } from '../jobs/duration.js';
import { JOB_LIMITS } from '../jobs/limits.js';
import { JOB_PRIORITIES, type JobPriority } from '../jobs/priority.js';
import { type Misfire, type Overlap, RECURRING_SUFFIX } from '../jobs/recurrence.js';

/** What a schedule may say beside when it is due and what it runs: the same for `@Recurring` and for `create()`. */
export interface ScheduleOptions {
  /** For people: 1 to 200 characters. @defaultValue the id */
  name?: string | undefined;
  /** IANA time zone that the expression is read in. @defaultValue the module option `recurring.timeZone`, `'UTC'` */
  timeZone?: string | undefined;
  /** `false`: it is kept, and never due. @defaultValue `true` */
  enabled?: boolean | undefined;
  /** Of its jobs. @defaultValue that of the job's definition, `'normal'` without one */
  priority?: JobPriority | undefined;
  /** Of its jobs. @defaultValue that of the job's definition, `'default'` without one */
  lane?: string | undefined;
  /** Failures that are followed by another execution. @defaultValue what the job's definition says itself, else `0` */
  maxRetries?: number | undefined;
  /** The wait before another execution. @defaultValue that of the job's definition, else the module's */
  backoff?: Backoff | undefined;
  /** The longest that one execution may run. @defaultValue that of the job's definition, else none */
  timeout?: Duration | undefined;
  /** Of the schedule and of its jobs: at most 20, each 1 to 100 characters. @defaultValue none */
  tags?: readonly string[] | undefined;
  /** What becomes of occurrences that nobody was there for in time. @defaultValue `'once'` */
  misfire?: Misfire | undefined;
  /** What becomes of an occurrence while a job of the schedule is live. @defaultValue `'skip'` */
  overlap?: Overlap | undefined;
  /**
   * Delays each run by up to so much, at most a day, and below an `every` interval, since a run that waits for it is live: the same for
   * one occurrence on every node, and spread over schedules.
   *
   * @defaultValue `0`
   */
  jitter?: Duration | undefined;
}

/** {@link ScheduleOptions}, checked. What is not given is `undefined`: who makes a schedule of them fills in. */
export interface ReadScheduleOptions {
  readonly name: string | undefined;
  readonly timeZone: string | undefined;
  readonly enabled: boolean | undefined;
  readonly priority: JobPriority | undefined;
  readonly lane: string | undefined;
  readonly maxRetries: number | undefined;
  readonly backoff: ResolvedBackoff | undefined;
  readonly timeoutMs: number | undefined;
  readonly tags: readonly string[] | undefined;
  readonly misfire: Misfire | undefined;
  readonly overlap: Overlap | undefined;
  readonly jitterMs: number | undefined;
}

/** Of the options that every schedule may have. */
export const SCHEDULE_KEYS: readonly string[] = [
  'name',
  'timeZone',
  'enabled',
  'priority',
  'lane',
  'maxRetries',
  'backoff',
  'timeout',
  'tags',
  'misfire',
  'overlap',
  'jitter',
] satisfies (keyof ScheduleOptions)[];

export const SCHEDULE_LIMITS = Object.freeze({
  idLength: 200,
  nameLength: 200,
  catchUp: 1_000,
  jitterMs: 86_400_000,
});

const OVERLAPS = ['skip', 'queue', 'allow'] as const satisfies readonly Overlap[];

/** The one reader of these options; the zone itself is for `parseRule` to judge, with the expression. */
export function readScheduleOptions(check: ArgumentCheck, given: Given): ReadScheduleOptions {
  return {
    name: check.optionalText('name', given['name'], SCHEDULE_LIMITS.nameLength),
    timeZone: check.optional('timeZone', given['timeZone'], textOf(check)),
    enabled: check.optional('enabled', given['enabled'], (path, value) =>
      typeof value === 'boolean' ? value : check.refuse(path, value, 'true, false'),
    ),
    priority: check.optional('priority', given['priority'], (path, value) =>
      check.oneOf(path, value, JOB_PRIORITIES),
    ),
    lane: check.optionalText('lane', given['lane'], JOB_LIMITS.laneLength),
    maxRetries: check.optional('maxRetries', given['maxRetries'], (path, value) =>
      check.count(path, value, 0, JOB_LIMITS.maxRetries),
    ),
    backoff: check.optional('backoff', given['backoff'], (_, value) => check.backoff(value)),
    timeoutMs: check.optional('timeout', given['timeout'], (path, value) => check.span(path, value)),
    tags: check.optional('tags', given['tags'], (path, value) => check.tags(path, value)),
    misfire: check.optional('misfire', given['misfire'], (path, value) => readMisfire(check, path, value)),
    overlap: check.optional('overlap', given['overlap'], (path, value) => readOverlap(check, path, value)),
    jitterMs: check.optional('jitter', given['jitter'], (path, value) => {
      const ms = check.duration(path, value);
      return ms <= SCHEDULE_LIMITS.jitterMs ? ms : check.refuse(path, value, 'a duration of at most 1d');
    }),
  };
}

export function readOverlap(check: ArgumentCheck, path: string, value: unknown): Overlap {
  return check.oneOf(path, value, OVERLAPS);
}

/** Of a schedule: its jobs may be called after it, so it must not look like a name of another kind. */
export function readScheduleId(check: ArgumentCheck, path: string, value: unknown): string {
  const id = check.text(path, value, SCHEDULE_LIMITS.idLength);
  const suffix = [FAILURE_SUFFIX, RECURRING_SUFFIX].find((each) => id.endsWith(each));
  return suffix === undefined ? id : check.refuse(path, id, `a text that does not end in "${suffix}"`);
}

function readMisfire(check: ArgumentCheck, path: string, value: unknown): Misfire {
  const allowed = `'skip', 'once', or { catchUp } with an integer from 1 to ${SCHEDULE_LIMITS.catchUp}`;
  if (value === 'skip' || value === 'once') return value;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return check.refuse(path, value, allowed);
  }
  const { catchUp } = check.object(path, value, ['catchUp']);
  return { catchUp: check.count(`${path}.catchUp`, catchUp, 1, SCHEDULE_LIMITS.catchUp) };
}

function textOf(check: ArgumentCheck) {
  return (path: string, value: unknown): string =>
    typeof value === 'string'
      ? value
      : check.refuse(path, value, 'an IANA time zone, such as "Europe/Lisbon"');
}
