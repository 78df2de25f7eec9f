import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { reading } from '../errors/reading.js';
import { type JobDefinition } from '../jobs/job-definition.js';

/**
 * One option that is needed before the others are checked. Throws in the call itself, so nothing is under way yet.
 *
 * @throws InvalidEnqueueOptionError when it cannot be read.
 */
export function optionOf(jobName: string, options: unknown, key: string): unknown {
  return reading(
    () => (options as Readonly<Record<string, unknown>> | undefined | null)?.[key],
    (allowed, cause) => new InvalidEnqueueOptionError(jobName, key, undefined, allowed, { cause }),
  );
}

/**
 * The `transaction` option; `undefined` for none.
 *
 * @throws InvalidEnqueueOptionError for `null`: a variable that nobody has set, where a commit of its own would be a surprise.
 */
export function transactionOf(definition: JobDefinition, options: unknown): unknown {
  // What is no definition is refused a moment later, by who makes the job of it.
  const name = (definition as Partial<JobDefinition> | undefined | null)?.name ?? 'enqueue';
  const transaction = optionOf(name, options, 'transaction');
  if (transaction !== null) return transaction;
  throw new InvalidEnqueueOptionError(
    name,
    'transaction',
    null,
    'the EntityManager or QueryRunner of a transaction; to enqueue outside of one leave it out, or undefined',
  );
}
