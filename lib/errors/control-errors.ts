import { counted } from './counted.js';
import { RatchetError } from './ratchet-error.js';
import { wrongValue } from './wrong-value.js';

/** A filter, or another argument of `find`, `count` or an action on jobs, cannot be right. Nothing was asked or changed. */
export class InvalidJobFilterError extends RatchetError {
  override readonly code = 'INVALID_JOB_FILTER';

  constructor(
    /** The method: `find`, `cancel`. */
    readonly call: string,
    /** Where: a condition of the filter (`status[1]`, `created.from`), or `options.limit`, `when.delay`. */
    readonly path: string,
    readonly value: unknown,
    readonly allowed: string,
    options?: { cause?: unknown },
  ) {
    super(`INVALID_JOB_FILTER: ${call}: ${path}: ${wrongValue(value, allowed)}`, options);
  }
}

/** The database failed while an action on many jobs was under way: what is done stays done. */
export class BulkInterruptedError extends RatchetError {
  override readonly code = 'BULK_INTERRUPTED';
  override readonly retryable = true;

  constructor(
    /** `cancel`, `redrive`, … */
    readonly action: string,
    /** Jobs that had their turn, as far as it is known. */
    readonly matched: number,
    /** Those of them that were changed, for certain; of the statement that failed nobody knows. */
    readonly changed: number,
    options: { cause: unknown },
  ) {
    super(
      `BULK_INTERRUPTED: ${action}: the database failed after ${counted(changed, 'changed job')}, and what is changed stays so; ` +
        'call it again with the same filter, it goes on with the rest',
      options,
    );
  }
}

/** The session that keeps a row locked, as the server's list of sessions has it. */
export interface RowHolder {
  /** For `pg_terminate_backend`. */
  readonly pid: number;
  /** Its `application_name`; empty when it has none. */
  readonly application: string;
  /** `idle in transaction`, `active`, …; absent when you may not see it. */
  readonly state?: string;
  /** Milliseconds since its transaction began; absent when you may not see it. */
  readonly openForMs?: number;
}

/** Another transaction keeps the row of a job locked: the call waited some seconds, and changed nothing. */
export class JobRowHeldError extends RatchetError {
  override readonly code = 'JOB_ROW_HELD';
  override readonly retryable = true;

  constructor(
    /** `cancel`, `redrive`, `pause`, `resume`, `reschedule`. */
    readonly action: string,
    readonly id: string,
    /** Who has it; undefined when that could not be found out, or it has let go since. */
    readonly holder?: RowHolder,
    options?: { cause?: unknown },
  ) {
    const row = action === 'redrive' ? 'the row or the business key' : 'the row';
    super(
      `JOB_ROW_HELD: ${action}: ${row} of job ${id} is held by another transaction${holder ? ` (${describeHolder(holder)})` : ''}; ` +
        'nothing was changed, try again when it ends',
      options,
    );
  }
}

function describeHolder({ pid, application, state, openForMs }: RowHolder): string {
  const what = state === undefined ? '' : `, ${state}`;
  const since = openForMs === undefined ? '' : `, open for ${String(Math.round(openForMs / 1_000))} s`;
  return `session ${String(pid)} of "${application}"${what}${since}`;
}
