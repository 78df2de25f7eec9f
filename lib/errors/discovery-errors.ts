import { RatchetError } from './ratchet-error.js';

/** Two methods handle one job name. */
export class DuplicateHandlerError extends RatchetError {
  override readonly code = 'DUPLICATE_HANDLER';

  constructor(
    job: string,
    first: string,
    second: string,
    { hint, ofFailure = false }: { readonly hint?: string | undefined; readonly ofFailure?: boolean } = {},
  ) {
    const [what, one] = ofFailure ? [`the failure of "${job}"`, 'failure handler'] : [`"${job}"`, 'handler'];
    super(
      `DUPLICATE_HANDLER: ${second}: ${what} is already handled by ${first}; a job has one ${one}` +
        (hint ? `: ${hint}` : ''),
    );
  }
}

/** `@Job` or `@OnJobFailure` marked a method that the instance no longer shows: a decorator above it, or an override, stands before it. */
export class HandlerHiddenError extends RatchetError {
  override readonly code = 'HANDLER_HIDDEN';

  /** @param decorator - as it stands in the code: `@Job("invoice.send")`. */
  constructor(marked: string, found: string, decorator: string) {
    const [name = ''] = decorator.split('(', 1);
    super(
      marked === found
        ? `HANDLER_HIDDEN: ${found}: a decorator above ${decorator} replaced the method; put ${name} above it, or let it copy the metadata`
        : `HANDLER_HIDDEN: ${found}: overrides ${marked} without its ${decorator}; decorate the override, or give it another name`,
    );
  }
}

/** A transient provider has an instance for each who injects it, and none for a job. */
export class TransientHandlerError extends RatchetError {
  override readonly code = 'TRANSIENT_HANDLER';

  /** @param decorator - as it stands in the code: `@Job("invoice.send")`. */
  constructor(owner: string, decorator: string) {
    super(
      `TRANSIENT_HANDLER: ${owner}: ${decorator} is on a method of a transient provider, which has no instance of its own; ` +
        `make it a singleton, or request-scoped for an instance per execution`,
    );
  }
}

/** `@Job` or `@OnJobFailure` stands where no handler can be. */
export class JobDecoratorMisplacedError extends RatchetError {
  override readonly code = 'JOB_DECORATOR_MISPLACED';

  constructor(owner: string, decorator: string, problem: string) {
    super(`JOB_DECORATOR_MISPLACED: ${owner}: ${decorator} ${problem}`);
  }
}

/** With the option `enhancers`: Nest has no instance of this guard or interceptor for the handler, and would leave it out. */
export class EnhancerUnreachableError extends RatchetError {
  override readonly code = 'ENHANCER_UNREACHABLE';

  constructor(owner: string, decorator: string, enhancer: string, className: string) {
    super(
      `ENHANCER_UNREACHABLE: ${owner}: ${decorator}(${enhancer}) would be skipped: Nest makes enhancers for classes that a module ` +
        `lists in "providers"; list ${className} itself there (not behind another token, a factory or a value, nor as a controller; ` +
        `the method not named by a symbol), or give ${decorator} an instance`,
    );
  }
}
