import 'reflect-metadata';
import { decoratorOf, JOB_MARK, type JobMark } from '../decorators/job-mark.js';
import { RECURRING_MARK, type RecurringMark, recurringDecoratorOf } from '../decorators/recurring-mark.js';
import { HandlerHiddenError } from '../errors/discovery-errors.js';
import { cronOptionsOf } from './cron-metadata.js';

/** A method that `@Job`, `@OnJobFailure` or `@Recurring` marked, or a `@Cron` that is adopted. */
export interface MarkedMethod {
  readonly key: string | symbol;
  /** Of `@Job` or `@OnJobFailure`. */
  readonly mark: JobMark | undefined;
  readonly recurring: RecurringMark | undefined;
  /** What `@Cron` was given, if those are asked for. */
  readonly cron: object | undefined;
}

/** A method, and where it was found. */
interface Place {
  readonly prototype: object;
  readonly key: string | symbol;
  readonly method: unknown;
  /** `InvoiceJobs.send`: the class that declares it. */
  readonly found: string;
}

/**
 * The only reader of the marks that decorators leave. It walks the prototypes by their property descriptors: Nest's own
 * scanner does not see methods named by a symbol, and reading a property could run a getter of the user's.
 */
export class JobMetadataAccessor {
  /** @param cron - `@Cron` of @nestjs/schedule counts as a mark. */
  constructor(private readonly cron = false) {}

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
        const marked = markedMethod(prototype, at, key, this.cron);
        if (marked.mark ?? marked.recurring ?? marked.cron) found.push(marked);
      }
    }
    return found;
  }
}

function markedMethod(
  prototype: object,
  declaredBy: object,
  key: string | symbol,
  withCron: boolean,
): MarkedMethod {
  const method: unknown = Object.getOwnPropertyDescriptor(declaredBy, key)?.value;
  const place = { prototype, key, method, found: `${classNameOf(declaredBy)}.${String(key)}` };
  const cron = withCron ? cronOptionsOf(method) : undefined;
  return { key, mark: jobMark(place), recurring: recurringMark(place), cron };
}

function jobMark(place: Place): JobMark | undefined {
  const onFunction = onFunctionOf<JobMark>(JOB_MARK, place);
  if (onFunction) return onFunction;
  const onPlace = onPlaceOf<JobMark>(JOB_MARK, place);
  if (onPlace) throw new HandlerHiddenError(onPlace.owner, place.found, decoratorOf(onPlace));
  return undefined;
}

/** There may be several: a decorator that stands between two of them hides the lower one only. */
function recurringMark(place: Place): RecurringMark | undefined {
  const onFunction = onFunctionOf<RecurringMark>(RECURRING_MARK, place);
  const onPlace = onPlaceOf<RecurringMark>(RECURRING_MARK, place);
  const hidden = onPlace?.declarations.find((one) => !onFunction?.declarations.includes(one));
  if (onPlace && hidden) {
    throw new HandlerHiddenError(onPlace.owner, place.found, recurringDecoratorOf(hidden));
  }
  return onFunction;
}

function onFunctionOf<Mark>(mark: symbol, { method }: Place): Mark | undefined {
  return typeof method === 'function'
    ? (Reflect.getOwnMetadata(mark, method) as Mark | undefined)
    : undefined;
}

function onPlaceOf<Mark>(mark: symbol, { prototype, key }: Place): Mark | undefined {
  return Reflect.getMetadata(mark, prototype, key) as Mark | undefined;
}

/** How messages call the class of a prototype. */
export function classNameOf(prototype: object): string {
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof maker === 'function' && maker.name !== '' ? maker.name : 'an anonymous class';
}

function parentOf(prototype: object): object | null {
  return Reflect.getPrototypeOf(prototype);
}
