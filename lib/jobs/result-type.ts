import { type ResultType } from './job-definition.js';

const RESULT_TYPE = Object.freeze({});

/**
 * Says, beside a schema, what the handler of a job returns: type parameters cannot be given in part, and the schema is one. For the
 * compiler only; nothing is checked when the job runs.
 *
 * @typeParam Result - what the handler returns, as JSON brings it back.
 *
 * @example
 * export const Resize = defineJob('image.resize', { schema: z.object({ url: z.url() }), result: resultType<{ bytes: number }>() });
 */
export function resultType<Result>(): ResultType<Result> {
  return RESULT_TYPE as ResultType<Result>;
}

/** Not a schema, say, which would look as if it checked what handlers return. */
export function isResultType(value: unknown): boolean {
  return value === RESULT_TYPE;
}
