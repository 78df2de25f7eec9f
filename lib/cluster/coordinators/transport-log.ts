import { Logger } from '@nestjs/common';

const LEAST_MS = 1_000;

/** Lines about a transport, each kind at most once a second, whatever happens to it. A logger that throws stops nothing. */
export class TransportLog {
  readonly #logger = new Logger('RatchetCoordinator');
  readonly #saidAtMs = new Map<string, number>();

  log(kind: string, line: string): void {
    this.#say(kind, () => this.#logger.log(line));
  }

  warn(kind: string, line: string): void {
    this.#say(kind, () => this.#logger.warn(line));
  }

  #say(kind: string, write: () => void): void {
    const nowMs = performance.now();
    if (nowMs - (this.#saidAtMs.get(kind) ?? -Infinity) < LEAST_MS) return;
    this.#saidAtMs.set(kind, nowMs);
    try {
      write();
    } catch {
      // The transport goes on without being told about.
    }
  }
}
