import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InvoiceJobReader, type InvoiceJob } from './invoice-job-reader.js';
import { Terminal } from './terminal.js';

/** Shows the invoice jobs moving, until none is left to run. */
@Injectable()
export class Progress {
  readonly #failuresShown = new Map<string, number>();

  constructor(
    private readonly reader: InvoiceJobReader,
    private readonly terminal: Terminal,
  ) {}

  /** Resolves when every invoice job has ended, or `stop` is aborted. */
  async watch(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const jobs = await this.reader.jobs();
      this.#show(jobs);
      if (jobs.every((job) => hasEnded(job))) break;
      await sleep(200, undefined, { signal: stop }).catch(() => {});
    }
    this.terminal.status('');
  }

  #show(jobs: readonly InvoiceJob[]): void {
    for (const job of jobs) {
      if (job.failures > (this.#failuresShown.get(job.id) ?? 0)) {
        const then = job.status === 'failed' ? 'dead letter' : 'again soon';
        this.terminal.line(
          `  order ${job.orderNumber}, failure ${job.failures}: ${firstLine(job.error)} (${then})`,
        );
      }
      this.#failuresShown.set(job.id, job.failures);
    }
    const count = (status: InvoiceJob['status']): number =>
      jobs.filter((job) => job.status === status).length;
    const done = count('succeeded');
    this.terminal.status(
      `  ${bar(done / jobs.length)} ${done} of ${jobs.length} invoices, ${count('running')} running, ${count('failed')} in the dead letter`,
    );
  }
}

function hasEnded(job: InvoiceJob): boolean {
  return job.status === 'succeeded' || job.status === 'failed' || job.status === 'canceled';
}

/** Errors are kept with their stack; here the message is enough. */
function firstLine(error: string | null): string {
  return (error ?? '').split('\n', 1)[0]?.replace(/^(\[\w+\] )?\w*Error: /, '') ?? '';
}

function bar(part: number): string {
  const width = 16;
  const full = Math.floor(part * width);
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}
