import pg from 'pg';
import { StoreClosedError } from '../../../errors/store-errors.js';
import { toStoreError } from './classify-fault.js';
import { plainTypes } from './plain-types.js';
import { destroySocket, guarded, within } from './sockets.js';

/** A retirement that waits behind a reader for longer is finished by the next round. */
const PATIENCE_MS = 5 * 60_000;
const CLOSE_TIMEOUT_MS = 2_000;

export interface PatientClientLimits {
  /** For everything until the first statement. @defaultValue `15_000` */
  readonly connectMs?: number;
  /** For the reply to one statement: longer than the server lets it run. @defaultValue `330_000` */
  readonly replyMs?: number;
}

/**
 * A short-lived connection for what must not run under the engine's lock timeout: `DETACH … CONCURRENTLY` waits for
 * every reader. It waits for the server only, and no longer than its limits: one that has gone silent ends the work.
 * `abandon` cuts it off for good.
 */
export class PatientClient {
  readonly #config: () => Promise<pg.ClientConfig>;
  readonly #connectMs: number;
  readonly #replyMs: number;
  #client: pg.Client | undefined;
  #abandoned = false;

  constructor(config: () => Promise<pg.ClientConfig>, limits: PatientClientLimits = {}) {
    this.#config = config;
    this.#connectMs = limits.connectMs ?? 15_000;
    this.#replyMs = limits.replyMs ?? PATIENCE_MS + 30_000;
  }

  /** Runs `work` with a function that sends one statement, outside any transaction. */
  async use(work: (send: (text: string) => Promise<void>) => Promise<void>): Promise<void> {
    const client = new pg.Client({
      ...(await this.#config()),
      types: plainTypes,
      application_name: 'ratchet/retention',
      keepAlive: true,
    });
    client.on('error', () => undefined);
    if (this.#abandoned) throw new StoreClosedError();
    this.#client = client;
    try {
      await guarded(client, this.#connectMs, this.#open(client));
      await work(async (text) => {
        await guarded(client, this.#replyMs, client.query(text)).catch((error: unknown) => {
          throw toStoreError(error);
        });
      });
    } finally {
      this.#client = undefined;
      const ended = await within(CLOSE_TIMEOUT_MS, client.end());
      if (!ended) destroySocket(client);
    }
  }

  abandon(): void {
    this.#abandoned = true;
    destroySocket(this.#client);
  }

  async #open(client: pg.Client): Promise<void> {
    try {
      await client.connect();
      await client.query('set lock_timeout = 0');
      await client.query(`set statement_timeout = ${String(PATIENCE_MS)}`);
    } catch (error) {
      throw toStoreError(error);
    }
  }
}
