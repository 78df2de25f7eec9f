import { type EngineEvents } from '../observability/engine-events.js';
import { type JobStore, type LateOutcome } from '../store/job-store.js';

/**
 * Lets a late worker say what became of a claim that was closed without it: in its own execution row and nothing else.
 * Best effort, away from the hot path; the job's truth is recorded already.
 */
export class LateRecorder {
  readonly #pending = new Set<Promise<void>>();
  #closed = false;

  constructor(
    private readonly store: JobStore,
    private readonly events: EngineEvents,
  ) {}

  record(late: LateOutcome): void {
    if (this.#closed) return;
    const pending = this.store
      .recordLate(late)
      .then(
        (recorded) =>
          this.events.emit('late', {
            jobId: late.jobId,
            claimSeq: late.claimSeq,
            outcome: late.outcome,
            recorded,
          }),
        () =>
          this.events.emit('late', {
            jobId: late.jobId,
            claimSeq: late.claimSeq,
            outcome: late.outcome,
            recorded: false,
          }),
      )
      .finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  /** What was handed in so far is answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#closed = true;
  }
}
