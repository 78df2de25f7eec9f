import { type AbortKind } from '../errors/execution-errors.js';
import {
  type ClaimedJob,
  type LateOutcome,
  type ProgressReport,
  type Settlement,
} from '../store/job-store.js';

export { type AbortKind };

/** An execution under way: made by `Executor.start`, owned by the exchange loop. */
export interface RunningExecution {
  readonly job: ClaimedJob;
  /**
   * What to record, as soon as that is known: the handler's end, or its timeout. Never rejects. Stays pending when the
   * execution was aborted before (`canceled`, `lost`, `shutdown`): there is nothing left to record under its claim.
   */
  readonly settlement: Promise<Settlement>;
  /**
   * The handler's body has ended (it may be long after a timeout's settlement): only now is the slot free. Never rejects.
   * The outcome is the body's own when the settlement did not carry it.
   */
  readonly ended: Promise<LateOutcome | undefined>;
  /**
   * Of an execution that records its outcome itself, in its own transaction. `pending`: that may be happening now, so that only
   * the database knows, and nobody else may speak for the claim. `done`: `settlement` is recorded. Undefined for all others.
   */
  readonly commit: 'none' | 'pending' | 'done' | undefined;
  /** The outcome is durable, as `settlement` has it: only now may people be told of it. Never throws. */
  recorded(settlement: Settlement): void;
  /** Aborts the handler's signal. `canceled`, `lost` and `shutdown` do not settle: the claim is no longer ours to settle. */
  abort(kind: AbortKind): void;
  /** The claim is being given back; the body may go on until it is aborted. */
  handedBack(): void;
}

/** What the executor asks of its owner. */
export interface ExecutorHooks {
  /** At most once a second for each job; the last value is kept, and rides on the settlement too. */
  onProgress(report: ProgressReport): void;
}
