import { type Clock } from '../cluster/clock.js';
import { type AbortKind } from '../errors/execution-errors.js';
import { type ExecutionLog } from './execution-log.js';

/** The part of a timeout after which the handler's owner is warned. */
const SOFT_LIMIT = 0.8;
/** How long an aborted body may take before it is reported; the wait doubles from report to report. */
const IGNORED_FIRST_MS = 5_000;
/** The same for a node that stops. It waits a little longer for such bodies, once; afterwards there is no slot to keep. */
const IGNORED_AT_SHUTDOWN_MS = 400;

/** The one timer of an execution whose body runs: its timeout, and once it was aborted the reports that it goes on all the same. */
export class ExecutionWatch {
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly log: ExecutionLog,
    private readonly owner: string,
  ) {}

  timeout(timeoutMs: number, onTimeout: () => void): void {
    const softMs = Math.floor(timeoutMs * SOFT_LIMIT);
    this.#in(softMs, () => {
      this.log.warn(`${this.owner} has used ${softMs} ms of its timeout of ${timeoutMs} ms`);
      this.#in(timeoutMs - softMs, onTimeout);
    });
  }

  aborted(kind: AbortKind): void {
    if (kind === 'shutdown') this.#reportAtShutdown();
    else this.#reportIfIgnored(kind, IGNORED_FIRST_MS, 0);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #reportAtShutdown(): void {
    this.#in(IGNORED_AT_SHUTDOWN_MS, () =>
      this.log.warn(`${this.owner} goes on although the node stops; let it stop at ctx.signal`),
    );
  }

  #reportIfIgnored(kind: AbortKind, inMs: number, sinceMs: number): void {
    this.#in(inMs, () => {
      const goneMs = sinceMs + inMs;
      this.log.warn(
        `${this.owner} goes on ${Math.round(goneMs / 1_000)} s after its signal was aborted (${kind}) and keeps its slot; ` +
          'let it stop at ctx.signal',
      );
      this.#reportIfIgnored(kind, inMs * 2, goneMs);
    });
  }

  #in(ms: number, then: () => void): void {
    this.#cancel?.();
    this.#cancel = this.clock.timer(ms, then, true);
  }
}
