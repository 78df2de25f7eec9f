import { JobDecoratorMisplacedError } from '../errors/discovery-errors.js';
import { makeDefinition } from '../jobs/define-job.js';
import { type JobDecorator, type JobDefinition, type JobPolicy } from '../jobs/job-definition.js';
import { JOB_MARK, type JobMark } from './job-mark.js';

/**
 * Makes a provider's method the handler of a job.
 *
 * The method gets the payload (what the definition's schema made of it) and a {@link JobContext}; what it returns is the
 * job's result. It is called directly: guards, pipes, interceptors and filters of the app do not apply. The instance is
 * the provider's own, or one per execution when the provider is request-scoped (`REQUEST` is then the job's context).
 *
 * Fails at boot with the class and method named: two handlers for one job, a transient provider, a decorator above this
 * one that replaces the method, an override without it.
 *
 * @param definition - what `defineJob` returned. Everything about the job is said there.
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
export function Job<In, Out, Result>(definition: JobDefinition<In, Out, Result>): JobDecorator<Out, Result>;
/**
 * Defines the job in place, for jobs that the same process enqueues and runs. Others reach it by
 * `scheduler.enqueueNamed(name, payload)`.
 *
 * @param name - unique among all jobs of the database.
 * @param policy - as `defineJob` takes it.
 * @throws InvalidJobDefinitionError when the name or the policy cannot be right.
 */
export function Job(name: string, policy?: JobPolicy): JobDecorator<never, unknown>;
export function Job(
  definitionOrName: JobDefinition | string,
  policy?: JobPolicy,
): JobDecorator<never, unknown> {
  const definition =
    typeof definitionOrName === 'string' ? makeDefinition(definitionOrName, policy) : definitionOrName;
  return (target, key, descriptor) => {
    mark(definition, target, key, descriptor);
  };
}

function mark(
  definition: JobDefinition,
  target: object,
  key: string | symbol,
  descriptor: PropertyDescriptor | undefined,
): void {
  const isStatic = typeof target === 'function';
  const className = isStatic ? target.name : target.constructor.name;
  const owner = `${className}.${String(key)}`;
  const method: unknown = descriptor?.value;
  if (isStatic)
    throw new JobDecoratorMisplacedError(owner, 'is on a static method; a handler needs an instance');
  if (typeof method !== 'function') throw new JobDecoratorMisplacedError(owner, 'belongs on a method');
  if (!isDefinition(definition)) {
    throw new JobDecoratorMisplacedError(owner, 'was given neither a definition (defineJob) nor a name');
  }
  const earlier = Reflect.getOwnMetadata(JOB_MARK, method) as JobMark | undefined;
  if (earlier) {
    throw new JobDecoratorMisplacedError(
      owner,
      `("${definition.name}") stands beside @Job("${earlier.definition.name}"); a method handles one job`,
    );
  }
  const made: JobMark = { definition, owner };
  Reflect.defineMetadata(JOB_MARK, made, method);
  Reflect.defineMetadata(JOB_MARK, made, target, key);
}

/** JavaScript callers, and a definition of a circular import that is not there yet. */
function isDefinition(value: unknown): value is JobDefinition {
  return typeof value === 'object' && value !== null && 'name' in value && 'version' in value;
}
