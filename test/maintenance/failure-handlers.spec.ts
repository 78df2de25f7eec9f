import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Maintenance } from '../../lib/maintenance/maintenance.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type NodeRef } from '../../lib/store/job-store.js';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeClock } from '../support/fake-clock.js';
import { createStore } from '../support/store.js';

const HOUR_MS = 3_600_000;

describe('failure handlers that no node has any more', () => {
  let database: TestDatabase;
  let store: PostgresJobStore;

  beforeAll(async () => {
    database = await createTestDatabase();
    store = createStore(database.url);
    await store.open();
  });
  afterEach(async () => {
    store.travel(0);
    await database.query('truncate ratchet.node, ratchet.failure_handler, ratchet.lease');
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  function register(id: string, jobs: readonly string[]): Promise<NodeRef> {
    return store.registerNode({
      id,
      host: 'test',
      pid: 1,
      version: '0',
      lanes: [],
      handlers: jobs.map((name) => `${name}#failed`),
      failureHandlers: jobs.map((jobName) => ({ jobName, lane: 'default' })),
    });
  }
  const known = async (): Promise<unknown[]> =>
    (await database.query('select job_name from ratchet.failure_handler order by 1')).map(
      ({ job_name }) => job_name,
    );

  it('are forgotten after a day without a node, and not before', async () => {
    const node = await register('gone', ['a', 'b']);
    await register('stays', ['b']);
    await store.removeNode(node);
    store.travel(23 * HOUR_MS);
    expect(await store.forgetFailureHandlers(24 * HOUR_MS)).toEqual([]);
    store.travel(25 * HOUR_MS);
    expect(await store.forgetFailureHandlers(24 * HOUR_MS)).toEqual(['a']);
    expect(await known()).toEqual(['b']);
  });

  it('the day begins when the last node leaves, however long that one ran', async () => {
    const node = await register('long', ['a']);
    store.travel(72 * HOUR_MS);
    expect(await store.forgetFailureHandlers(24 * HOUR_MS)).toEqual([]);
    await store.removeNode(node);
    store.travel(73 * HOUR_MS);
    expect(await store.forgetFailureHandlers(24 * HOUR_MS)).toEqual([]);
    store.travel(97 * HOUR_MS);
    expect(await store.forgetFailureHandlers(24 * HOUR_MS)).toEqual(['a']);
  });

  it('maintenance does it under a lease, and says which', async () => {
    await store.removeNode(await register('gone', ['invoice.send']));
    const node = await register('other', []);
    store.travel(25 * HOUR_MS);
    const lines: string[] = [];
    const tell = (line: string): void => void lines.push(line);
    const events = new EngineEvents();
    const maintenance = new Maintenance({
      node,
      store,
      locks: new PostgresLockStore(store),
      clock: new FakeClock(),
      events,
      retention: { historyMs: HOUR_MS, executionMs: HOUR_MS, deadLetterMs: HOUR_MS },
      maxCrashRedeliveries: 3,
      logger: { log: () => undefined, warn: tell, error: tell },
      onError: (task, error) => lines.push(`${task}: ${String(error)}`),
    });
    const done = events.next('maintenance', ({ task }) => task === 'ratchet:failure-handlers');
    maintenance.start();
    expect(await done).toMatchObject({ outcome: 'done' });
    await maintenance.stop();
    expect(lines).toEqual([
      expect.stringMatching(/^no node has had an @OnJobFailure handler of "invoice.send"/),
    ]);
    expect(await known()).toEqual([]);
  });
});
