import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** An argument of a `StartupCoordinator` that cannot be right. */
export class InvalidStartupActionError extends RatchetError {
  override readonly code = 'INVALID_STARTUP_ACTION';

  constructor(
    readonly argument: 'action' | 'ttl',
    readonly value: unknown,
    readonly allowed: string,
  ) {
    super(`INVALID_STARTUP_ACTION: ${argument}: ${showValue(value)} is wrong; allowed: ${allowed}`);
  }
}
