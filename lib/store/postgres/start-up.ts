import { Logger } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { describeError } from '../../errors/describe-error.js';
import { DatabaseUnavailableError, StoreClosedError } from '../../errors/store-errors.js';
import { faultKindOf } from '../store-fault.js';
import { type Migrator } from './migrations/migrator.js';

export interface StartUpOptions {
  /** The database is away at start: wait for it, or fail at once. */
  readonly onDatabaseDown: 'wait' | 'fail';
  readonly timeoutMs: number;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;

/** The first contact with the database: migrates, and waits for a database that is still starting. */
export class StartUp {
  static readonly #logger = new Logger('RatchetStore');
  readonly #stopped = new AbortController();

  constructor(
    private readonly migrator: Migrator,
    private readonly options: StartUpOptions,
  ) {}

  stop(): void {
    this.#stopped.abort();
  }

  async run(): Promise<void> {
    const startedAt = performance.now();
    for (let attempt = 0; ; attempt += 1) {
      if (this.#stopped.signal.aborted) throw new StoreClosedError();
      try {
        await this.migrator.migrate();
        return;
      } catch (error) {
        const passing = ['unavailable', 'unknown', 'rolled_back'].includes(faultKindOf(error));
        const waited = performance.now() - startedAt;
        if (!passing) throw error;
        const { message } = describeError(error);
        if (this.options.onDatabaseDown === 'fail' || waited >= this.options.timeoutMs) {
          throw new DatabaseUnavailableError(waited, message, { cause: error });
        }
        if (attempt === 0) StartUp.#logger.warn(`The database is not there yet, waiting for it: ${message}`);
        const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
        await pause(wait, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
      }
    }
  }
}
