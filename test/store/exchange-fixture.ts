import pg from 'pg';
import { decodeExchange } from '../../lib/store/postgres/statements/exchange/answer.js';
import {
  type ExchangeStatement,
  exchangeStatement,
} from '../../lib/store/postgres/statements/exchange/exchange.js';
import { exchangeParameters } from '../../lib/store/postgres/statements/exchange/parameters.js';
import { shapeOf } from '../../lib/store/postgres/statements/exchange/shape.js';
import { MIGRATIONS } from '../../lib/store/postgres/migrations/index.js';
import { type BucketRef, type ExchangeAnswer, type ExchangeRequest } from '../../lib/store/job-store.js';
import { PLAN_SETTINGS } from '../../lib/store/postgres/plan-settings.js';
import { type TestDatabase } from '../support/database.js';

export const SCHEMA = '"ratchet"';

/** The schema alone: these tests are about one statement. */
export async function createSchema(database: TestDatabase): Promise<void> {
  await database.query('create schema ratchet');
  for (const { sql } of MIGRATIONS) await database.query(sql.replaceAll('$schema$', SCHEMA));
}

export async function openBucket(database: TestDatabase, id: string, lane = 'default'): Promise<BucketRef> {
  await database.query(
    `insert into ratchet.bucket (id, node_id, node_epoch, lane, status) values ($1, 'node-a', 1, $2, 'active')`,
    [id, lane],
  );
  return { id, epoch: 1, lane, node: { id: 'node-a', epoch: '1' } };
}

/** A connection as the engine opens it: plans pinned. */
export async function engineClient(database: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: database.url,
    options: Object.entries(PLAN_SETTINGS)
      .map(([key, value]) => `-c ${key}=${value}`)
      .join(' '),
  });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** The statement of a turn, with its values. */
export function exchangeCall(request: ExchangeRequest): ExchangeStatement & { readonly values: unknown[] } {
  const statement = exchangeStatement(SCHEMA, shapeOf(request));
  return { ...statement, values: exchangeParameters(request, 0, statement) };
}

export type Turn = (bucket: BucketRef, request?: Partial<ExchangeRequest>) => Promise<ExchangeAnswer>;

/** Turns on a connection. */
export function turnsOn(client: pg.Client): Turn {
  return async (bucket, request = {}) => {
    const whole: ExchangeRequest = {
      bucket,
      settle: [],
      progress: [],
      want: 0,
      handlers: [{ name: 'job', version: 1 }],
      floors: {},
      wait: false,
      suspect: true,
      priorityBoostMs: 900_000,
      ...request,
    };
    const { name, text, values } = exchangeCall(whole);
    const { rows } = await client.query<object>({ name, text, values });
    return decodeExchange(whole, rows);
  };
}

export interface Row {
  id: string;
  name?: string;
  version?: number;
  lane?: string;
  priority?: number;
  /** Seconds. */
  overdue?: number;
}

/** Inserts pending jobs. */
export async function insertJobs(database: TestDatabase, rows: readonly Row[]): Promise<void> {
  await database.query(
    `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload)
     select r.id, coalesce(r.name, 'job'), coalesce(r.version, 1), coalesce(r.lane, 'default'), coalesce(r.priority, 2),
            now() - coalesce(r.overdue, 1) * interval '1 second', now(), '{"n": 1}'
       from jsonb_to_recordset($1::jsonb)
         as r (id uuid, name text, version int, lane text, priority int, overdue float8)`,
    [JSON.stringify(rows)],
  );
}

export const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
