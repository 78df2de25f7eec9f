import { type StandardSchemaV1 } from '@standard-schema/spec';
import { type ValidationError } from 'class-validator';

/**
 * class-validator's tree of errors as a list, with the path of each: `['items', 2, 'price']`.
 *
 * @param owner - what holds the properties that the errors are of: an index of an array is a number.
 */
export function issuesOf(
  errors: readonly ValidationError[],
  owner: unknown,
  path: readonly PropertyKey[] = [],
): StandardSchemaV1.Issue[] {
  return errors.flatMap((error) => {
    const property = error.property as string | undefined;
    // An object that it knows nothing of is told without a property.
    const here =
      property === undefined ? path : [...path, Array.isArray(owner) ? Number(property) : property];
    const messages = Object.values(error.constraints ?? {});
    const own = messages.map((message) => ({ message, path: here }));
    const nested = issuesOf(error.children ?? [], error.value, here);
    return own.length + nested.length > 0 ? [...own, ...nested] : [{ message: 'is invalid', path: here }];
  });
}
