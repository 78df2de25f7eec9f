import { showValue } from '../errors/show-value.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type ClaimedJob } from '../store/job-store.js';
import { MOST_WAITING } from '../store/schedule-store.js';
import { type NodeRun, nodeJob } from './node-run.js';
import { type RecurringLogger } from './recurring-parts.js';

export interface NodeScheduleParts {
  readonly events: EngineEvents;
  readonly logger: RecurringLogger;
  readonly run: (job: ClaimedJob) => NodeRun;
  /** A run has ended, and nothing follows it at once. */
  readonly onEnded: () => void;
}

/** One occurrence that is to run. */
interface Turn {
  readonly at: Date;
  readonly missed: number;
}

/** The runs of one schedule of scope `node`: its overlap rule, in memory, and what becomes of each run. Nothing here throws. */
export class NodeSchedule {
  readonly annotated: AnnotatedSchedule;
  readonly #parts: NodeScheduleParts;
  readonly #runs = new Set<NodeRun>();
  readonly #waiting: Turn[] = [];
  #previous: Date | undefined;

  constructor(annotated: AnnotatedSchedule, parts: NodeScheduleParts) {
    this.annotated = annotated;
    this.#parts = parts;
  }

  /** Bodies that have not ended. */
  get running(): number {
    return this.#runs.size;
  }

  /** It is time for an occurrence. */
  fire(turn: Turn): void {
    const { overlap } = this.annotated.spec;
    if (this.#runs.size === 0 || overlap === 'allow') this.#begin(turn);
    else if (overlap === 'queue' && this.#waiting.length < MOST_WAITING) this.#waiting.push(turn);
    else this.#skip(turn.at);
  }

  /** What waits does not run any more. */
  forget(): void {
    this.#waiting.length = 0;
  }

  abort(): void {
    for (const run of [...this.#runs]) run.abort('shutdown');
  }

  #skip(at: Date): void {
    const { id, overlap } = this.annotated.spec;
    const reason = overlap === 'queue' ? 'queue_full' : 'overlap';
    this.#parts.events.emit('schedule_skipped', { scheduleId: id, scheduledFor: at, reason });
  }

  #begin({ at, missed }: Turn): void {
    const { events, run } = this.#parts;
    const { id } = this.annotated.spec;
    const job = nodeJob(this.annotated, {
      scheduleId: id,
      scheduledFor: at,
      previous: this.#previous,
      missed,
    });
    this.#previous = at;
    events.emit('schedule_fired', { scheduleId: id, scheduledFor: at, missed });
    const begun = run(job);
    this.#runs.add(begun);
    void this.#follow(begun, at);
  }

  async #follow(run: NodeRun, at: Date): Promise<void> {
    // An aborted one settles nothing; one that timed out settles before its body ends.
    const settlement = await Promise.race([run.settlement, run.ended.then(() => undefined)]);
    this.#tell(at, settlement?.outcome ?? 'aborted', settlement?.error);
    await run.ended;
    this.#runs.delete(run);
    const next = this.#waiting.shift();
    if (next) this.fire(next);
    else this.#parts.onEnded();
  }

  #tell(at: Date, outcome: string, error: string | undefined): void {
    const { events, logger } = this.#parts;
    const { id, owner = id } = this.annotated.spec;
    // A retry policy of the app's may ask for a retry: there is none.
    const isFailure = error !== undefined;
    events.emit('node_run', {
      scheduleId: id,
      scheduledFor: at,
      outcome: isFailure ? 'failed' : outcome,
      ...(isFailure ? { error } : {}),
    });
    if (isFailure)
      logger.error(
        `${owner}: its run for ${at.toISOString()} (schedule ${showValue(id)}, scope node) failed; the next one comes in its time\n${error}`,
      );
  }
}
