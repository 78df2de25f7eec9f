import { describeError } from '../errors/describe-error.js';
import { StoreError, type StoreFaultKind } from '../store/store-fault.js';
import { faultDelayMs } from './backoff-delay.js';

/** What a bucket does about a failed exchange. */
export interface FaultResponse {
  /** Before anything else: the commit is unknown. */
  readonly reconcile: boolean;
  readonly mend: 'none' | 'partitions' | 'split';
  readonly delayMs: number;
}

/** Certain rollbacks are tried again at once, so many times in a row. */
const ROLLBACKS_AT_ONCE = 10;

/** More than it takes to single out a few rows of a large batch. */
const SPLITS_AT_ONCE = 50;

/** The rules, all of them. `failures` counts those in a row, this one included. */
export function respondTo(kind: StoreFaultKind, failures: number, random?: () => number): FaultResponse {
  const delayMs = faultDelayMs(failures, random);
  switch (kind) {
    case 'rolled_back':
      return { reconcile: false, mend: 'none', delayMs: failures <= ROLLBACKS_AT_ONCE ? 0 : delayMs };
    case 'unknown':
      // The first time at once: a cut connection is opened again by the next statement.
      return { reconcile: true, mend: 'none', delayMs: failures === 1 ? 0 : delayMs };
    case 'unavailable':
    case 'fatal':
      return { reconcile: false, mend: 'none', delayMs };
    case 'missing_partition':
      return { reconcile: false, mend: 'partitions', delayMs: failures === 1 ? 0 : delayMs };
    case 'bad_row':
      return { reconcile: false, mend: 'split', delayMs: failures <= SPLITS_AT_ONCE ? 0 : delayMs };
  }
}

/** An answer that was not worked in to its end is as good as one that never came. */
export function lostAnswer(cause: unknown): StoreError {
  return new StoreError('unknown', `STORE_FAULT: ${describeError(cause).message}`, undefined, { cause });
}
