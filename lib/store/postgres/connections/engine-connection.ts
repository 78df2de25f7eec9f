import { Logger } from '@nestjs/common';
import pg from 'pg';
import { StoreClosedError } from '../../../errors/store-errors.js';
import { StoreError } from '../../store-fault.js';
import { type Row, type Statement } from '../../sql-client.js';
import { toStoreError } from './classify-fault.js';
import { pinnedOptions, pinnedStatements, STATEMENT_GUARD_MS } from './pinned-settings.js';
import { plainTypes } from './plain-types.js';
import { destroySocket, guarded, within } from './sockets.js';

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2_000;

/** After these the session is of no more use: another server may be the primary now, or its prepared statements are stale. */
const DISCARD_AFTER = new Set(['25006', '26000', '0A000', '25P02']);

export interface EngineConnectionOptions {
  /** Settings for one connect; asked anew each time. */
  readonly config: () => Promise<pg.ClientConfig>;
  readonly applicationName: string;
  /** The longest that one statement may take before the socket counts as dead. @defaultValue `30_000` */
  readonly guardMs?: number;
}

/**
 * One connection of the engine: opened at first use and again after a loss, plan settings pinned, statements one after
 * the other in call order. It never ends the process (an idle loss is only noted) and never answers late: a statement
 * whose reply does not come is rejected as `unknown` and its socket destroyed.
 */
export class EngineConnection {
  static readonly #logger = new Logger('RatchetStore');

  readonly #options: EngineConnectionOptions;
  #client: pg.Client | undefined;
  #connecting: pg.Client | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #closed = false;
  #startUpOptions = true;

  constructor(options: EngineConnectionOptions) {
    this.#options = options;
  }

  /** Statements that run or wait here. */
  get load(): number {
    return this.#waiting;
  }

  /** @throws StoreError with its kind; `unavailable` when no connection could be made, so nothing was sent. */
  query(statement: Statement, parameters: readonly unknown[] = []): Promise<Row[]> {
    this.#waiting += 1;
    const turn = this.#tail.then(() => this.#run(statement, parameters));
    this.#tail = turn.catch(() => undefined).finally(() => (this.#waiting -= 1));
    return turn;
  }

  /** Refuses new statements, waits a moment for the running one, then closes. Idempotent and bounded. */
  async close(): Promise<void> {
    this.#closed = true;
    destroySocket(this.#connecting);
    await within(CLOSE_TIMEOUT_MS, this.#tail);
    const client = this.#client;
    this.#client = undefined;
    if (!client) return;
    const ended = await within(
      CLOSE_TIMEOUT_MS,
      client.end().catch(() => undefined),
    );
    if (!ended) destroySocket(client);
  }

  async #run(statement: Statement, parameters: readonly unknown[]): Promise<Row[]> {
    if (this.#closed) throw new StoreClosedError();
    const client = (this.#client ??= await this.#connect());
    const guardMs = this.#options.guardMs ?? STATEMENT_GUARD_MS;
    try {
      const reply = client.query<Row>({ ...statement, values: [...parameters] });
      return (await guarded(client, guardMs, reply)).rows;
    } catch (error) {
      const fault = toStoreError(error);
      if (fault.kind === 'unknown' || DISCARD_AFTER.has(fault.sourceCode ?? '')) this.#discard(client);
      throw fault;
    }
  }

  async #connect(): Promise<pg.Client> {
    try {
      return await this.#open(this.#startUpOptions);
    } catch (error) {
      if (this.#closed) throw new StoreClosedError();
      const fault = toStoreError(error);
      if (!this.#startUpOptions || !/startup parameter|command.line option|options/i.test(fault.message)) {
        throw fault.kind === 'unknown'
          ? new StoreError('unavailable', fault.message, fault.sourceCode, { cause: error })
          : fault;
      }
      this.#startUpOptions = false;
      EngineConnection.#logger.warn(
        'The server or a pooler in front of it refuses start-up options, so plan settings are SET after each connect: ' +
          'behind a pooler in transaction mode they do not last. Give Ratchet a direct connection.',
      );
      return this.#connect();
    }
  }

  async #open(startUpOptions: boolean): Promise<pg.Client> {
    const config = await this.#options.config();
    const client = new pg.Client({
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      ...config,
      types: plainTypes,
      application_name: this.#options.applicationName.slice(0, 63),
      ...(startUpOptions ? { options: pinnedOptions(config.options) } : {}),
    });
    // Without a listener the loss of an idle connection would end the process; the next statement opens another one.
    client.on('error', () => this.#forget(client));
    client.on('end', () => this.#forget(client));
    this.#connecting = client;
    try {
      await client.connect();
      if (!startUpOptions) await client.query(pinnedStatements());
      return client;
    } catch (error) {
      destroySocket(client);
      throw error;
    } finally {
      this.#connecting = undefined;
    }
  }

  #forget(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
  }

  #discard(client: pg.Client): void {
    this.#forget(client);
    destroySocket(client);
  }
}
