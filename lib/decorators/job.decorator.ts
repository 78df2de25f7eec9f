import { InvalidJobDefinitionError } from '../errors/definition-errors.js';
import { reading } from '../errors/reading.js';
import { makeDefinition } from '../jobs/define-job.js';
import { type JobDecorator, type JobDefinition, type JobPolicy } from '../jobs/job-definition.js';
import {
  type ContextFor,
  type JobOptions,
  readJobOptions,
  readTransactional,
  type Transactional,
} from '../jobs/transactional.js';
import { type JobMark } from './job-mark.js';
import { markMethod } from './mark-method.js';

/**
 * Makes a provider's method the handler of a job.
 *
 * The method gets the payload (what the definition's schema made of it) and a {@link JobContext}; what it returns is the
 * job's result. It is called directly: guards and interceptors of the app apply only with the module option `enhancers`,
 * pipes and filters never. The instance is the provider's own, or one per execution when the provider is request-scoped
 * (`REQUEST` is then the job's context).
 *
 * Fails at boot with the class and method named: two handlers for one job, a transient provider, a decorator above this
 * one that replaces the method, an override without it.
 *
 * @param definition - what `defineJob` returned. Everything about the job is said there.
 * @param options - what concerns the node that runs it: `transactional`.
 * @throws InvalidJobDefinitionError when an option is unknown or cannot be right.
 *
 * @example
 * ```ts
 * @Injectable()
 * export class InvoiceJobs {
 *   @Job(SendInvoice)
 *   async send({ orderId }: PayloadOf<typeof SendInvoice>, ctx: JobContext) {
 *     await this.mailer.send(orderId, { signal: ctx.signal });
 *   }
 * }
 * ```
 */
export function Job<In, Out, Result, T extends Transactional | undefined = undefined>(
  definition: JobDefinition<In, Out, Result>,
  options?: JobOptions<T>,
): JobDecorator<Out, Result, ContextFor<T, Out>>;
/**
 * Defines the job in place, for jobs that the same process enqueues and runs. Others reach it by
 * `scheduler.enqueueNamed(name, payload)`.
 *
 * @param name - unique among all jobs of the database.
 * @param policy - as `defineJob` takes it, with the options of the form above.
 * @throws InvalidJobDefinitionError when the name or the policy cannot be right.
 */
export function Job<T extends Transactional | undefined = undefined>(
  name: string,
  policy?: JobPolicy & JobOptions<T>,
): JobDecorator<never, unknown, ContextFor<T, never>>;
export function Job(
  definitionOrName: JobDefinition | string,
  options?: object,
): JobDecorator<never, unknown, never> {
  const { definition, transactional } =
    typeof definitionOrName === 'string'
      ? inPlace(definitionOrName, options)
      : { definition: definitionOrName, transactional: optionsOf(definitionOrName, options) };
  return (target, key, descriptor) => {
    markMethod('@Job', definition, { target, key, descriptor }, () => ({
      definition,
      ...(transactional ? { transactional } : {}),
    }));
  };
}

function inPlace(name: string, given: unknown): Pick<JobMark, 'definition' | 'transactional'> {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { definition: makeDefinition(name, given) };
  const { transactional, ...policy } = reading(
    (): Record<string, unknown> => ({ ...given }),
    (allowed, cause) => new InvalidJobDefinitionError(name, 'policy', given, allowed, { cause }),
  );
  const settings = readTransactional(name, transactional);
  return { definition: makeDefinition(name, policy), ...(settings ? { transactional: settings } : {}) };
}

/** What is no definition is refused on the method, by its name. */
function optionsOf(definition: Partial<JobDefinition> | undefined, given: unknown): JobMark['transactional'] {
  return readJobOptions(typeof definition?.name === 'string' ? definition.name : '@Job', given);
}
