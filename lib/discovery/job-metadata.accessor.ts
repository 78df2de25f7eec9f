import 'reflect-metadata';
import { JOB_MARK, type JobMark } from '../decorators/job-mark.js';
import { HandlerHiddenError } from '../errors/discovery-errors.js';

/** A method that `@Job` marked. */
export interface MarkedMethod {
  readonly key: string | symbol;
  readonly mark: JobMark;
}

/**
 * The only reader of the marks that decorators leave. It walks the prototypes by their property descriptors: Nest's own
 * scanner does not see methods named by a symbol, and reading a property could run a getter of the user's.
 */
export class JobMetadataAccessor {
  /**
   * The handlers that an object of this prototype has, inherited ones included.
   *
   * @throws HandlerHiddenError when a marked method was replaced by one without a mark.
   */
  markedMethods(prototype: object): MarkedMethod[] {
    const found: MarkedMethod[] = [];
    const seen = new Set<string | symbol>(['constructor']);
    for (let at: object | null = prototype; at !== null && at !== Object.prototype; at = parentOf(at)) {
      for (const key of Reflect.ownKeys(at)) {
        if (seen.has(key)) continue;
        seen.add(key);
        const mark = this.#markOf(prototype, at, key);
        if (mark) found.push({ key, mark });
      }
    }
    return found;
  }

  #markOf(prototype: object, declaredBy: object, key: string | symbol): JobMark | undefined {
    const method: unknown = Object.getOwnPropertyDescriptor(declaredBy, key)?.value;
    const onFunction =
      typeof method === 'function'
        ? (Reflect.getOwnMetadata(JOB_MARK, method) as JobMark | undefined)
        : undefined;
    if (onFunction) return onFunction;
    const onPlace = Reflect.getMetadata(JOB_MARK, prototype, key) as JobMark | undefined;
    if (!onPlace) return undefined;
    throw new HandlerHiddenError(
      onPlace.owner,
      `${classNameOf(declaredBy)}.${String(key)}`,
      onPlace.definition.name,
    );
  }
}

/** How messages call the class of a prototype. */
export function classNameOf(prototype: object): string {
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof maker === 'function' && maker.name !== '' ? maker.name : 'an anonymous class';
}

function parentOf(prototype: object): object | null {
  return Reflect.getPrototypeOf(prototype);
}
