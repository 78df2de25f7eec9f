import { type Client } from 'pg';
import pg from 'pg';
import { type CoordinatorHealth } from '../../../lib/cluster/cluster-coordinator.js';
import {
  PostgresCoordinator,
  type PostgresCoordinatorOptions,
} from '../../../lib/cluster/coordinators/postgres-coordinator.js';
import { type PostgresJobStore } from '../../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { createFlakyNetwork, type FlakyNetwork } from '../../support/flaky-network.js';
import { createStore, registerTestNode } from '../../support/store.js';

/** So that a test need not wait for what takes seconds in earnest. */
export const QUICK = { probeEveryMs: 100, replyMs: 300, firstRetryMs: 20, lastRetryMs: 100 };

/** Sessions that listen, or tried to last. */
export const LISTENERS = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
                      and (query ilike '%; listen "ratchet:%' or query ilike '%pg_listening_channels()%')`;

/** A coordinator as a process of its own would have one, with what a test needs to know of it. */
export interface TestCoordinator {
  readonly coordinator: PostgresCoordinator;
  readonly store: PostgresJobStore;
  /** The clients that listened, the newest last. */
  readonly clients: Client[];
  readonly healths: CoordinatorHealth[];
  /** Resolves when so many clients have been made. */
  attempts(count: number): Promise<void>;
  /** The next change to that state. */
  next(state: CoordinatorHealth['state']): Promise<CoordinatorHealth>;
}

/** A database, reached over a network that a test can cut, with a node in its registry beside those of the test. */
export class PostgresFixture {
  readonly #stores: PostgresJobStore[] = [];
  readonly #coordinators: PostgresCoordinator[] = [];
  #count = 0;

  private constructor(
    readonly database: TestDatabase,
    readonly network: FlakyNetwork,
  ) {}

  static async create(): Promise<PostgresFixture> {
    const database = await createTestDatabase();
    const fixture = new PostgresFixture(database, await createFlakyNetwork(database.url));
    const store = fixture.store();
    await store.open();
    await registerTestNode(store, 'somebody-else');
    return fixture;
  }

  store(schema = 'ratchet'): PostgresJobStore {
    const store = createStore(this.network.url, { schema });
    this.#stores.push(store);
    return store;
  }

  make(options: Partial<PostgresCoordinatorOptions> = {}): TestCoordinator {
    const store = options.store ?? this.store();
    const clients: Client[] = [];
    const healths: CoordinatorHealth[] = [];
    let onAttempt = (): void => {};
    const waiting = new Set<(health: CoordinatorHealth) => void>();
    this.#count += 1;
    const coordinator = new PostgresCoordinator({
      store,
      nodeId: `node-${this.#count}`,
      worker: true,
      timing: QUICK,
      createClient: (config) => {
        const client = new pg.Client(config);
        clients.push(client);
        onAttempt();
        return client;
      },
      onHealth: (health) => {
        healths.push(health);
        for (const hear of [...waiting]) hear(health);
      },
      ...options,
    });
    this.#coordinators.push(coordinator);
    return {
      coordinator,
      store,
      clients,
      healths,
      attempts: (count) =>
        new Promise((resolve) => {
          onAttempt = () => {
            if (clients.length >= count) resolve();
          };
          onAttempt();
        }),
      next: (state) =>
        new Promise((resolve) => {
          const hear = (health: CoordinatorHealth): void => {
            if (health.state !== state) return;
            waiting.delete(hear);
            resolve(health);
          };
          waiting.add(hear);
        }),
    };
  }

  /** One that listens already. */
  async listening(options: Partial<PostgresCoordinatorOptions> = {}): Promise<TestCoordinator> {
    const made = this.make(options);
    const up = made.next('connected');
    made.coordinator.registerWakeupListener(() => undefined);
    await up;
    return made;
  }

  async closeCoordinators(): Promise<void> {
    await Promise.all(this.#coordinators.splice(0).map((coordinator) => coordinator.close()));
  }

  async close(): Promise<void> {
    this.network.restore();
    await this.closeCoordinators();
    await Promise.all(this.#stores.map((store) => store.close()));
    await this.network.close();
    await this.database.drop();
  }
}

/** Resolves with the first message that a registration hears and `accept` accepts. */
export function heard<Message>(
  register: (listener: (message: Message) => void) => () => void,
  accept: (message: Message) => boolean = () => true,
): Promise<Message> {
  return new Promise((resolve) => {
    const off = register((message) => {
      if (!accept(message)) return;
      off();
      resolve(message);
    });
  });
}
