import { InvalidJobDefinitionError } from '../errors/definition-errors.js';
import { counted } from '../errors/counted.js';
import { describeError } from '../errors/describe-error.js';
import { reading } from '../errors/reading.js';
import { JobFailedError } from '../errors/result-errors.js';
import { unknownKey } from '../errors/wrong-value.js';
import { type Backoff } from './backoff.js';
import { FAILURE_SUFFIX, makeDefinition } from './define-job.js';
import { type Duration } from './duration.js';
import { type RegisteredHandler } from './handler-registry.js';
import { type JobContext } from './job-context.js';
import { type JobDefinition } from './job-definition.js';
import { decodePayload } from './payload-codec.js';
import { type JobPriority } from './priority.js';
import { FAILURE_SCHEMA } from './stored-failure.js';

/** How the job runs that calls an `@OnJobFailure` method. */
export interface JobFailurePolicy {
  /** @defaultValue the lane of the definition */
  lane?: string | undefined;
  /** Failures of the method that are followed by another execution. @defaultValue the module's `maxRetries`, `3` */
  maxRetries?: number | undefined;
  /** The wait between them. @defaultValue the module's `backoff` */
  backoff?: Backoff | undefined;
  /** The longest that one execution may run. @defaultValue none */
  timeout?: Duration | undefined;
}

/** What the dead letter knows of a job, when it came there. */
export interface FailedJob {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly lane: string;
  readonly priority: JobPriority;
  /** Where it ran last; `undefined` when that is not known any more. */
  readonly node: string | undefined;
  readonly createdAt: Date;
  readonly failedAt: Date;
  readonly executions: number;
  readonly failures: number;
  readonly crashes: number;
  readonly businessKey: string | undefined;
  readonly tags: readonly string[];
  /** `undefined` for none. */
  readonly metadata: unknown;
}

/** The payload of the job that calls an `@OnJobFailure` method. */
export interface JobFailure {
  /** As the failed job stored it. */
  readonly payload: unknown;
  /** The text of its last error. */
  readonly error: string;
  readonly job: FailedJob;
}

/** A method that may be told of failures. Fewer parameters are fine. */
export type JobFailureHandler<Out> = (
  payload: Out,
  error: JobFailedError,
  context: JobContext<JobFailure>,
) => unknown;

/** What `@OnJobFailure(definition)` returns: it only fits on a method that takes the payload of the definition. */
export type JobFailureDecorator<Out> = <Method extends JobFailureHandler<Out>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

const POLICY_KEYS: readonly string[] = [
  'lane',
  'maxRetries',
  'backoff',
  'timeout',
] satisfies (keyof JobFailurePolicy)[];

/**
 * The definition of the jobs `<name>#failed`. Nobody enqueues them but the statement that moves a job to the dead letter.
 *
 * @throws InvalidJobDefinitionError
 */
export function failureDefinition(definition: JobDefinition, policy: unknown = {}): JobDefinition {
  const name = definition.name + FAILURE_SUFFIX;
  const wrong = (key: string, value: unknown, allowed: string, cause?: unknown): InvalidJobDefinitionError =>
    new InvalidJobDefinitionError(name, key, value, allowed, { cause });
  const own = reading(
    () => {
      if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) {
        throw wrong('policy', policy, `an object with ${POLICY_KEYS.join(', ')}`);
      }
      const copy: Record<string, unknown> = { ...policy };
      for (const key of Object.keys(copy)) {
        if (!POLICY_KEYS.includes(key)) throw wrong(key, copy[key], unknownKey(key, POLICY_KEYS));
      }
      return copy;
    },
    (allowed, cause) => wrong('policy', policy, allowed, cause),
  );
  const made = makeDefinition(definition.name, { ...own, lane: own['lane'] ?? definition.lane });
  return Object.freeze({ ...made, name, schema: FAILURE_SCHEMA });
}

/** What an `@OnJobFailure` method is called with, beside the context. */
export interface FailureCall {
  readonly payload: unknown;
  readonly error: JobFailedError;
  /** Why the payload is as it was stored: its definition could not read it. */
  readonly unread: string | undefined;
}

/**
 * Reads the payload of a failure job. A payload that its own definition cannot read, or not in time, is often the very reason
 * of the failure, so that is no reason not to tell of it.
 */
export async function readFailure(
  definition: JobDefinition,
  failure: JobFailure,
  patienceMs: number,
): Promise<FailureCall> {
  const { payload, error: text, job } = failure;
  const { id, name, executions, failures, crashes } = job;
  const error = new JobFailedError({ jobId: id, jobName: name, error: text, executions, failures, crashes });
  try {
    const read = await inTime(decodePayload(definition, payload, job.version), patienceMs);
    return { payload: read, error, unread: undefined };
  } catch (cause) {
    return { payload, error, unread: describeError(cause).message };
  }
}

/** In real time: what hangs is code of the application, whatever the clock of the jobs does. */
async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `its upcast or schema had not ended after ${counted(ms, 'millisecond')}`;
    timer = setTimeout(() => reject(new Error(message)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the database must know of the failure handlers among these. */
export function failureHandlersOf(
  handlers: readonly RegisteredHandler[],
): { readonly jobName: string; readonly lane: string }[] {
  return handlers.flatMap(({ failureOf, definition }) =>
    failureOf ? [{ jobName: failureOf.name, lane: definition.lane }] : [],
  );
}
