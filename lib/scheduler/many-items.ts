import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { reading } from '../errors/reading.js';

const SHAPE = '{ payload, options }';

/**
 * The items of one call, copied: they are checked over many turns of the event loop.
 *
 * @throws InvalidEnqueueOptionError
 */
export function itemsOf(jobName: string, items: unknown): readonly unknown[] {
  const refuse = (allowed: string, cause?: unknown): InvalidEnqueueOptionError =>
    new InvalidEnqueueOptionError(jobName, 'items', items, allowed, { cause });
  return reading(() => {
    if (!Array.isArray(items)) throw refuse(`an array of ${SHAPE}`);
    return Array.from(items as readonly unknown[]);
  }, refuse);
}

/** One item; its options are laid over those of the call. */
export interface ManyItem {
  readonly payload: unknown;
  readonly options: object | undefined;
}

/** @throws InvalidEnqueueOptionError */
export function itemOf(jobName: string, item: unknown, place: string, shared: object | undefined): ManyItem {
  const refuse = (
    path: string,
    value: unknown,
    allowed: string,
    cause?: unknown,
  ): InvalidEnqueueOptionError => new InvalidEnqueueOptionError(jobName, path, value, allowed, { cause });
  return reading(
    () => {
      if (!isObject(item)) throw refuse(place, item, SHAPE);
      const { payload, options, ...rest } = item;
      const [stray] = Object.entries(rest).filter(([, value]) => value !== undefined);
      if (stray) {
        throw refuse(`${place}.${stray[0]}`, stray[1], `${SHAPE}, with the options of the job in options`);
      }
      if (options === undefined) return { payload, options };
      if (!isObject(options)) throw refuse(`${place}.options`, options, 'an object');
      return { payload, options: overlay(shared ?? {}, options) };
    },
    (allowed, cause) => refuse(place, item, allowed, cause),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What an item says counts more; its delay replaces a common runAt, and the other way round. */
function overlay(shared: object, own: Readonly<Record<string, unknown>>): object {
  const common: Record<string, unknown> = { ...shared };
  delete common['transaction'];
  delete common['durability'];
  if (own['delay'] !== undefined || own['runAt'] !== undefined) {
    delete common['delay'];
    delete common['runAt'];
  }
  const said = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...common, ...Object.fromEntries(said) };
}
