import { type StandardSchemaV1 } from '@standard-schema/spec';
import { type Backoff, type ResolvedBackoff } from './backoff.js';
import { type Duration } from './duration.js';
import { type JobPriority } from './priority.js';

/** What is said once about a kind of job, because the process that enqueues need not have the handler. */
export interface JobPolicy {
  /** @defaultValue `'default'` */
  lane?: string;
  /** @defaultValue `'normal'` */
  priority?: JobPriority;
  /** Failures that are followed by another execution. @defaultValue `3` */
  maxRetries?: number;
  backoff?: Backoff;
  /** The longest that one execution may run. @defaultValue none */
  timeout?: Duration;
  /** `'drop'` keeps nothing of a success. @defaultValue `'keep'` */
  history?: 'keep' | 'drop';
  /** Raise it when the payload changes shape: nodes leave jobs of a newer version to nodes that know it. @defaultValue `1` */
  version?: number;
}

declare const types: unique symbol;

/**
 * A kind of job: made by `defineJob`, imported by whoever enqueues and by whoever handles.
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
  readonly schema: StandardSchemaV1<In, Out> | undefined;
  /** Never set: carries the types. */
  readonly [types]?: { readonly in: (value: In) => void; readonly out: Out; readonly result: Result };
}
