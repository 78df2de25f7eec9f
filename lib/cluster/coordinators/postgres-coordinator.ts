import { type Client, type ClientConfig } from 'pg';
import { type PostgresJobStore } from '../../store/postgres/postgres-job-store.js';
import { type PostgresSession } from '../../store/postgres/postgres-session.js';
import { channelOf, notifyOthers, PAYLOAD_BYTES } from '../../store/postgres/statements/listen.js';
import { SystemClock } from '../clock.js';
import { type CoordinatorHealth } from '../cluster-coordinator.js';
import { BroadcastCoordinator } from './broadcast-coordinator.js';
import { TransportLog } from './transport-log.js';
import { LISTEN_TIMING, ListenConnection, type ListenTiming } from './listen-connection.js';

export interface PostgresCoordinatorOptions {
  readonly store: PostgresJobStore;
  /** Others are told only where there is a node beside this one. */
  readonly nodeId: string;
  /** A process without a worker tells, but never listens. */
  readonly worker: boolean;
  /** Called when the state changes. */
  readonly onHealth?: (health: CoordinatorHealth) => void;
  readonly timing?: Partial<ListenTiming>;
  readonly createClient?: (config: ClientConfig) => Client;
}

/**
 * `LISTEN` and `NOTIFY`: no service beside the database. Listens on a connection of its own, opened when the engine begins; tells
 * on the service connection, outside any transaction (a process without a worker: on the application's side). A notification
 * within the writers' transactions would make their commits wait for each other.
 */
export class PostgresCoordinator extends BroadcastCoordinator {
  readonly #log = new TransportLog();
  readonly #session: PostgresSession;
  readonly #options: PostgresCoordinatorOptions;
  readonly #channel: string;
  readonly #connection: ListenConnection;
  #health: CoordinatorHealth;
  #downAtMs = 0;

  constructor(options: PostgresCoordinatorOptions) {
    super({ maxBytes: PAYLOAD_BYTES });
    const { session } = options.store;
    this.#session = session;
    this.#options = options;
    this.#channel = channelOf(session.schemaName);
    this.#health = { state: 'none', detail: 'this process does not listen' };
    this.#connection = new ListenConnection({
      config: session.engineConfig,
      applicationName: `ratchet/${options.nodeId}`,
      channel: this.#channel,
      clock: new SystemClock(),
      timing: { ...LISTEN_TIMING, ...options.timing },
      onPayload: (payload) => this.receive(payload),
      onUp: () => this.#up(),
      onDown: (reason) => this.#down(reason),
      createClient: options.createClient,
    });
  }

  override health(): CoordinatorHealth {
    return this.#health;
  }

  protected override connect(): void {
    if (!this.#options.worker) return;
    this.#turn({ state: 'connecting' });
    this.#connection.start();
  }

  protected override async broadcast(texts: readonly string[]): Promise<void> {
    const parameters = [this.#channel, this.#options.nodeId, texts];
    await (this.#options.worker
      ? this.#session.service(notifyOthers, parameters)
      : this.#session.app(notifyOthers, parameters));
  }

  protected override async disconnect(): Promise<void> {
    await this.#connection.close();
    this.#turn({ state: 'none', detail: 'closed' });
  }

  #up(): void {
    if (this.#health.state === 'down') {
      const seconds = ((performance.now() - this.#downAtMs) / 1_000).toFixed(1);
      this.#log.log('up', `listening on channel ${this.#channel} again, after ${seconds} s`);
    }
    this.#turn({ state: 'connected' });
    this.caughtUp();
  }

  #down(reason: string): void {
    if (this.#health.state === 'down') {
      this.#health = { ...this.#health, detail: reason };
      return;
    }
    this.#downAtMs = performance.now();
    this.#log.warn(
      'down',
      `not listening on channel ${this.#channel} (${reason}): work of other nodes is found by polling; trying again`,
    );
    this.#turn({ state: 'down', detail: reason });
  }

  #turn(health: CoordinatorHealth): void {
    this.#health = { ...health, since: new Date() };
    try {
      this.#options.onHealth?.(this.#health);
    } catch {
      // Whoever watches must not cost the connection.
    }
  }
}
