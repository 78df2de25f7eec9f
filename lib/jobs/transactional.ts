import { InvalidJobDefinitionError } from '../errors/definition-errors.js';
import { reading } from '../errors/reading.js';
import { type JobContext, type TransactionalJobContext } from './job-context.js';

/** How far a transactional handler is kept apart from other transactions. */
export type TransactionIsolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

const ISOLATIONS: readonly unknown[] = [
  'READ COMMITTED',
  'REPEATABLE READ',
  'SERIALIZABLE',
] satisfies TransactionIsolation[];

/** The handler runs in a transaction. */
export type Transactional =
  | true
  | {
      /** @defaultValue the DataSource's, usually `'READ COMMITTED'` */
      readonly isolation: TransactionIsolation;
    };

/** What `@Job` takes beside the definition: what concerns the node that runs the job. */
export interface JobOptions<T extends Transactional | undefined = Transactional | undefined> {
  /**
   * Runs the handler in a transaction of the app's DataSource, which also records the outcome: what it writes by
   * `ctx.manager`, the children that it enqueues by `ctx.enqueue`, and the job's completion are committed together, or not at
   * all. Needs the module option `dataSource`.
   *
   * @defaultValue none: no transaction
   */
  transactional?: T;
}

/** The context that a handler gets, by its options. */
export type ContextFor<T, P> = [T] extends [Transactional] ? TransactionalJobContext<P> : JobContext<P>;

/** {@link Transactional}, read. */
export interface TransactionSettings {
  readonly isolation: TransactionIsolation | undefined;
}

const ALLOWED = `true, or { isolation: ${ISOLATIONS.map((level) => `'${String(level)}'`).join(' | ')} }`;

/**
 * Reads the options of `@Job(definition, options)`.
 *
 * @throws InvalidJobDefinitionError for an unknown key and a wrong value.
 */
export function readJobOptions(jobName: string, given: unknown): TransactionSettings | undefined {
  return reading(
    () => {
      if (given === undefined) return undefined;
      if (typeof given !== 'object' || given === null || Array.isArray(given))
        throw new InvalidJobDefinitionError(jobName, 'options', given, '{ transactional }');
      for (const key of Object.keys(given)) {
        if (key === 'transactional') continue;
        const value = (given as Record<string, unknown>)[key];
        const allowed = 'only transactional beside a definition; say everything about the job in defineJob';
        throw new InvalidJobDefinitionError(jobName, key, value, allowed);
      }
      return readTransactional(jobName, (given as JobOptions).transactional);
    },
    (allowed, cause) => new InvalidJobDefinitionError(jobName, 'options', given, allowed, { cause }),
  );
}

/** @throws InvalidJobDefinitionError */
export function readTransactional(jobName: string, given: unknown): TransactionSettings | undefined {
  if (given === undefined) return undefined;
  if (given === true) return { isolation: undefined };
  if (typeof given === 'object' && given !== null && Object.keys(given).join() === 'isolation') {
    const { isolation } = given as { isolation: unknown };
    if (ISOLATIONS.includes(isolation)) return { isolation: isolation as TransactionIsolation };
  }
  throw new InvalidJobDefinitionError(jobName, 'transactional', given, ALLOWED);
}
