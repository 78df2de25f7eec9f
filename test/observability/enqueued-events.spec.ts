import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type DataSource, type EntityManager } from 'typeorm';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type EnqueueOptions } from '../../lib/jobs/enqueue-options.js';
import { type JobCanceledEvent, type JobEnqueuedEvent } from '../../lib/observability/ratchet-event-map.js';
import { RatchetEvents } from '../../lib/observability/ratchet-events.js';
import { createRatchetDatabase, type RatchetDatabase } from '../intake/ratchet-database.js';
import { TYPEORM_VERSIONS } from '../intake/typeorm-versions.js';

const Note = defineJob<{ n: number }>('note', { priority: 'high', lane: 'notes' });

describe.each(TYPEORM_VERSIONS)('job.enqueued with TypeORM $version', ({ make }) => {
  let app: RatchetDatabase;
  let source: DataSource;
  let enqueued: JobEnqueuedEvent[];
  let canceled: JobCanceledEvent[];

  beforeAll(async () => {
    app = await createRatchetDatabase({ make });
    source = app.source;
    const events = new RatchetEvents(app.events, (_event, error) => {
      throw error;
    });
    events.on('job.enqueued', (event) => enqueued.push(event));
    events.on('job.canceled', (event) => canceled.push(event));
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    await app.database.query('truncate ratchet.job, ratchet.idempotency_key');
    enqueued = [];
    canceled = [];
  });

  const enqueue = async (n: number, options: EnqueueOptions = {}): Promise<string> =>
    (await app.scheduler.enqueue(Note, { n }, options)).id;
  const ids = (): string[] => enqueued.map(({ jobId }) => jobId);

  it('tells each job that was created, when its enqueue resolves', async () => {
    const id = await enqueue(1);
    expect(enqueued).toEqual([{ jobId: id, name: 'note', lane: 'notes', priority: 'high' }]);
    const runAt = new Date('2030-01-01T00:00:00Z');
    const later = await enqueue(2, { runAt });
    const soon = await enqueue(3, { delay: '1h', priority: 'low' });
    expect(enqueued.slice(1)).toEqual([
      { jobId: later, name: 'note', lane: 'notes', priority: 'high', dueAt: runAt },
      { jobId: soon, name: 'note', lane: 'notes', priority: 'low', dueAt: expect.any(Date) },
    ]);
    expect(Math.abs(enqueued[2]!.dueAt!.getTime() - Date.now() - 3_600_000)).toBeLessThan(60_000);
    const many = await app.scheduler.enqueueMany(Note, [{ payload: { n: 4 } }, { payload: { n: 5 } }]);
    expect(ids().slice(3)).toEqual(many.map((handle) => handle.id));
  });

  it('tells nothing of a repeat, a refusal, or the holder of a key', async () => {
    const first = await enqueue(1, { idempotencyKey: 'i', businessKey: 'b' });
    await enqueue(1, { idempotencyKey: 'i' });
    await enqueue(1, { businessKey: 'b', onConflict: 'return' });
    await expect(enqueue(1, { businessKey: 'b' })).rejects.toMatchObject({ code: 'BUSINESS_KEY_HELD' });
    expect(ids()).toEqual([first]);
  });

  it('tells of the job that another took the place of', async () => {
    const first = await enqueue(1, { businessKey: 'b' });
    const second = await enqueue(2, { businessKey: 'b', onConflict: 'replace' });
    expect(ids()).toEqual([first, second]);
    expect(canceled).toEqual([{ jobId: first, running: false }]);
  });

  it('waits for the commit of the caller, and forgets what is rolled back', async () => {
    const committed = await source.transaction(async (tx) => {
      const id = await enqueue(1, { transaction: tx });
      const keyed = await enqueue(2, { transaction: tx, businessKey: 'k' });
      expect(ids()).toEqual([]);
      return [id, keyed];
    });
    expect(ids()).toEqual(committed);
    await expect(
      source.transaction(async (tx) => {
        await enqueue(3, { transaction: tx });
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(ids()).toEqual(committed);
  });

  it('forgets what a savepoint takes back, also within a released one, and keeps the rest', async () => {
    const undone = (work: (tx: EntityManager) => Promise<unknown>, tx: EntityManager): Promise<unknown> =>
      tx
        .transaction(async (inner) => {
          await work(inner);
          throw new Error('taken back');
        })
        .catch(() => undefined);
    const kept: string[] = [];
    await source.transaction(async (tx) => {
      kept.push(await enqueue(1, { transaction: tx }));
      await undone((inner) => enqueue(2, { transaction: inner }), tx);
      await tx.transaction(async (inner) => {
        kept.push(await enqueue(3, { transaction: inner }));
      });
      await undone(async (inner) => {
        await enqueue(4, { transaction: inner });
        await inner.transaction((innermost) => enqueue(5, { transaction: innermost }));
        await enqueue(6, { transaction: inner });
      }, tx);
      kept.push(await enqueue(7, { transaction: tx }));
    });
    expect(ids()).toEqual(kept);
    expect((await app.live()).map(({ id }) => id)).toEqual(kept);
    await source.transaction(async (tx) => void kept.push(await enqueue(8, { transaction: tx })));
    expect(ids()).toEqual(kept);
  });

  it('names the parent of a child', async () => {
    const parent = await enqueue(1);
    await app.database.query(
      `update ratchet.job set status = 1, claim_seq = 1, bucket = gen_random_uuid() where id = $1`,
      [parent],
    );
    const child = await app.children.enqueueChild({ id: parent, claimSeq: '1' }, Note, { n: 2 }, {});
    expect(enqueued.at(-1)).toMatchObject({ jobId: child.id, parentId: parent });
  });

  it('tells a cancel, one by one also of a filter, and nothing when there was nothing to cancel', async () => {
    const [one, two, three] = await Promise.all([enqueue(1), enqueue(2), enqueue(3)]);
    expect(await app.scheduler.cancel(one.toUpperCase())).toBe(true);
    expect(await app.scheduler.cancel(one)).toBe(false);
    expect(canceled).toEqual([{ jobId: one, name: 'note', lane: 'notes', running: false }]);
    await app.database.query(
      `update ratchet.job set status = 1, claim_seq = 1, bucket = gen_random_uuid() where id = $1`,
      [two],
    );
    await app.scheduler.cancel({ name: 'note' });
    expect(canceled.slice(1)).toEqual(
      [
        { jobId: two, name: 'note', lane: 'notes', running: true },
        { jobId: three, name: 'note', lane: 'notes', running: false },
      ].sort((a, b) => (a.jobId < b.jobId ? -1 : 1)),
    );
  });
});

describe('job.enqueued where the ends of transactions are out of reach', () => {
  it('is silent about them, and tells the rest', async () => {
    const app = await createRatchetDatabase();
    Object.freeze(app.source.subscribers);
    const told: string[] = [];
    new RatchetEvents(app.events, () => {}).on('job.enqueued', ({ jobId }) => told.push(jobId));
    await app.source.transaction((tx) => app.scheduler.enqueue(Note, { n: 1 }, { transaction: tx }));
    const { id } = await app.scheduler.enqueue(Note, { n: 2 });
    expect(told).toEqual([id]);
    await app.close();
  });
});
