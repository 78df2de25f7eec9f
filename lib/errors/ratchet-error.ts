/**
 * The base of every error that Ratchet throws. Compare `code`, not `instanceof`: codes are stable across versions,
 * copies of the package and jest realms.
 */
export abstract class RatchetError extends Error {
  /** Stable, SCREAMING_SNAKE. Each is listed in docs/errors.md. */
  abstract readonly code: string;
  /** Whether the same call may succeed when it is made again as it is. */
  readonly retryable: boolean = false;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}
