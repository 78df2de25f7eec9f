import { type Clock } from '../cluster/clock.js';
import { type CleanJson, encodeProgress } from '../jobs/payload-codec.js';
import { type ExecutionLog } from './execution-log.js';

/** The shortest time between two reports of one execution. */
const REPORT_EVERY_MS = 1_000;

/** Keeps the last `ctx.progress()` value of one execution, and hands it on at most once a second: the first at once. */
export class ExecutionProgress {
  #last: CleanJson | undefined;
  #cancelTimer: (() => void) | undefined;
  #pending = false;
  #warned = false;
  #stopped = false;
  #kept = false;

  constructor(
    private readonly clock: Clock,
    private readonly report: (value: string) => void,
    private readonly log: ExecutionLog,
  ) {}

  /** The last value as JSON text. */
  get last(): string | undefined {
    return this.#last?.text;
  }

  /** The execution is settled, or its claim is lost: nothing that its body says counts any more. */
  get stopped(): boolean {
    return this.#stopped;
  }

  set(value: unknown): void {
    if (this.#stopped) return;
    // Written now, not when it is reported: the handler may go on changing the object.
    this.#last = encodeProgress(value === undefined ? null : value);
    if (this.#last.replaced !== undefined && !this.#warned) {
      this.#warned = true;
      this.log.warn(`ctx.progress: the value is ${this.#last.replaced} and is not kept`);
    }
    if (this.#kept) return;
    if (this.#cancelTimer) this.#pending = true;
    else this.#hand();
  }

  /**
   * No reports, only the settlement tells the last value. For a transaction whose snapshot stands: another's write to the job's
   * row would make its own last statement fail (40001).
   */
  keep(): void {
    this.#kept = true;
  }

  /** No more reports: the settlement carries the last value, or the claim is no longer ours. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #hand(): void {
    this.#pending = false;
    if (this.#last) this.report(this.#last.text);
    this.#cancelTimer = this.clock.timer(
      REPORT_EVERY_MS,
      () => {
        this.#cancelTimer = undefined;
        if (this.#pending) this.#hand();
      },
      true,
    );
  }
}
