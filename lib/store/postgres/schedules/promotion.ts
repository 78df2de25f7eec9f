import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { describeError } from '../../../errors/describe-error.js';
import { showValue } from '../../../errors/show-value.js';
import { type FiredJob } from '../../schedule-store.js';
import { faultKindOf } from '../../store-fault.js';
import { type PostgresSession } from '../postgres-session.js';
import { retriedRollback } from '../retried-rollback.js';
import { markParameters, markSchedule } from '../statements/schedules/mark.js';
import { decodeFiredJob } from '../statements/schedules/occurrence-answer.js';
import { promote, selectPromotable } from '../statements/schedules/promote.js';

/** Waits in milliseconds for whoever holds a schedule: a firing, which is over in some ten. What is still held then is for the next call. */
const WAITS_MS = [20, 80, 200];
/** More lines at once would be noise: the list of schedules shows all. */
const MOST_LINES = 5;

/**
 * Occurrences that waited become jobs. A schedule of which none can become one, because the database refuses the job, is marked as
 * broken: nobody else would hear of it, and it would be tried for ever.
 */
export class Promotion {
  static readonly #logger = new Logger('RatchetStore');

  constructor(private readonly session: PostgresSession) {}

  async promote(limit: number): Promise<readonly FiredJob[]> {
    const jobs: FiredJob[] = [];
    for (let attempt = 0; ; attempt += 1) {
      const { promoted, held } = await this.#send(limit - jobs.length, null);
      jobs.push(...promoted);
      const waitMs = WAITS_MS[attempt];
      if (!held || waitMs === undefined || jobs.length >= limit) return jobs;
      await pause(waitMs);
    }
  }

  async #send(
    limit: number,
    only: readonly string[] | null,
  ): Promise<{ readonly promoted: readonly FiredJob[]; readonly held: boolean }> {
    const { session } = this;
    try {
      const rows = await retriedRollback(() => session.service(promote, [session.offsetMs, limit, only]));
      return {
        promoted: rows.filter((row) => row['tag'] === 'job').map(decodeFiredJob),
        held: rows.some((row) => row['tag'] === 'held'),
      };
    } catch (error) {
      if (faultKindOf(error) !== 'bad_row' || only) throw error;
      return { promoted: await this.#oneByOne(limit), held: false };
    }
  }

  async #oneByOne(limit: number): Promise<FiredJob[]> {
    const { session } = this;
    const jobs: FiredJob[] = [];
    let broken = 0;
    for (const row of await session.service(selectPromotable, [limit])) {
      const id = row['id'] as string;
      try {
        jobs.push(...(await this.#send(1, [id])).promoted);
      } catch (error) {
        if (faultKindOf(error) !== 'bad_row') return jobs;
        const fault = `a waiting occurrence cannot become a job: ${describeError(error).message}`;
        const mark = { kind: 'broken', fault } as const;
        const marked = await session.service(
          markSchedule,
          markParameters(id, row['revision'] as string, mark, session.offsetMs),
        );
        if (marked.length > 0 && (broken += 1) <= MOST_LINES) Promotion.#tell(id, fault);
      }
    }
    return jobs;
  }

  static #tell(id: string, fault: string): void {
    try {
      Promotion.#logger.error(
        `the recurring schedule ${showValue(id)} is broken, and does not run until it is changed (or its node starts again): ${fault}`,
      );
    } catch {
      // A logger that fails must not undo what is done.
    }
  }
}
