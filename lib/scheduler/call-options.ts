import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { reading } from '../errors/reading.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type NewJob } from '../store/job-store.js';

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
 * Whether the call is to resolve before its jobs are saved.
 *
 * @param inTransaction - whether the call would join a transaction if nothing is said.
 * @throws InvalidEnqueueOptionError for another value, and inside a transaction.
 */
export function isBuffered(
  definition: JobDefinition,
  options: unknown,
  inTransaction: () => boolean,
): boolean {
  const name = nameOf(definition);
  const durability = optionOf(name, options, 'durability');
  if (durability === undefined || durability === 'saved') return false;
  const refuse = (allowed: string): InvalidEnqueueOptionError =>
    new InvalidEnqueueOptionError(name, 'durability', durability, allowed);
  if (durability !== 'buffered') throw refuse("'saved', 'buffered'");
  if (optionOf(name, options, 'transaction') !== undefined || inTransaction()) {
    throw refuse("'saved' in a transaction: what it writes is there when it is committed, and not before");
  }
  return true;
}

/**
 * Of a child, which is refused once its parent's claim is over: it cannot be saved later.
 *
 * @throws InvalidEnqueueOptionError
 */
export function requireSaved(definition: JobDefinition, options: unknown): void {
  const name = nameOf(definition);
  const durability = optionOf(name, options, 'durability');
  if (durability === undefined || durability === 'saved') return;
  const allowed =
    "'saved' for a child, which is there only if its parent's claim still stands; JobScheduler.enqueue takes 'buffered'";
  throw new InvalidEnqueueOptionError(name, 'durability', durability, allowed);
}

/**
 * A key is asked for its answer, which a buffered call does not wait for.
 *
 * @throws InvalidEnqueueOptionError for the first of the jobs that has one.
 */
export function requireKeyless(jobs: readonly NewJob[]): readonly NewJob[] {
  for (const [index, { name, businessKey, idempotencyKey }] of jobs.entries()) {
    const key = businessKey === undefined ? idempotencyKey && 'idempotencyKey' : 'businessKey';
    if (!key) continue;
    const where = jobs.length > 1 ? `${key} of items[${index}]` : key;
    throw new InvalidEnqueueOptionError(
      name,
      'durability',
      'buffered',
      `'saved' with a key (${where}): the caller must hear whether it was free`,
    );
  }
  return jobs;
}

/**
 * The `transaction` option; `undefined` for none.
 *
 * @throws InvalidEnqueueOptionError for `null`: a variable that nobody has set, where a commit of its own would be a surprise.
 */
export function transactionOf(definition: JobDefinition, options: unknown): unknown {
  const name = nameOf(definition);
  const transaction = optionOf(name, options, 'transaction');
  if (transaction !== null) return transaction;
  throw new InvalidEnqueueOptionError(
    name,
    'transaction',
    null,
    'the EntityManager or QueryRunner of a transaction; to enqueue outside of one leave it out, or undefined',
  );
}

/** What is no definition is refused a moment later, by who makes the job of it. */
function nameOf(definition: JobDefinition): string {
  return (definition as Partial<JobDefinition> | undefined | null)?.name ?? 'enqueue';
}
