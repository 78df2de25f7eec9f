import { type JobDefinition } from '../jobs/job-definition.js';
import { failureDefinition, type JobFailureDecorator, type JobFailurePolicy } from '../jobs/job-failure.js';
import { markMethod } from './mark-method.js';

/**
 * Makes a provider's method the one that is told when a job fails for good: its retries are used up, it threw an
 * `UnrecoverableError`, or its crash budget is spent. Not for a job that was canceled.
 *
 * The method gets the payload, a `JobFailedError` that names the failed job, and the context of its own execution. It is a
 * durable job itself, `<name>#failed`, inserted by the statement that moves the failed job to the dead letter: it runs on any
 * node that has the method, at least once, and is retried by the policy given here. When it fails for good in its turn,
 * nobody is told but the log.
 *
 * The node that has it need not have the handler of the job. Discovery has the rules of {@link Job}: at boot it names two
 * methods for one definition, transient providers, overrides without the decorator.
 *
 * @param definition - what `defineJob` returned.
 * @param policy - of the failure job itself.
 * @throws InvalidJobDefinitionError when the policy cannot be right.
 *
 * @example
 * ```ts
 * @Injectable()
 * export class InvoiceFailures {
 *   @OnJobFailure(SendInvoice, { maxRetries: 10 })
 *   async tell({ orderId }: PayloadOf<typeof SendInvoice>, error: JobFailedError) {
 *     await this.orders.flag(orderId, error.message);
 *   }
 * }
 * ```
 */
export function OnJobFailure<In, Out, Result>(
  definition: JobDefinition<In, Out, Result>,
  policy: JobFailurePolicy = {},
): JobFailureDecorator<Out> {
  return (target, key, descriptor) => {
    markMethod('@OnJobFailure', definition, { target, key, descriptor }, () => ({
      definition: failureDefinition(definition, policy),
      failureOf: definition,
    }));
  };
}
