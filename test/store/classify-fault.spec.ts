import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore } from '../support/store.js';
import { classifyFault, toStoreError } from '../../lib/store/postgres/connections/classify-fault.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';

let database: TestDatabase;
let store: PostgresJobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createStore(database.url);
  await store.open();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

const errorOf = (text: string): Promise<unknown> =>
  database.query(text).then(
    () => undefined,
    (error: unknown) => error,
  );

const history = (columns: string, values: string): string =>
  `insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at, claim_seq, executions,
     failures, crashes, ended_at${columns}) values (gen_random_uuid(), 'n', 1, 'l', 1, 'succeeded', now(), now(), 1, 1, 0, 0, ${values})`;

describe('classifyFault', () => {
  it.each([
    [`select 1/0`, 'bad_row'],
    [`select '"\\u0000"'::jsonb`, 'bad_row'],
    [history('', `'1999-01-01'`), 'missing_partition'],
    [
      `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at) values (gen_random_uuid(), 'n', 1, 'l', 9, now(), now())`,
      'bad_row',
    ],
    [`select * from nowhere`, 'fatal'],
    [`begin read only; create table t ()`, 'unavailable'],
    [`set local statement_timeout = 1; select pg_sleep(1)`, 'unavailable'],
    [`do $$ begin raise exception 'x' using errcode = '40001'; end $$`, 'rolled_back'],
    [`do $$ begin raise exception 'x' using errcode = '40P01'; end $$`, 'rolled_back'],
    [`do $$ begin raise exception 'x' using errcode = '53300'; end $$`, 'unavailable'],
    [`do $$ begin raise exception 'x' using errcode = '57P01'; end $$`, 'unknown'],
    [`do $$ begin raise exception 'x' using errcode = '57P03'; end $$`, 'unavailable'],
  ])('of %s is %s', async (text, kind) => {
    const error = await errorOf(text);
    await database.query('rollback').catch(() => undefined);
    expect(classifyFault(error)).toBe(kind);
  });

  it.each([
    [{ code: 'ECONNREFUSED' }, 'unavailable'],
    [{ code: 'ECONNRESET' }, 'unknown'],
    [new Error('Connection terminated unexpectedly'), 'unknown'],
    [new Error('timeout exceeded when trying to connect'), 'unavailable'],
    [new Error('Client has encountered a connection error and is not queryable'), 'unknown'],
    [{ message: 'wrapped', driverError: { code: '40001' } }, 'rolled_back'],
    [new TypeError('x is not a function'), 'fatal'],
    [null, 'fatal'],
    ['text', 'fatal'],
  ])('of %j is %s', (error, kind) => {
    expect(classifyFault(error)).toBe(kind);
  });

  it.each([
    [
      { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' },
      'the database cannot be reached: connect ECON',
    ],
    [new Error('timeout exceeded when trying to connect'), 'the database cannot be reached: timeout'],
    [{ code: 'ECONNRESET', message: 'read ECONNRESET' }, 'the connection to the database broke: read'],
    [new Error('Connection terminated unexpectedly'), 'the connection to the database broke: Connection'],
    [
      { code: '28000', message: 'role "x" is not permitted to log in' },
      'the database refused the connection: role',
    ],
    [{ code: '57P03', message: 'starting up' }, 'the database refused the connection: starting up (57P03)'],
    [{ code: '42501', message: 'no' }, 'the database refused a statement: no (42501); grant the role'],
    [
      { code: '3D000', message: 'no' },
      'the database refused the connection: no (3D000); create the database',
    ],
    [
      { code: '28P01', message: 'no' },
      "the database refused the connection: no (28P01); check the role's login",
    ],
    [{ code: '55P03', message: 'lock timeout' }, 'the database refused a statement: lock timeout (55P03)'],
  ])('%j is told as: %s', (error, told) => {
    expect(toStoreError(error).message).toContain(`STORE_FAULT: ${told}`);
  });

  it('keeps a StoreError as it is', () => {
    const first = toStoreError({ code: '40001', message: 'm' });
    expect(toStoreError(first)).toBe(first);
    expect(first).toMatchObject({ kind: 'rolled_back', sourceCode: '40001', retryable: true });
  });
});
