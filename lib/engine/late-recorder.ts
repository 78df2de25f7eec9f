import { Logger } from '@nestjs/common';
import { type EngineEvents } from '../observability/engine-events.js';
import { type JobStore, type LateOutcome } from '../store/job-store.js';

/** Why an outcome is late: its job was canceled, or its claim does not stand any more. Otherwise it timed out, or was given back. */
export type LateCause = 'canceled' | 'lost';

const WHEN = {
  canceled: () => 'the job was canceled',
  lost: (claimSeq: string) => `its claim ${claimSeq} was lost`,
  closed: (claimSeq: string) => `its claim ${claimSeq} was closed`,
};

/**
 * Lets a late worker say what became of a claim that was closed without it: in its own execution row and nothing else.
 * Best effort, away from the hot path; the job's truth is recorded already.
 */
export class LateRecorder {
  readonly #logger = new Logger('RatchetExecutor');
  readonly #pending = new Set<Promise<void>>();
  #closed = false;

  constructor(
    private readonly store: JobStore,
    private readonly events: EngineEvents,
  ) {}

  record(late: LateOutcome, cause?: LateCause): void {
    if (this.#closed) return;
    const pending = this.store
      .recordLate(late)
      .then(
        (recorded) => this.#recorded(late, recorded, cause),
        () => this.#recorded(late, false, cause),
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

  #recorded({ jobId, claimSeq, outcome }: LateOutcome, recorded: boolean, cause?: LateCause): void {
    const kept = recorded ? 'its execution keeps a note of it' : 'nothing keeps a note of it';
    const line = `job ${jobId}: the handler ended (${outcome}) after ${WHEN[cause ?? 'closed'](claimSeq)}: discarded, ${kept}`;
    try {
      // What comes after a timeout or a shutdown was told there, or is a part of every deploy.
      if (cause) this.#logger.log(line);
      else this.#logger.debug(line);
    } catch {
      // A logger that fails must not reject what nobody awaits.
    }
    this.events.emit('late', { jobId, claimSeq, outcome, recorded });
  }
}
