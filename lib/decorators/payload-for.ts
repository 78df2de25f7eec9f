import { type JobDefinition } from '../jobs/job-definition.js';

declare const output: unique symbol;

/** What a definition's schema takes, where what it makes of it is asked for: by {@link payloadFor}. */
export interface PayloadFor<out Out> {
  /** Never set: carries the type. */
  readonly [output]: Out;
}

/**
 * The payload of a `@Recurring` beside a `@Job` whose schema makes something else of it: checked as `enqueue` checks it, where
 * the method takes what the schema makes. For the compiler only; at run time it is the payload itself.
 *
 * @param _definition - of the `@Job` beside it.
 *
 * @example
 * ```ts
 * @Job(Resize)
 * @Recurring('0 3 * * *', { id: 'nightly-resize', payload: payloadFor(Resize, { width: '640' }) })
 * async resize({ width }: PayloadOf<typeof Resize>) { … } // width is a number
 * ```
 */
export function payloadFor<In, Out, Result>(
  _definition: JobDefinition<In, Out, Result>,
  payload: NoInfer<In>,
): PayloadFor<Out> {
  return payload as PayloadFor<Out>;
}
