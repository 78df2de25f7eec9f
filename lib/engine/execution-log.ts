import { type LoggerService } from '@nestjs/common';
import { type ClaimedJob } from '../store/job-store.js';

/** The engine's lines about one execution. Never throws: a logger that fails must not cost a job its outcome. */
export class ExecutionLog {
  constructor(
    private readonly logger: Pick<LoggerService, 'error' | 'warn' | 'debug'>,
    private readonly job: Pick<ClaimedJob, 'id' | 'name'>,
  ) {}

  error(line: string): void {
    try {
      this.logger.error(this.#of(line));
    } catch {
      // See above.
    }
  }

  warn(line: string): void {
    try {
      this.logger.warn(this.#of(line));
    } catch {
      // See above.
    }
  }

  debug(line: string): void {
    try {
      this.logger.debug?.(this.#of(line));
    } catch {
      // See above.
    }
  }

  #of(line: string): string {
    return `${this.job.name} (${this.job.id}): ${line}`;
  }
}
