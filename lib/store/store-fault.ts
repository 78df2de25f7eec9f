import { RatchetError } from '../errors/ratchet-error.js';

/**
 * What a failed statement means for the caller. One classification for the whole project
 * (`store/postgres/connections/classify-fault.ts` makes it of PostgreSQL and socket errors).
 */
export type StoreFaultKind =
  /** Rolled back for certain and worth trying at once: deadlock, serialization failure. */
  | 'rolled_back'
  /** The reply was lost: the statement may or may not have committed. Reconcile before going on. */
  | 'unknown'
  /** The server said no before doing anything and may say yes later: starting up, read-only, too many connections, lock timeout. */
  | 'unavailable'
  /** The day's partition does not exist: make it, send again. */
  | 'missing_partition'
  /** A row of the statement is bad: split. */
  | 'bad_row'
  /** Anything else: a bug, a missing grant, a dropped table. */
  | 'fatal';

/** Rejected by every method of a store whose statement failed. The engine decides by {@link StoreError.kind}. */
export class StoreError extends RatchetError {
  readonly code = 'STORE_FAULT';
  override readonly retryable: boolean;

  constructor(
    readonly kind: StoreFaultKind,
    message: string,
    /** SQLSTATE, or the socket's error code. */
    readonly sourceCode: string | undefined,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.retryable = kind === 'rolled_back' || kind === 'unavailable' || kind === 'missing_partition';
  }
}

/** Reads the kind of an error by its shape, not by its class (a second copy of the package, another realm). Others are `fatal`. */
export function faultKindOf(error: unknown): StoreFaultKind {
  if (typeof error !== 'object' || error === null) return 'fatal';
  const { code, kind } = error as { code?: unknown; kind?: unknown };
  return code === 'STORE_FAULT' ? (kind as StoreFaultKind) : 'fatal';
}

/** Somebody held a lock for longer than the statement was to wait: nothing was changed. */
export function isLockTimeout(error: unknown): boolean {
  return faultKindOf(error) === 'unavailable' && (error as Partial<StoreError>).sourceCode === '55P03';
}
