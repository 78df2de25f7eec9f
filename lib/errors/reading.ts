import { describeError } from './describe-error.js';
import { RatchetError } from './ratchet-error.js';

/**
 * Reads what a caller gave, which may be a proxy or have getters that throw. Such an error becomes the one that `refuse`
 * makes; Ratchet's own go through.
 *
 * @param refuse - gets what to say of it, in the place of what is allowed.
 */
export function reading<T>(read: () => T, refuse: (allowed: string, cause: unknown) => RatchetError): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RatchetError) throw error;
    throw refuse(
      `what can be read, but reading it threw: ${describeError(error).message.slice(0, 300)}`,
      error,
    );
  }
}
