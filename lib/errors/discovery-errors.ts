import { RatchetError } from './ratchet-error.js';

/** Two methods handle one job name. */
export class DuplicateHandlerError extends RatchetError {
  override readonly code = 'DUPLICATE_HANDLER';

  constructor(job: string, first: string, second: string, hint?: string) {
    super(
      `DUPLICATE_HANDLER: ${second}: "${job}" is already handled by ${first}; a job has one handler` +
        (hint ? `: ${hint}` : ''),
    );
  }
}

/** `@Job` marked a method that the instance no longer shows: a decorator above it, or an override, stands before it. */
export class HandlerHiddenError extends RatchetError {
  override readonly code = 'HANDLER_HIDDEN';

  constructor(marked: string, found: string, job: string) {
    super(
      marked === found
        ? `HANDLER_HIDDEN: ${found}: a decorator above @Job("${job}") replaced the method; put @Job above it, or let it copy the metadata`
        : `HANDLER_HIDDEN: ${found}: overrides ${marked}, the handler of "${job}", without @Job; decorate the override, or give it another name`,
    );
  }
}

/** A transient provider has an instance for each who injects it, and none for a job. */
export class TransientHandlerError extends RatchetError {
  override readonly code = 'TRANSIENT_HANDLER';

  constructor(owner: string, job: string) {
    super(
      `TRANSIENT_HANDLER: ${owner}: the handler of "${job}" is on a transient provider, which has no instance of its own; ` +
        `make it a singleton, or request-scoped for an instance per execution`,
    );
  }
}

/** `@Job` stands where no handler can be. */
export class JobDecoratorMisplacedError extends RatchetError {
  override readonly code = 'JOB_DECORATOR_MISPLACED';

  constructor(owner: string, problem: string) {
    super(`JOB_DECORATOR_MISPLACED: ${owner}: @Job ${problem}`);
  }
}
