import { type JobContext } from './job-context.js';
import { type JobDefinition } from './job-definition.js';

/** A decorated method that discovery found, ready to be called. */
export interface RegisteredHandler {
  readonly definition: JobDefinition;
  /** `InvoiceJobs.send`, for logs and errors. */
  readonly owner: string;
  /** Calls the method on its instance (an instance of its own for request-scoped providers). */
  invoke(payload: unknown, context: JobContext): Promise<unknown>;
}

/** What the engine asks of discovery. Filled at init, read-only afterwards. */
export abstract class HandlerRegistry {
  abstract find(name: string): RegisteredHandler | undefined;
  abstract all(): readonly RegisteredHandler[];
}
