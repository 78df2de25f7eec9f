/**
 * What a failed statement means for the caller. One classification for the whole project
 * (`store/postgres/classify-fault.ts` makes it of PostgreSQL and socket errors).
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
