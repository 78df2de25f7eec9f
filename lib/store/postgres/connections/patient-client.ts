import pg from 'pg';
import { toStoreError } from './classify-fault.js';
import { plainTypes } from './plain-types.js';
import { destroySocket } from './sockets.js';

/** A retirement that waits behind a reader for longer is finished by the next round. */
const PATIENCE = '5min';

/**
 * A short-lived connection for what must not run under the engine's lock timeout: `DETACH … CONCURRENTLY` waits for
 * every reader. `abandon` cuts it off.
 */
export class PatientClient {
  #client: pg.Client | undefined;

  constructor(private readonly config: () => Promise<pg.ClientConfig>) {}

  /** Runs `work` with a function that sends one statement, outside any transaction. */
  async use(work: (send: (text: string) => Promise<void>) => Promise<void>): Promise<void> {
    const client = new pg.Client({
      ...(await this.config()),
      types: plainTypes,
      application_name: 'ratchet/retention',
      keepAlive: true,
    });
    client.on('error', () => undefined);
    this.#client = client;
    try {
      await client.connect();
      await client.query('set lock_timeout = 0');
      await client.query(`set statement_timeout = '${PATIENCE}'`);
      await work(async (text) => {
        await client.query(text).catch((error: unknown) => {
          throw toStoreError(error);
        });
      });
    } catch (error) {
      throw toStoreError(error);
    } finally {
      this.#client = undefined;
      await client.end().catch(() => undefined);
    }
  }

  abandon(): void {
    destroySocket(this.#client);
  }
}
