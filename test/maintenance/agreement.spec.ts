import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Maintenance } from '../../lib/maintenance/maintenance.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { PostgresBucketStore } from '../../lib/store/postgres/postgres-bucket-store.js';
import { PostgresLockStore } from '../../lib/store/postgres/postgres-lock-store.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { FakeClock } from '../support/fake-clock.js';
import { createStore } from '../support/store.js';

describe('the sweep of every minute', () => {
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

  it('puts right which priorities are switched off, when a node came or went unnoticed', async () => {
    const row = { host: 'test', pid: 1, version: '0', handlers: [] };
    const node = await store.registerNode({ ...row, id: 'a', lanes: ['mail'], disabled: { mail: [0] } });
    await database.query(`update ratchet.lane set disabled = '{3}' where name = 'mail'`);
    await database.query(`insert into ratchet.lane (name, disabled) values ('gone', '{1}')`);
    const events = new EngineEvents();
    const errors: unknown[] = [];
    const maintenance = new Maintenance({
      node,
      store,
      locks: new PostgresLockStore(store),
      clock: new FakeClock(),
      events,
      buckets: new PostgresBucketStore(store),
      retention: { historyMs: 1e9, executionMs: 1e9, deadLetterMs: 1e9 },
      maxCrashRedeliveries: 3,
      logger: { log: () => undefined, warn: () => undefined, error: () => undefined },
      onError: (_task, error) => errors.push(error),
    });
    const swept = events.next('maintenance', ({ task }) => task === 'ratchet:sweeps');
    maintenance.start();
    expect(await swept).toMatchObject({ outcome: 'done' });
    await maintenance.stop();
    expect(errors).toEqual([]);
    expect(await database.query('select name, disabled from ratchet.lane order by name')).toEqual([
      { name: 'gone', disabled: [] },
      { name: 'mail', disabled: [0] },
    ]);
  });
});
