import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';
import { wrongValue } from './wrong-value.js';

/** `defineJob` (or `@Job('name', policy)`) was given something that no job can have. */
export class InvalidJobDefinitionError extends RatchetError {
  override readonly code = 'INVALID_JOB_DEFINITION';

  constructor(
    readonly jobName: string,
    readonly key: string,
    readonly value: unknown,
    readonly allowed: string,
    options?: { cause?: unknown },
  ) {
    super(`INVALID_JOB_DEFINITION: ${showValue(jobName)}.${key}: ${wrongValue(value, allowed)}`, options);
  }
}
