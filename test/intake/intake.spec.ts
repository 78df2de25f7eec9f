import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { Intake } from '../../lib/intake/intake.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobHandle } from '../../lib/jobs/enqueue-options.js';
import { JobScheduler } from '../../lib/scheduler/job-scheduler.js';
import { JobMaker } from '../../lib/scheduler/job-maker.js';
import { type Inserted, type JobStore, type NewJob } from '../../lib/store/job-store.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { noResults } from '../support/results.js';
import { createRatchetDatabase, type RatchetDatabase, somebodyWaitsForALock } from './ratchet-database.js';

const Note = defineJob<{ n: number }>('note');
const Parent = defineJob('parent');

describe('Intake on a database', () => {
  let app: RatchetDatabase;

  beforeAll(async () => {
    app = await createRatchetDatabase();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    await app.database.query('truncate ratchet.job, ratchet.job_payload, ratchet.idempotency_key');
    app.wakeups.length = 0;
  });

  const many = (count: number): Promise<JobHandle[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => app.scheduler.enqueue(Note, { n })));

  it('saves a thousand enqueues made at once in call order, with one wakeup', async () => {
    const handles = await many(1_000);
    const rows = await app.database.query<{ id: string; n: string }>(
      "select id, payload ->> 'n' as n from ratchet.job order by id",
    );
    expect(rows.map(({ id }) => id)).toEqual(handles.map(({ id }) => id));
    expect(rows.map(({ n }) => Number(n))).toEqual(rows.map((_, n) => n));
    expect(app.wakeups).toEqual([{ lane: 'default', priority: 2, source: 'test' }]);
  });

  it('tells nobody of a repeat or a refusal', async () => {
    await app.scheduler.enqueue(Note, { n: 1 }, { businessKey: 'k', idempotencyKey: 'i' });
    app.wakeups.length = 0;
    await app.scheduler.enqueue(Note, { n: 1 }, { idempotencyKey: 'i' });
    await expect(app.scheduler.enqueue(Note, { n: 1 }, { businessKey: 'k' })).rejects.toMatchObject({
      code: 'BUSINESS_KEY_HELD',
    });
    expect(app.wakeups).toEqual([]);
  });

  it('answers two hundred enqueues of one idempotency key with one job', async () => {
    const handles = await Promise.all(
      Array.from({ length: 200 }, (_, n) => app.scheduler.enqueue(Note, { n }, { idempotencyKey: 'once' })),
    );
    expect(new Set(handles.map(({ id }) => id)).size).toBe(1);
    expect(handles.map(({ created }) => created)).toEqual(handles.map((_, index) => index === 0));
  });

  it('is all or nothing for many, whatever their number', async () => {
    await app.scheduler.enqueue(Note, { n: 0 }, { businessKey: 'held' });
    const items = Array.from({ length: 5_000 }, (_, n) => ({
      payload: { n },
      ...(n === 4_999 ? { options: { businessKey: 'held' } } : {}),
    }));
    await expect(app.scheduler.enqueueMany(Note, items)).rejects.toMatchObject({ code: 'BUSINESS_KEY_HELD' });
    expect(await app.live()).toHaveLength(1);
    const handles = await app.scheduler.enqueueMany(Note, items.slice(0, -1));
    expect(handles).toHaveLength(4_999);
    expect(await app.live()).toHaveLength(5_000);
  });

  it('keeps large payloads, and many of them at once', async () => {
    const Text = defineJob<string>('text');
    const texts = Array.from({ length: 20 }, (_, n) => `${n}${'x'.repeat(200_000)}`);
    const handles = await Promise.all(texts.map((text) => app.scheduler.enqueue(Text, text)));
    const views = await Promise.all(handles.map(({ id }) => app.scheduler.get(id)));
    expect(views.map((view) => view?.payload)).toEqual(texts);
  });

  describe('children', () => {
    let parent: { id: string; claimSeq: string };

    beforeEach(async () => {
      const { id } = await app.scheduler.enqueue(Parent);
      await app.database.query(
        'update ratchet.job set status = 1, claim_seq = 7, bucket = $2 where id = $1',
        [id, uuidv7()],
      );
      parent = { id, claimSeq: '7' };
    });

    const children = (count: number): Promise<PromiseSettledResult<JobHandle>[]> =>
      Promise.allSettled(
        Array.from({ length: count }, (_, n) => app.children.enqueueChild(parent, Note as never, { n }, {})),
      );

    it('record their parent, and share inserts', async () => {
      app.wakeups.length = 0;
      const results = await children(100);
      expect(results.every(({ status }) => status === 'fulfilled')).toBe(true);
      const rows = await app.database.query('select 1 from ratchet.job where parent_id = $1', [parent.id]);
      expect(rows).toHaveLength(100);
      expect(app.wakeups).toHaveLength(1);
    });

    it('are refused, keyed or not, once the claim is lost', async () => {
      await app.database.query('update ratchet.job set claim_seq = 8 where id = $1', [parent.id]);
      const independent = app.scheduler.enqueue(Note, { n: 1 });
      const results = await children(3);
      for (const result of results)
        expect(result).toMatchObject({ reason: { code: 'CLAIM_LOST', jobId: parent.id } });
      for (const keys of [
        { businessKey: 'k' },
        { idempotencyKey: 'i' },
        { businessKey: 'k', idempotencyKey: 'i' },
      ]) {
        await expect(app.children.enqueueChild(parent, Note as never, { n: 1 }, keys)).rejects.toMatchObject({
          code: 'CLAIM_LOST',
        });
      }
      await independent;
      expect((await app.live()).map(({ name }) => name).sort()).toEqual(['note', 'parent']);
    });

    it('join a transaction', async () => {
      const rolledBack = app.source.transaction(async (transaction) => {
        await app.children.enqueueChild(parent, Note, { n: 1 }, { transaction });
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      expect(await app.live()).toHaveLength(1);
    });
  });

  describe('faults', () => {
    /** A scheduler over the same store, whose inserts the test can spoil. */
    const spoiled = (insert: (jobs: readonly NewJob[]) => Promise<readonly Inserted[]>): JobScheduler => {
      const store = new Proxy(app.store, {
        get: (target, key) => {
          if (key === 'insert') return insert;
          const value: unknown = Reflect.get(target, key, target);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }) as JobStore;
      const intake = new Intake({ store, messages: app.messages, dataSource: app.source });
      const maker = new JobMaker({ payloadBytes: 1_000_000, idempotencyExpiryMs: 1_000 });
      return new JobScheduler({ store, intake, maker, messages: app.messages, results: noResults });
    };

    it.each([{}, { businessKey: 'k' }, { idempotencyKey: 'i' }, { businessKey: 'k', idempotencyKey: 'i' }])(
      'acknowledges what was committed although the reply was lost, once: %j',
      async (keys) => {
        let calls = 0;
        const scheduler = spoiled(async (jobs) => {
          calls += 1;
          await app.store.insert(jobs);
          throw new StoreError('unknown', 'lost', undefined);
        });
        const handle = await scheduler.enqueue(Note, { n: 1 }, keys);
        expect(handle.created).toBe(true);
        expect(calls).toBe(1);
        expect((await app.live()).map(({ id }) => id)).toEqual([handle.id]);
      },
    );

    it('says that nobody knows, with the id, when the database stays away', async () => {
      const scheduler = spoiled(() => Promise.reject(new StoreError('unknown', 'lost', undefined)));
      await expect(scheduler.enqueue(Note, { n: 1 })).rejects.toMatchObject({
        code: 'ENQUEUE_IN_DOUBT',
        ids: [expect.any(String)],
      });
    });

    it('loses and doubles nothing when connections are killed under its statements', async () => {
      const blocker = await app.database.connect();
      for (let round = 0; round < 3; round += 1) {
        await app.database.query('truncate ratchet.job');
        await blocker.query('begin');
        await blocker.query('lock table ratchet.job in share mode');
        const wave = Promise.all(
          Array.from({ length: 300 }, (_, n) =>
            app.scheduler.enqueue(Note, { n }, n % 100 === 0 ? { businessKey: `${round}/${n}` } : {}),
          ),
        );
        await somebodyWaitsForALock(app.database);
        expect(await app.database.terminateBackends()).toBeGreaterThan(0);
        await blocker.query('commit');
        const handles = await wave;
        expect(handles.every(({ created }) => created)).toBe(true);
        expect((await app.live()).map(({ id }) => id).sort()).toEqual(handles.map(({ id }) => id).sort());
      }
    });
  });

  it('refuses more jobs with keys than may wait, and takes them again when there is room', async () => {
    const { store, messages } = app;
    const intake = new Intake({ store, messages, limits: { jobs: 20, bytes: 1_000_000 } });
    const maker = new JobMaker({ payloadBytes: 1_000, idempotencyExpiryMs: 1_000 });
    const scheduler = new JobScheduler({ store, intake, maker, messages, results: noResults });
    const wave = (): Promise<PromiseSettledResult<JobHandle>[]> =>
      Promise.allSettled(
        Array.from({ length: 30 }, (_, n) =>
          scheduler.enqueue(Note, { n }, { businessKey: `k${n}`, onConflict: 'replace' }),
        ),
      );
    const first = await wave();
    expect(first.slice(0, 20).every(({ status }) => status === 'fulfilled')).toBe(true);
    for (const refused of first.slice(20)) expect(refused).toMatchObject({ reason: { code: 'INTAKE_FULL' } });
    expect((await wave()).filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
    await intake.close();
  });

  it('flushes what is on its way, and takes its subscriber out when it closes', async () => {
    const before = app.source.subscribers.length;
    const intake = new Intake({ store: app.store, messages: app.messages, dataSource: app.source });
    const maker = new JobMaker({ payloadBytes: 1_000, idempotencyExpiryMs: 1_000 });
    const scheduler = new JobScheduler({
      store: app.store,
      intake,
      maker,
      messages: app.messages,
      results: noResults,
    });
    await app.source.transaction((transaction) => scheduler.enqueue(Note, { n: 1 }, { transaction }));
    expect(app.source.subscribers.length).toBe(before + 1);
    const settled: string[] = [];
    void scheduler.enqueue(Note, { n: 2 }).then(({ id }) => settled.push(id));
    void scheduler.enqueue(Note, { n: 3 }, { businessKey: 'k' }).then(({ id }) => settled.push(id));
    await new Promise(setImmediate);
    await intake.close();
    await intake.close();
    expect(settled).toHaveLength(2);
    expect(app.source.subscribers.length).toBe(before);
  });
});
