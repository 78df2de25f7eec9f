import type pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { PoolSqlClient } from '../../lib/store/postgres/connections/pool-sql-client.js';
import { clientConfigOf } from '../../lib/store/postgres/connections/connection-config.js';
import { INLINE_PAYLOAD_BYTES } from '../../lib/store/postgres/inline-payload.js';
import {
  PostgresJobStore,
  type PostgresJobStoreOptions,
} from '../../lib/store/postgres/postgres-job-store.js';
import {
  type BucketRef,
  type ExchangeRequest,
  type NewJob,
  type NodeRef,
  type StoreTransaction,
} from '../../lib/store/job-store.js';

/** A PostgreSQL job store on a test database, as the module would build one. Not opened. */
export function createStore(url: string, options: Partial<PostgresJobStoreOptions> = {}): PostgresJobStore {
  const engine = clientConfigOf(url);
  return new PostgresJobStore({
    schema: 'ratchet',
    migrations: 'auto',
    engine,
    client: new PoolSqlClient(engine, 4),
    exchangeConnections: 1,
    nodeLabel: 'test',
    startup: { onDatabaseDown: 'fail', timeoutMs: 0 },
    inlinePayloadBytes: INLINE_PAYLOAD_BYTES,
    ...options,
  });
}

let nodes = 0;

export async function registerTestNode(
  store: PostgresJobStore,
  id = `node-${String((nodes += 1))}`,
): Promise<NodeRef> {
  return store.registerNode({ id, host: 'test', pid: 1, version: '0', lanes: [], handlers: [] });
}

export function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    id: uuidv7(),
    name: 'test.job',
    version: 1,
    lane: 'default',
    priority: 2,
    payload: '{}',
    delayMs: 0,
    tags: [],
    ...overrides,
  };
}

export function turn(bucket: BucketRef, overrides: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return {
    bucket,
    settle: [],
    progress: [],
    want: 10,
    handlers: [{ name: 'test.job', version: 1 }],
    floors: {},
    suspect: true,
    wait: false,
    priorityBoostMs: 0,
    ...overrides,
  };
}

/** A transaction that the test itself has begun on a connection of its own. */
export function transactionOf(client: pg.Client): StoreTransaction {
  return {
    async query(text, parameters) {
      return (await client.query<Record<string, unknown>>(text, [...parameters])).rows;
    },
  };
}
