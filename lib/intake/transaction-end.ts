/** What is asked of a caller's connection. */
interface Transactional {
  readonly isTransactionActive: boolean;
  readonly isReleased: boolean;
}

/** What a job may still have to wait for before it is there. */
export interface JobArrival {
  /** From then on a job that is not there never came to be. */
  readonly isOver: boolean;
  /** Why it is not there yet, and what to do, for people. */
  readonly reason: string;
  /** Whether the job cannot come to be before the transaction of that connection is committed. */
  holds(jobId: string, runner: unknown): boolean;
}

/**
 * Whether a caller's whole transaction (not a savepoint) is over, however it ended and whoever ended it. What was written
 * in it and is not there from then on never came to be.
 *
 * TypeORM tells of the end, and where nobody hears it, its connection shows it: it has no active transaction, or is released.
 */
export class TransactionEnd implements JobArrival {
  readonly reason =
    'the transaction that enqueued it is open: the job is not there before the commit; await result() after the transaction, not inside it';
  #runner: Transactional | undefined;
  #brought: Set<string> | undefined;

  constructor(runner: Transactional) {
    this.#runner = runner;
  }

  get isOver(): boolean {
    if (this.#runner?.isTransactionActive && !this.#runner.isReleased) return false;
    this.tell();
    return true;
  }

  /** It ended. Lets go of the connection: whoever keeps a handle must not keep that. */
  tell(): void {
    this.#runner = undefined;
    this.#brought = undefined;
  }

  /** A job was written in it. */
  bring(jobId: string): void {
    if (this.#runner) (this.#brought ??= new Set()).add(jobId);
  }

  /** While it is open: whether it is the one of that connection, and the job cannot come to be before its commit. */
  holds(jobId: string, runner: unknown): boolean {
    return !this.isOver && this.#runner === runner && this.#brought?.has(jobId) === true;
  }
}
