import { describe, expect, it } from '@jest/globals';
import { Maintenance } from '../../lib/maintenance/maintenance.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { type JobStore, type RetentionReport, type RetentionRequest } from '../../lib/store/job-store.js';
import { type LockStore } from '../../lib/store/lock-store.js';
import { FakeClock } from '../support/fake-clock.js';

const RETENTION: RetentionRequest = {
  historyMs: 86_400_000,
  historyBytes: 5_000_000,
  executionMs: 86_400_000,
  deadLetterMs: 86_400_000,
};
const NOTHING: RetentionReport = {
  partitionsDropped: [],
  droppedForSize: [],
  deadLettersDeleted: 0,
  payloadsDeleted: 0,
  idempotencyKeysDeleted: 0,
  refused: [],
};

/** Maintenance over a store of which only the retention answers anything. */
function retaining(...reports: Partial<RetentionReport>[]) {
  const clock = new FakeClock();
  const events = new EngineEvents();
  const lines: string[] = [];
  const requests: RetentionRequest[] = [];
  const store = {
    ensurePartitions: () => Promise.resolve(14),
    unservedLanes: () => Promise.resolve([]),
    rescueOrphans: () => Promise.resolve({ buckets: 0, recovered: 0, failed: 0 }),
    retain(request: RetentionRequest) {
      requests.push(request);
      return Promise.resolve({ ...NOTHING, ...reports.shift() });
    },
  } as unknown as JobStore;
  const locks = {
    tryLock: () => Promise.resolve(true),
    renew: () => Promise.resolve(true),
    release: () => Promise.resolve(),
  } as unknown as LockStore;
  const say =
    (level: string) =>
    (line: string): void =>
      void lines.push(`${level} ${line}`);
  const maintenance = new Maintenance({
    node: { id: 'n', epoch: '1' },
    store,
    locks,
    clock,
    events,
    retention: RETENTION,
    maxCrashRedeliveries: 3,
    logger: { log: say('log'), warn: say('warn'), error: say('error') },
    onError: () => undefined,
  });
  const round = (): Promise<void> =>
    new Promise((resolve) => {
      const off = events.on('maintenance', ({ task }) => {
        if (task !== 'ratchet:retention') return;
        off();
        resolve();
      });
    });
  return { clock, lines, requests, maintenance, round };
}

describe('the rounds of retention', () => {
  it('come at start and every hour, with all bounds', async () => {
    const { clock, requests, maintenance, round } = retaining();
    const first = round();
    maintenance.start();
    await first;
    expect(requests).toEqual([RETENTION]);
    // The timer of the next round is set when this one has ended.
    await new Promise((resolve) => setImmediate(resolve));
    const second = round();
    clock.advance(3_600_000);
    await second;
    expect(requests).toHaveLength(2);
    await maintenance.stop();
  });

  it('say what went before its time, and what the role may not do only once', async () => {
    const sql = 'alter table …;';
    const { clock, lines, maintenance, round } = retaining(
      {
        partitionsDropped: ['job_history_20260101'],
        droppedForSize: ['job_history_20260101'],
        refused: [sql],
      },
      { refused: [sql] },
    );
    const first = round();
    maintenance.start();
    await first;
    await new Promise((resolve) => setImmediate(resolve));
    const second = round();
    clock.advance(3_600_000);
    await second;
    await maintenance.stop();
    expect(lines).toEqual([
      'log retention: 1 partitions dropped, 0 dead letters and 0 payloads deleted',
      'warn retention: history was larger than retention.historyBytes (5000000): job_history_20260101 went before the time',
      `warn retention needs the owner of the schema; let it run:\n${sql}`,
    ]);
  });
});
