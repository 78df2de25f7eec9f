import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { nearest } from '../errors/nearest.js';
import { reading } from '../errors/reading.js';
import { DURATION_WORDS, isSettingFault, resolveBackoff } from '../jobs/backoff.js';
import { durationMs, MAX_DURATION_MS } from '../jobs/duration.js';
import { type EnqueueItemOptions } from '../jobs/enqueue-options.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { countFault, JOB_LIMITS, textFault } from '../jobs/limits.js';
import { encodeMetadata } from '../jobs/payload-codec.js';
import { JOB_PRIORITIES, type JobPriority, rankOf } from '../jobs/priority.js';
import { type NewJob } from '../store/job-store.js';

/** What options and definition make of a job, before it has an id and a payload. */
export type EnqueueSettings = Omit<NewJob, 'id' | 'name' | 'version' | 'payload' | 'parent'>;

const ITEM_KEYS: readonly string[] = [
  'priority',
  'lane',
  'tags',
  'maxRetries',
  'backoff',
  'timeout',
  'metadata',
  'businessKey',
  'onConflict',
  'idempotencyKey',
  'delay',
  'runAt',
] satisfies (keyof EnqueueItemOptions)[];

const CONFLICT_ANSWERS: readonly unknown[] = ['reject', 'return', 'replace'];

type Given = Readonly<Record<string, unknown>>;

/**
 * Checks what `enqueue` was given beside the payload. Takes `unknown`: options arrive from JavaScript and from files too.
 *
 * @param idempotencyExpiryMs - of keys that do not say it.
 * @param place.allow - keys that the caller has read itself.
 * @param place.prefix - where in the call these options are.
 * @throws InvalidEnqueueOptionError for the first option that is wrong: key, value, what is allowed.
 */
export function resolveEnqueue(
  definition: JobDefinition,
  options: unknown,
  idempotencyExpiryMs: number,
  place: { readonly allow?: readonly string[]; readonly prefix?: string } = {},
): EnqueueSettings {
  const { allow = [], prefix = '' } = place;
  return reading(
    () => settingsOf(definition, options, idempotencyExpiryMs, allow, prefix),
    (allowed, cause) =>
      new InvalidEnqueueOptionError(
        definition.name,
        prefix === '' ? 'options' : prefix.slice(0, -1),
        options,
        allowed,
        { cause },
      ),
  );
}

