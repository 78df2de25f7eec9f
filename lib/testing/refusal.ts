import { TestingNeedsDatabaseError } from './testing-errors.js';

/** Asked by Nest, by `await` and by printers of every object they meet. */
const ASKED_OF_EVERYTHING = new Set<string | symbol>([
  'then',
  'constructor',
  'toJSON',
  'toString',
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
]);

/** Stands where a port would be, and says at the first call that there is none. */
export function refusal<T extends object>(port: string): T {
  const target: object = {};
  return new Proxy(target, {
    get(_, key): unknown {
      if (typeof key === 'symbol' || ASKED_OF_EVERYTHING.has(key)) return Reflect.get(target, key);
      return () => {
        throw new TestingNeedsDatabaseError(`${port}.${key}`);
      };
    },
  }) as T;
}
