import { type StandardSchemaV1 } from '@standard-schema/spec';
import { type Backoff, type ResolvedBackoff } from './backoff.js';
import { type Duration } from './duration.js';
import { type JobContext } from './job-context.js';
import { type JobPriority } from './priority.js';

/** What is said once about a kind of job, because the process that enqueues need not have the handler. */
export interface JobPolicy {
  /** @defaultValue `'default'` */
  lane?: string | undefined;
  /** @defaultValue `'normal'` */
  priority?: JobPriority | undefined;
  /** Failures that are followed by another execution. @defaultValue `3` */
  maxRetries?: number | undefined;
  backoff?: Backoff | undefined;
  /** The longest that one execution may run. @defaultValue none */
  timeout?: Duration | undefined;
  /** `'drop'` keeps nothing of a success. @defaultValue `'keep'` */
  history?: 'keep' | 'drop' | undefined;
  /** Raise it when the payload changes shape: nodes leave jobs of a newer version to nodes that know it. @defaultValue `1` */
  version?: number | undefined;
  /**
   * Makes a payload that an older version stored fit this one, at each execution, before the schema and within the timeout.
   * May be async; one that throws is a failure. The row keeps what was stored. Needs a `version` above 1. @defaultValue none: the schema gets it as it is
   */
  upcast?: ((stored: unknown, fromVersion: number) => unknown) | undefined;
}

declare const result: unique symbol;

/** The type of a result, made by {@link resultType}. */
export interface ResultType<out Result> {
  /** Never set: carries the type. */
  readonly [result]: Result;
}

/** A policy with the schema of its payload: any Standard Schema (zod, valibot, arktype, …). */
export interface JobPolicyWithSchema<Schema extends StandardSchemaV1, Result = unknown> extends JobPolicy {
  /** Checks the payload at `enqueue` (the input is stored) and again at the run (the handler gets the output). */
  schema?: Schema | undefined;
  /** The type of what the handler returns, {@link resultType}. For the compiler only. @defaultValue that of the type parameter */
  result?: ResultType<Result> | undefined;
}

declare const types: unique symbol;

/**
 * A kind of job: made by `defineJob`, imported by whoever enqueues and by whoever handles. Frozen.
 *
 * @typeParam In - what `enqueue` takes.
 * @typeParam Out - what the handler receives (the schema's output).
 * @typeParam Result - what the handler returns.
 */
export interface JobDefinition<In = unknown, Out = In, Result = unknown> {
  readonly name: string;
  readonly version: number;
  readonly lane: string;
  readonly priority: JobPriority;
  /** Undefined: the engine's default. */
  readonly maxRetries: number | undefined;
  readonly backoff: ResolvedBackoff | undefined;
  readonly timeoutMs: number | undefined;
  readonly history: 'keep' | 'drop';
  readonly schema: StandardSchemaV1 | undefined;
  readonly upcast: ((stored: unknown, fromVersion: number) => unknown) | undefined;
  /** Never set: carries the types. */
  readonly [types]?: { readonly in: In; readonly out: Out; readonly result: Result };
}

type TypesOf<Definition extends JobDefinition> = NonNullable<Definition[typeof types]>;

/** What `enqueue` takes for a definition. */
export type InputOf<Definition extends JobDefinition> = TypesOf<Definition>['in'];

/** What the handler of a definition receives. */
export type PayloadOf<Definition extends JobDefinition> = TypesOf<Definition>['out'];

/** What the handler of a definition returns. */
export type ResultOf<Definition extends JobDefinition> = TypesOf<Definition>['result'];

/** The context of a definition's handler. */
export type ContextOf<Definition extends JobDefinition> = JobContext<PayloadOf<Definition>>;

/** A method that may handle a job. Fewer parameters are fine. */
export type JobHandler<Out, Result, Context = JobContext<Out>> = (
  payload: Out,
  context: Context,
) => Result | PromiseLike<Result>;

/** What `@Job(definition)` returns: it only fits on a method that takes the payload and returns the result. */
export type JobDecorator<Out, Result, Context = JobContext<Out>> = <
  Method extends JobHandler<Out, Result, Context>,
>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;
