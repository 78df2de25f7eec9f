import pg from 'pg';
import { describeError } from '../../errors/describe-error.js';
import { destroySocket, guarded } from '../../store/postgres/connections/sockets.js';
import { plainTypes } from '../../store/postgres/connections/plain-types.js';
import { LISTENING_TEXT, listenText } from '../../store/postgres/statements/listen.js';
import { type Clock } from '../clock.js';
import { within } from '../within.js';

/** Milliseconds. */
export interface ListenTiming {
  /** From one question whether the session still listens to the next. */
  readonly probeEveryMs: number;
  /** The longest wait for an answer, or for a connection. */
  readonly replyMs: number;
  readonly firstRetryMs: number;
  readonly lastRetryMs: number;
}

/** A connection that falls silent is noticed within 25 seconds. */
export const LISTEN_TIMING: ListenTiming = {
  probeEveryMs: 15_000,
  replyMs: 10_000,
  firstRetryMs: 200,
  lastRetryMs: 10_000,
};

export interface ListenConnectionParts {
  /** Settings for one connect; asked anew each time. */
  readonly config: () => Promise<pg.ClientConfig>;
  readonly applicationName: string;
  readonly channel: string;
  readonly clock: Clock;
  readonly timing: ListenTiming;
  readonly onPayload: (payload: string) => void;
  /** The session listens from now on. */
  readonly onUp: () => void;
  /** It does not, or could not; it is tried again. */
  readonly onDown: (reason: string) => void;
  /** Makes a client that is not connected. @defaultValue one of `pg` */
  readonly createClient?: ((config: pg.ClientConfig) => pg.Client) | undefined;
}

const CLOSE_MS = 500;

/**
 * A connection that does nothing but listen. A socket that has died without a word hears nothing, which looks like peace: so it
 * asks the server at intervals whether this session listens, and at any doubt the socket is destroyed and a new one opened.
 * One attempt follows the other until {@link ListenConnection.close}; none of them throws.
 */
export class ListenConnection {
  readonly #parts: ListenConnectionParts;
  #client: pg.Client | undefined;
  #running: Promise<void> | undefined;
  #closed = false;
  #endPause: () => void = () => {};

  constructor(parts: ListenConnectionParts) {
    this.#parts = parts;
  }

  /** Idempotent. */
  start(): void {
    if (!this.#closed) this.#running ??= this.#run();
  }

  /** Idempotent and bounded. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#endPause();
    const client = this.#client;
    const { clock } = this.#parts;
    if (client) await within(clock, CLOSE_MS, client.end());
    destroySocket(client);
    await within(clock, CLOSE_MS, this.#running ?? Promise.resolve());
  }

  async #run(): Promise<void> {
    const { clock, timing, onDown } = this.#parts;
    let failures = 0;
    while (!this.#closed) {
      const beganMs = clock.monotonicMs();
      const reason = await this.#listen();
      if (reason === undefined) return;
      onDown(reason);
      // One that lasted was a good one: what ended it may be over.
      failures = clock.monotonicMs() - beganMs > timing.probeEveryMs ? 0 : failures + 1;
      await this.#pause(this.#backoffMs(failures));
    }
  }

  /** Listens for as long as that goes well. Returns why it does not any more; undefined at the close. */
  async #listen(): Promise<string | undefined> {
    let client: pg.Client | undefined;
    try {
      const lost = new Loss();
      client = await this.#open(lost);
      this.#parts.onUp();
      for (;;) {
        await this.#pause(this.#parts.timing.probeEveryMs, lost);
        if (this.#closed) return undefined;
        if (lost.reason !== undefined) return lost.reason;
        if (!(await this.#listens(client))) return 'the session does not listen any more';
      }
    } catch (error) {
      return this.#closed ? undefined : reasonOf(error);
    } finally {
      if (!this.#closed) destroySocket(client);
      this.#client = undefined;
    }
  }

  async #open(lost: Loss): Promise<pg.Client> {
    const { applicationName, channel, createClient, onPayload, timing } = this.#parts;
    const client = (createClient ?? newClient)({
      ...(await this.#settings()),
      connectionTimeoutMillis: timing.replyMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      types: plainTypes,
      application_name: applicationName.slice(0, 63),
    });
    client.on('error', (error) => lost.tell(reasonOf(error)));
    client.on('end', () => lost.tell('the connection ended'));
    client.on('notification', ({ channel: of, payload }) => {
      if (of === channel) onPayload(payload ?? '');
    });
    if (this.#closed) throw new Error('closed');
    this.#client = client;
    try {
      await guarded(client, timing.replyMs, client.connect());
      await guarded(client, timing.replyMs, client.query(listenText(channel)));
      return client;
    } catch (error) {
      destroySocket(client);
      throw error;
    }
  }

  /** A password function may hang. */
  async #settings(): Promise<pg.ClientConfig> {
    const { config, timing } = this.#parts;
    const told = config();
    const limit = this.#pause(timing.replyMs).then(() => {
      throw new Error(
        `the connection settings (a password function?) did not come within ${timing.replyMs} ms`,
      );
    });
    try {
      return await Promise.race([told, limit]);
    } finally {
      this.#endPause();
    }
  }

  async #listens(client: pg.Client): Promise<boolean> {
    const { channel, timing } = this.#parts;
    const asked = client.query<{ listening: boolean }>(LISTENING_TEXT, [channel]);
    const { rows } = await guarded(client, timing.replyMs, asked);
    return rows[0]?.listening === true;
  }

  /** Ends early when the connection is lost, or at the close. Keeps no process alive. */
  #pause(ms: number, lost?: Loss): Promise<void> {
    if (this.#closed || lost?.reason !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.timer(ms, resolve, true);
      this.#endPause = () => {
        cancel();
        resolve();
      };
      if (lost) lost.onLoss = this.#endPause;
    });
  }

  #backoffMs(failures: number): number {
    const { firstRetryMs, lastRetryMs } = this.#parts.timing;
    return Math.min(lastRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)) * (0.5 + Math.random() / 2);
  }
}

/** What ended a connection: the first word of it counts. */
class Loss {
  reason: string | undefined;
  onLoss: () => void = () => {};

  tell(reason: string): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.onLoss();
  }
}

function reasonOf(error: unknown): string {
  const { message, code } = describeError(error);
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}

function newClient(config: pg.ClientConfig): pg.Client {
  return new pg.Client(config);
}
