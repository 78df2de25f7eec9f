import { uuidv7 } from 'uuidv7';
import { type PostgresJobStore } from '../../../lib/store/postgres/postgres-job-store.js';
import { PostgresScheduleStore } from '../../../lib/store/postgres/postgres-schedule-store.js';
import {
  type DueAnswer,
  type Firing,
  type ScheduleRow,
  type ScheduleSpec,
} from '../../../lib/store/schedule-store.js';
import { StoreError, type StoreFaultKind } from '../../../lib/store/store-fault.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { createStore } from '../../support/store.js';

/** Both stores on a database, and the levers that tests of schedules need. */
export class ScheduleFixture {
  #faults: (StoreFaultKind | undefined)[] = [];
  #sent: (() => void) | undefined;

  private constructor(
    readonly database: TestDatabase,
    readonly store: PostgresJobStore,
    readonly schedules: PostgresScheduleStore,
  ) {
    const real = store.session.service.bind(store.session);
    store.session.service = async (...given) => {
      const kind = this.#faults.shift();
      if (kind) throw new StoreError(kind, 'STORE_FAULT: made by a test', 'TEST1');
      const rows = await real(...given);
      this.#sent?.();
      return rows;
    };
  }

  static async open(): Promise<ScheduleFixture> {
    const database = await createTestDatabase();
    const store = createStore(database.url);
    await store.open();
    return new ScheduleFixture(database, store, new PostgresScheduleStore(store));
  }

  /** Statements of the service connection fail in turn, before they are sent; `undefined` is one that does not. */
  failNext(...kinds: (StoreFaultKind | undefined)[]): void {
    this.#faults = kinds;
  }

  /** The next answer on the service connection. */
  sent(): Promise<void> {
    return new Promise((resolve) => (this.#sent = resolve));
  }

  /** Some statement waits for a lock. */
  async blocked(): Promise<void> {
    for (;;) {
      const waiting = await this.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (waiting.length > 0) return;
    }
  }

  query<Row extends object>(text: string, parameters?: unknown[]): Promise<Row[]> {
    return this.database.query<Row>(text, parameters);
  }

  look(): Promise<DueAnswer> {
    return this.schedules.due({ node: { id: 'n', epoch: '1' }, leaseMs: 60_000, limit: 1_000 });
  }

  /** Schedules that are due, by these ids. */
  async written(...ids: string[]): Promise<ScheduleRow[]> {
    const now = await this.schedules.now();
    await this.schedules.write(
      ids.map((id) => ({ spec: specOf(id), revision: undefined, anchor: now, nextAt: now })),
    );
    return Promise.all(ids.map((id) => this.row(id)));
  }

  async row(id: string): Promise<ScheduleRow> {
    return (await this.schedules.byIds([id])).schedules[0]!;
  }

  firing(
    { id, revision, nextAt }: Pick<ScheduleRow, 'id' | 'revision' | 'nextAt'>,
    overrides: Partial<Firing> = {},
  ): Firing {
    return {
      id,
      revision,
      nextAt: nextAt!,
      advanceTo: new Date(nextAt!.getTime() + 60_000),
      runs: [{ at: nextAt!, jobId: uuidv7(), delayMs: 0, missed: 0, ifBusy: 'skip' }],
      missed: [],
      ...overrides,
    };
  }

  async clear(): Promise<void> {
    this.#faults = [];
    this.#sent = undefined;
    this.store.travel(0);
    await this.query(
      'truncate ratchet.schedule, ratchet.occurrence, ratchet.job, ratchet.job_payload, ratchet.lease, ratchet.node',
    );
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.database.drop();
  }
}

export function specOf(id: string, overrides: Partial<ScheduleSpec> = {}): ScheduleSpec {
  return {
    id,
    name: id,
    expression: '* * * * *',
    timeZone: 'UTC',
    origin: 'api',
    owner: undefined,
    template: {
      name: 'test.job',
      version: 1,
      lane: 'default',
      priority: 2,
      payload: '{}',
      maxRetries: 0,
      backoff: undefined,
      timeoutMs: undefined,
      tags: [],
    },
    misfire: 'once',
    overlap: 'skip',
    jitterMs: 0,
    scope: 'cluster',
    enabled: true,
    businessKey: undefined,
    ...overrides,
  };
}