function settingsOf(
  definition: JobDefinition,
  options: unknown,
  idempotencyExpiryMs: number,
  allow: readonly string[],
  prefix: string,
): EnqueueSettings {
  const check = new OptionCheck(definition.name, prefix);
  const given = check.object('options', options === undefined ? {} : options, [...ITEM_KEYS, ...allow]);
  const lane = check.text('lane', given['lane'], JOB_LIMITS.laneLength);
  const priority = check.oneOf('priority', given['priority'], JOB_PRIORITIES);
  const maxRetries = check.count('maxRetries', given['maxRetries'], JOB_LIMITS.maxRetries);
  const timeoutMs = check.duration('timeout', given['timeout']);
  if (timeoutMs === 0) check.refuse('timeout', given['timeout'], `${DURATION_WORDS}, above 0`);
  const backoff = check.backoff(given['backoff']);
  const metadata = encodeMetadata(definition.name, given['metadata'], `${prefix}metadata`);
  return {
    lane: lane ?? definition.lane,
    priority: rankOf((priority as JobPriority | undefined) ?? definition.priority),
    tags: check.tags(given['tags']),
    ...when(check, given),
    ...keys(check, given, idempotencyExpiryMs),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

function when(check: OptionCheck, given: Given): Pick<NewJob, 'delayMs' | 'runAt'> {
  const { delay, runAt } = given;
  if (runAt === undefined) return { delayMs: check.duration('delay', delay) ?? 0 };
  if (delay !== undefined) check.refuse('runAt', runAt, 'delay or runAt, not both');
  // By its tag: a Date may come from another realm.
  const ms =
    Object.prototype.toString.call(runAt) === '[object Date]' ? (runAt as Date).getTime() : Number.NaN;
  if (!(ms >= 0 && ms <= Date.now() + MAX_DURATION_MS)) {
    check.refuse('runAt', runAt, 'a valid Date, from 1970 to 100 years ahead');
  }
  return { delayMs: 0, runAt: new Date(ms) };
}

function keys(
  check: OptionCheck,
  given: Given,
  idempotencyExpiryMs: number,
): Pick<NewJob, 'businessKey' | 'onConflict' | 'idempotencyKey'> {
  const businessKey = check.text('businessKey', given['businessKey'], JOB_LIMITS.keyLength);
  const onConflict = check.oneOf('onConflict', given['onConflict'], CONFLICT_ANSWERS) as NewJob['onConflict'];
  if (onConflict !== undefined && businessKey === undefined) {
    check.refuse('onConflict', onConflict, 'only together with businessKey');
  }
  const asked = given['idempotencyKey'];
  const named: Given =
    asked === undefined || typeof asked === 'string'
      ? { key: asked }
      : check.object('idempotencyKey', asked, ['key', 'expiresIn']);
  const key = check.text(
    asked === named['key'] ? 'idempotencyKey' : 'idempotencyKey.key',
    named['key'],
    JOB_LIMITS.keyLength,
  );
  if (key === undefined && asked !== undefined)
    check.refuse('idempotencyKey', asked, 'a text, or { key, expiresIn }');
  const expiresInMs = check.duration('idempotencyKey.expiresIn', named['expiresIn']) ?? idempotencyExpiryMs;
  if (expiresInMs === 0)
    check.refuse('idempotencyKey.expiresIn', named['expiresIn'], `${DURATION_WORDS}, above 0`);
  return {
    ...(businessKey === undefined ? {} : { businessKey }),
    ...(onConflict === undefined ? {} : { onConflict }),
    ...(key === undefined ? {} : { idempotencyKey: { key, expiresInMs } }),
  };
}

/** One check each for the shapes that options have; `undefined` passes, as if the option were left out. */
class OptionCheck {
  constructor(
    private readonly jobName: string,
    private readonly prefix: string,
  ) {}

  refuse(key: string, value: unknown, allowed: string): never {
    throw new InvalidEnqueueOptionError(this.jobName, this.prefix + key, value, allowed);
  }

  object(key: string, value: unknown, allowed: readonly string[]): Given {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return this.refuse(key, value, `an object with ${allowed.join(', ')}`);
    }
    for (const [name, setting] of Object.entries(value)) {
      if (allowed.includes(name) || setting === undefined) continue;
      const near = nearest(name, allowed);
      const path = key === 'options' ? name : `${key}.${name}`;
      this.refuse(
        path,
        setting,
        near ? `no such option; did you mean ${near}?` : `only ${allowed.join(', ')}`,
      );
    }
    return value as Given;
  }

  text(key: string, value: unknown, maxLength: number): string | undefined {
    if (value === undefined) return undefined;
    const fault = textFault(value, maxLength);
    return fault === undefined ? (value as string) : this.refuse(key, value, fault);
  }

  oneOf(key: string, value: unknown, allowed: readonly unknown[]): unknown {
    return value === undefined || allowed.includes(value)
      ? value
      : this.refuse(key, value, allowed.join(', '));
  }

  count(key: string, value: unknown, max: number): number | undefined {
    if (value === undefined) return undefined;
    const fault = countFault(value, 0, max);
    return fault === undefined ? (value as number) : this.refuse(key, value, fault);
  }

  duration(key: string, value: unknown): number | undefined {
    return value === undefined ? undefined : (durationMs(value) ?? this.refuse(key, value, DURATION_WORDS));
  }

  backoff(value: unknown): NewJob['backoff'] {
    if (value === undefined) return undefined;
    const backoff = resolveBackoff(value);
    return isSettingFault(backoff) ? this.refuse(backoff.key, backoff.value, backoff.allowed) : backoff;
  }

  tags(value: unknown): readonly string[] {
    if (value === undefined) return [];
    const allowed = `at most ${JOB_LIMITS.tags} texts of 1 to ${JOB_LIMITS.tagLength} characters`;
    if (!Array.isArray(value) || value.length > JOB_LIMITS.tags) return this.refuse('tags', value, allowed);
    value.forEach((tag: unknown, index) => this.text(`tags[${index}]`, tag ?? null, JOB_LIMITS.tagLength));
    return [...new Set(value as string[])];
  }
}
