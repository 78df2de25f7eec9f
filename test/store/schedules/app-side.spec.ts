import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { uuidv7 } from 'uuidv7';
import { DataSourceSqlClient } from '../../../lib/store/postgres/connections/data-source-sql-client.js';
import { PostgresScheduleStore } from '../../../lib/store/postgres/postgres-schedule-store.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { createStore } from '../../support/store.js';
import { specOf } from './schedule-fixture.js';

/** A process that runs no jobs has the application's connections alone, with whatever the application has made of them. */
describe('schedules in a process without an engine', () => {
  let database: TestDatabase;
  let source: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase();
    source = await new DataSource({
      type: 'postgres',
      url: database.url,
      poolSize: 2,
      extra: {
        options:
          '-c default_transaction_isolation=serializable -c datestyle=German -c timezone=Asia/Kathmandu',
      },
    }).initialize();
  });
  afterAll(async () => {
    await source.destroy();
    await database.drop();
  });

  it('are written, found, triggered, paused and deleted, whatever the type parsers are', async () => {
    const { INT8, INT4, BOOL, JSONB, JSON: json, TIMESTAMPTZ, FLOAT8, NUMERIC } = pg.types.builtins;
    const changed = [INT8, INT4, BOOL, JSONB, json, TIMESTAMPTZ, FLOAT8, NUMERIC];
    const before = changed.map(
      (oid) => [oid, pg.types.getTypeParser(oid) as (text: string) => unknown] as const,
    );
    for (const oid of changed) pg.types.setTypeParser(oid, () => 'parsed by the application');
    const store = createStore(database.url, {
      client: new DataSourceSqlClient(source),
      engine: () => Promise.reject(new Error('there is no engine here')),
    });
    const schedules = new PostgresScheduleStore(store);
    try {
      await store.open();
      const now = await schedules.now();
      const nextAt = new Date(now.getTime() + 3_600_000);
      const write = {
        spec: specOf('a', { overlap: 'queue', businessKey: 'key' }),
        revision: undefined,
        anchor: now,
        nextAt,
      };
      expect(await schedules.write([write])).toEqual(['written']);
      expect(await schedules.write([{ ...write, spec: specOf('b', { businessKey: 'key' }) }])).toEqual([
        { heldBy: 'a' },
      ]);

      const jobId = uuidv7();
      const first = await schedules.trigger({ id: 'a', jobId, ifBusy: undefined, payload: '{"n":1}' });
      expect(first).toMatchObject({
        outcome: 'enqueued',
        job: { jobId, priority: 2, dueInMs: 0, missed: 0 },
      });
      const second = await schedules.trigger({ id: 'a', jobId: uuidv7(), ifBusy: undefined });
      expect(second).toMatchObject({ outcome: 'waiting', at: expect.any(Date) });
      expect(await schedules.occurrences({ scheduleId: 'a', limit: 2 })).toMatchObject([
        { outcome: 'waiting', count: 1, triggered: true },
        { outcome: 'enqueued', count: 1, triggered: true, jobId, jobStatus: 'pending' },
      ]);

      const [row] = await schedules.list({ limit: 5, businessKey: 'key' });
      expect(row).toMatchObject({
        id: 'a',
        nextAt,
        liveJobs: 1,
        waiting: 1,
        served: false,
        enabled: true,
        paused: false,
      });
      const { now: told, schedules: found } = await schedules.byIds(['a', 'none']);
      expect(found).toEqual([row]);
      expect(Math.abs(told.getTime() - now.getTime())).toBeLessThan(60_000);
      expect(await schedules.mark('a', row!.revision, { kind: 'paused' })).toBe(true);
      expect(await schedules.delete(['a'])).toEqual([{ id: 'a', canceled: [jobId] }]);
      expect((await store.get(jobId))?.status).toBe('canceled');
    } finally {
      for (const [oid, parser] of before) pg.types.setTypeParser(oid, parser);
      await store.close();
    }
  });

  it('are given to one of many who trigger, also where transactions are serializable', async () => {
    const store = createStore(database.url, { client: new DataSourceSqlClient(source) });
    const schedules = new PostgresScheduleStore(store);
    await schedules.write([
      { spec: specOf('c'), revision: undefined, anchor: new Date(), nextAt: undefined },
    ]);
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, () => schedules.trigger({ id: 'c', jobId: uuidv7(), ifBusy: 'skip' })),
    );
    expect(outcomes.filter((each) => each?.outcome === 'enqueued')).toHaveLength(1);
    await store.close();
  });
});
