import { type INestApplicationContext } from '@nestjs/common';
import { type JobPriority, JobScheduler } from 'nestjs-ratchet';
import { BuildReport, SendMail } from './lane.jobs.js';

/** Of ten jobs. */
const MAIL: readonly JobPriority[] = mix({ critical: 1, high: 2, normal: 3, low: 4 });
const REPORTS: readonly JobPriority[] = mix({ critical: 1, high: 1, normal: 2, low: 3, lowest: 3 });
const EVERY_MS = 250;

/** Jobs of both lanes and of all priorities: a backlog, then some more four times a second. */
export class Load {
  readonly #scheduler: JobScheduler;
  #enqueued = 0;
  #feeding: Promise<void> = Promise.resolve();
  #tick: NodeJS.Timeout | undefined;

  constructor(app: INestApplicationContext) {
    this.#scheduler = app.get(JobScheduler);
  }

  /** Jobs so far. */
  get enqueued(): number {
    return this.#enqueued;
  }

  async backlog(): Promise<void> {
    await this.#enqueue(300, 60);
  }

  start(): void {
    this.#tick = setInterval(() => {
      this.#feeding = this.#feeding.then(() => this.#enqueue(30, 7));
    }, EVERY_MS);
  }

  /** Resolves when nothing more is on its way. Rejects when some could not be enqueued. */
  async stop(): Promise<void> {
    clearInterval(this.#tick);
    await this.#feeding;
  }

  /** What comes of mail in a priority that every node has switched off. */
  async refusal(): Promise<string> {
    try {
      await this.#scheduler.enqueue(SendMail, { n: 0 }, { priority: 'lowest' });
      return 'nothing: it was enqueued';
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async #enqueue(mails: number, reports: number): Promise<void> {
    await this.#scheduler.enqueueMany(SendMail, items(mails, MAIL));
    await this.#scheduler.enqueueMany(BuildReport, items(reports, REPORTS));
    this.#enqueued += mails + reports;
  }
}

function mix(parts: Partial<Record<JobPriority, number>>): JobPriority[] {
  return Object.entries(parts).flatMap(([priority, count]) =>
    Array.from({ length: count }, () => priority as JobPriority),
  );
}

function items(
  count: number,
  priorities: readonly JobPriority[],
): { payload: { n: number }; options: { priority: JobPriority } }[] {
  return Array.from({ length: count }, (_, n) => ({
    payload: { n },
    options: { priority: priorities[n % priorities.length] ?? 'normal' },
  }));
}
