import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { reading } from '../errors/reading.js';
import { ArgumentCheck, type Given } from '../jobs/argument-check.js';
import { type EnqueueItemOptions } from '../jobs/enqueue-options.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { JOB_LIMITS } from '../jobs/limits.js';
import { encodeMetadata } from '../jobs/payload-codec.js';
import { JOB_PRIORITIES, rankOf } from '../jobs/priority.js';
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

const CONFLICT_ANSWERS = ['reject', 'return', 'replace'] as const;

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
  const check = new ArgumentCheck(
    (path, value, allowed) => new InvalidEnqueueOptionError(definition.name, prefix + path, value, allowed),
  );
  const given = check.object('options', options === undefined ? {} : options, [...ITEM_KEYS, ...allow], '');
  const lane = check.optionalText('lane', given['lane'], JOB_LIMITS.laneLength);
  const priority = check.optional('priority', given['priority'], (path, value) =>
    check.oneOf(path, value, JOB_PRIORITIES),
  );
  const maxRetries = check.optional('maxRetries', given['maxRetries'], (path, value) =>
    check.count(path, value, 0, JOB_LIMITS.maxRetries),
  );
  const timeoutMs = check.optional('timeout', given['timeout'], (path, value) => check.span(path, value));
  const backoff = check.optional('backoff', given['backoff'], (_, value) => check.backoff(value));
  const metadata = encodeMetadata(definition.name, given['metadata'], `${prefix}metadata`);
  return {
    lane: lane ?? definition.lane,
    priority: rankOf(priority ?? definition.priority),
    tags: check.optional('tags', given['tags'], (path, value) => check.tags(path, value)) ?? [],
    ...when(check, given),
    ...keys(check, given, idempotencyExpiryMs),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

function when(check: ArgumentCheck, given: Given): Pick<NewJob, 'delayMs' | 'runAt'> {
  const { delay, runAt } = given;
  if (runAt === undefined) {
    return { delayMs: delay === undefined ? 0 : check.duration('delay', delay) };
  }
  if (delay !== undefined) check.refuse('runAt', runAt, 'delay or runAt, not both');
  return { delayMs: 0, runAt: check.runAt('runAt', runAt) };
}

function keys(
  check: ArgumentCheck,
  given: Given,
  idempotencyExpiryMs: number,
): Pick<NewJob, 'businessKey' | 'onConflict' | 'idempotencyKey'> {
  const businessKey = check.optionalText('businessKey', given['businessKey'], JOB_LIMITS.keyLength);
  const onConflict = check.optional('onConflict', given['onConflict'], (path, value) =>
    check.oneOf(path, value, CONFLICT_ANSWERS),
  );
  if (onConflict !== undefined && businessKey === undefined) {
    check.refuse('onConflict', onConflict, 'only together with businessKey');
  }
  const asked = given['idempotencyKey'];
  const named: Given =
    asked === undefined || typeof asked === 'string'
      ? { key: asked }
      : check.object('idempotencyKey', asked, ['key', 'expiresIn']);
  const key = check.optionalText(
    asked === named['key'] ? 'idempotencyKey' : 'idempotencyKey.key',
    named['key'],
    JOB_LIMITS.keyLength,
  );
  if (key === undefined && asked !== undefined)
    check.refuse('idempotencyKey', asked, 'a text, or { key, expiresIn }');
  const expiresInMs =
    check.optional('idempotencyKey.expiresIn', named['expiresIn'], (path, value) =>
      check.span(path, value),
    ) ?? idempotencyExpiryMs;
  return {
    ...(businessKey === undefined ? {} : { businessKey }),
    ...(onConflict === undefined ? {} : { onConflict }),
    ...(key === undefined ? {} : { idempotencyKey: { key, expiresInMs } }),
  };
}
