import { type StandardSchemaV1 } from '@standard-schema/spec';
import { InvalidJobDefinitionError } from '../errors/definition-errors.js';
import { reading } from '../errors/reading.js';
import { unknownKey } from '../errors/wrong-value.js';
import { DURATION_WORDS, isSettingFault, type ResolvedBackoff, resolveBackoff } from './backoff.js';
import { durationMs } from './duration.js';
import { type JobDefinition, type JobPolicy, type JobPolicyWithSchema } from './job-definition.js';
import { type IfJson } from './json-payload.js';
import { countFault, JOB_LIMITS, textFault } from './limits.js';
import { JOB_PRIORITIES } from './priority.js';
import { RECURRING_SUFFIX } from './recurrence.js';
import { isResultType } from './result-type.js';

const HISTORY_MODES: readonly unknown[] = ['keep', 'drop'];

/** Jobs of this name suffix belong to failure handlers. */
export const FAILURE_SUFFIX = '#failed';

const POLICY_KEYS: readonly string[] = [
  'lane',
  'priority',
  'maxRetries',
  'backoff',
  'timeout',
  'history',
  'version',
  'upcast',
  'schema',
  'result',
] satisfies (keyof JobPolicyWithSchema<StandardSchemaV1>)[];

/**
 * Says once what a kind of job is. The module that holds the result is imported by whoever enqueues and by whoever handles.
 *
 * @typeParam Payload - what `enqueue` takes; it must be JSON. Leave it out for a job without a payload, or with a `schema`.
 * @typeParam Result - what the handler returns; with a `schema` say it by `result: resultType<…>()`.
 * @throws InvalidJobDefinitionError with the key, the value and what is allowed.
 *
 * @example
 * export const SendInvoice = defineJob<{ orderId: string }>('invoice.send', { maxRetries: 5, timeout: '2m' });
 * export const Resize = defineJob('image.resize', { schema: z.object({ url: z.url() }), result: resultType<{ bytes: number }>() });
 */
export function defineJob<
  Payload = void,
  Result = unknown,
  Schema extends StandardSchemaV1 = StandardSchemaV1<Payload, Payload>,
>(
  name: IfJson<Payload, string>,
  policy: JobPolicyWithSchema<Schema, Result> = {},
): JobDefinition<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>, Result> {
  return makeDefinition(name, policy) as JobDefinition<
    StandardSchemaV1.InferInput<Schema>,
    StandardSchemaV1.InferOutput<Schema>,
    Result
  >;
}

/** The same for what carries no types: `@Job('name', policy)`, JavaScript callers. */
export function makeDefinition(name: unknown, policy: unknown = {}): JobDefinition {
  const label = typeof name === 'string' ? name : 'defineJob';
  return reading(
    () => definitionOf(label, name, policy),
    (allowed, cause) => new InvalidJobDefinitionError(label, 'policy', policy, allowed, { cause }),
  );
}

function definitionOf(label: string, name: unknown, givenPolicy: unknown): JobDefinition {
  const refuse = (key: string, value: unknown, allowed: string): never => {
    throw new InvalidJobDefinitionError(label, key, value, allowed);
  };
  const check = (key: string, value: unknown, fault: string | undefined): void => {
    if (fault !== undefined) refuse(key, value, fault);
  };

  check('name', name, textFault(name, JOB_LIMITS.nameLength));
  for (const suffix of [FAILURE_SUFFIX, RECURRING_SUFFIX]) {
    if (label.endsWith(suffix)) refuse('name', name, `a name that does not end in "${suffix}"`);
  }
  if (typeof givenPolicy !== 'object' || givenPolicy === null || Array.isArray(givenPolicy)) {
    return refuse('policy', givenPolicy, `an object with ${POLICY_KEYS.join(', ')}`);
  }
  const policy = givenPolicy as JobPolicyWithSchema<StandardSchemaV1>;
  for (const key of Object.keys(policy)) {
    if (!POLICY_KEYS.includes(key)) refuse(key, policy[key as keyof JobPolicy], unknownKey(key, POLICY_KEYS));
  }

  const lane = policy.lane ?? 'default';
  check('lane', lane, textFault(lane, JOB_LIMITS.laneLength));
  const priority = policy.priority ?? 'normal';
  if (!JOB_PRIORITIES.includes(priority)) refuse('priority', priority, JOB_PRIORITIES.join(', '));
  const version = policy.version ?? 1;
  check('version', version, countFault(version, 1, JOB_LIMITS.version));
  const maxRetries = policy.maxRetries;
  if (maxRetries !== undefined)
    check('maxRetries', maxRetries, countFault(maxRetries, 0, JOB_LIMITS.maxRetries));
  const history = policy.history ?? 'keep';
  if (!HISTORY_MODES.includes(history)) refuse('history', history, "'keep' or 'drop'");
  const timeoutMs = policy.timeout === undefined ? undefined : durationMs(policy.timeout);
  if (policy.timeout !== undefined && (timeoutMs === undefined || timeoutMs === 0)) {
    refuse('timeout', policy.timeout, `${DURATION_WORDS}, above 0`);
  }
  const schema = policy.schema;
  if (schema !== undefined && !isStandardSchema(schema))
    refuse('schema', schema, 'a Standard Schema (zod, valibot, arktype, …)');
  if (policy.result !== undefined && !isResultType(policy.result))
    refuse('result', policy.result, 'what resultType<…>() returns; results are not checked when a job runs');
  const upcast = policy.upcast;
  if (upcast !== undefined && typeof upcast !== 'function')
    refuse('upcast', upcast, 'a function (stored, fromVersion) => payload');
  if (upcast !== undefined && version === 1)
    refuse('upcast', upcast, 'only with a version above 1: no version is older, so it would never be called');

  return Object.freeze({
    name: label,
    version,
    lane,
    priority,
    maxRetries,
    backoff: definedBackoff(policy.backoff, refuse),
    timeoutMs,
    history,
    schema,
    upcast,
  });
}

function definedBackoff(
  value: unknown,
  refuse: (key: string, value: unknown, allowed: string) => never,
): ResolvedBackoff | undefined {
  if (value === undefined) return undefined;
  const backoff = resolveBackoff(value);
  return isSettingFault(backoff)
    ? refuse(backoff.key, backoff.value, backoff.allowed)
    : Object.freeze(backoff);
}

/** arktype's schemas are functions, so an object is not asked for. */
function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Partial<StandardSchemaV1>)['~standard'];
  return typeof standard === 'object' && typeof standard.validate === 'function';
}

/** The first setting in which two definitions of one name differ, for the boot error; `undefined`: they say the same. */
export function differingKey(one: JobDefinition, other: JobDefinition): keyof JobDefinition | undefined {
  const keys = [
    'name',
    'version',
    'lane',
    'priority',
    'maxRetries',
    'timeoutMs',
    'history',
    'schema',
    'upcast',
  ] as const;
  const key = keys.find((candidate) => one[candidate] !== other[candidate]);
  if (key) return key;
  const same =
    one.backoff === other.backoff ||
    (one.backoff !== undefined &&
      other.backoff !== undefined &&
      (['type', 'delayMs', 'maxDelayMs', 'jitter'] as const).every(
        (part) => one.backoff?.[part] === other.backoff?.[part],
      ));
  return same ? undefined : 'backoff';
}
