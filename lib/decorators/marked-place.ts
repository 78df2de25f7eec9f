import { JobDecoratorMisplacedError } from '../errors/discovery-errors.js';

/** The three parameters of a method decorator. */
export interface MarkedPlace {
  readonly target: object;
  readonly key: string | symbol;
  readonly descriptor: PropertyDescriptor | undefined;
}

/** A place where a handler can be. */
export interface DecoratedMethod {
  /** `InvoiceJobs.send`, as it was decorated. */
  readonly owner: string;
  readonly method: object;
}

/**
 * @param decorator - its name, for messages: `@Job`.
 * @throws JobDecoratorMisplacedError
 */
export function decoratedMethod(
  decorator: string,
  { target, key, descriptor }: MarkedPlace,
): DecoratedMethod {
  const isStatic = typeof target === 'function';
  const className = isStatic ? target.name : target.constructor.name;
  const owner = `${className}.${String(key)}`;
  const method: unknown = descriptor?.value;
  if (isStatic)
    throw new JobDecoratorMisplacedError(
      owner,
      decorator,
      'is on a static method; a handler needs an instance',
    );
  if (typeof method !== 'function')
    throw new JobDecoratorMisplacedError(owner, decorator, 'belongs on a method');
  return { owner, method };
}
