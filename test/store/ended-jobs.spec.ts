import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { selectEnded } from '../../lib/store/postgres/statements/ended-jobs.js';
import { type PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { type EndedAnswer, type Settlement } from '../../lib/store/job-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createStore, newJob, registerTestNode, turn } from '../support/store.js';

describe('how jobs ended', () => {
  let database: TestDatabase;
  let store: PostgresJobStore;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createStore(database.url);
    await store.open();
    await store.ensurePartitions(2);
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  /** Runs jobs to their ends, in the order given. */
  async function ended(...ends: Omit<Settlement, 'id' | 'claimSeq'>[]): Promise<string[]> {
    const bucket = await store.openBucket(await registerTestNode(store), `lane-${uuidv7()}`);
    const jobs = ends.map(() => newJob({ lane: bucket.lane }));
    await store.insert(jobs);
    const { claimed } = await store.exchange(turn(bucket, { want: ends.length }));
    const claims = new Map(claimed.map(({ id, claimSeq }) => [id, claimSeq]));
    const settle = jobs.map(({ id }, index) => ({ id, claimSeq: claims.get(id)!, ...ends[index]! }));
    expect((await store.exchange(turn(bucket, { want: 0, settle }))).recorded).toHaveLength(ends.length);
    return jobs.map(({ id }) => id);
  }

  const kinds = ({ ended: these, absent, postponed }: EndedAnswer) => ({
    ended: these.map(({ id }) => id).sort(),
    absent: [...absent].sort(),
    postponed: [...postponed].sort(),
  });

  it('is told for each that has, and of those that are nowhere', async () => {
    const [object, nil, nothing, failed, dropped] = (await ended(
      { outcome: 'succeeded', result: '{"a":[1,null]}' },
      { outcome: 'succeeded', result: 'null' },
      { outcome: 'succeeded' },
      { outcome: 'failed', error: 'Error: no' },
      { outcome: 'succeeded', result: '1', drop: true },
    )) as [string, string, string, string, string];
    const [live] = await store.insert([newJob({ delayMs: 60_000 })]);
    const [canceled] = await store.insert([newJob()]);
    const ids = [live, canceled].map((one) => (one as { id: string }).id) as [string, string];
    await store.cancel(ids[1]);
    const missing = uuidv7();
    const answer = await store.ended([object, nil, nothing, failed, dropped, ...ids, missing]);
    expect(new Map(answer.ended.map((job) => [job.id, job]))).toEqual(
      new Map(
        [
          { id: object, status: 'succeeded', result: { a: [1, null] } },
          { id: nil, status: 'succeeded', result: null },
          { id: nothing, status: 'succeeded', result: undefined },
          { id: failed, status: 'failed', result: undefined, error: 'Error: no', failures: 1 },
          { id: ids[1], status: 'canceled', result: undefined, executions: 0 },
        ].map((job) => [
          job.id,
          { name: 'test.job', error: undefined, executions: 1, failures: 0, crashes: 0, ...job },
        ]),
      ),
    );
    expect([...answer.absent].sort()).toEqual([dropped, missing].sort());
    expect(answer.postponed).toEqual([]);
    expect(await store.ended([])).toEqual({ ended: [], absent: [], postponed: [] });
  });

  it('is found everywhere where an id lies about its time', async () => {
    const old = '01000000-0000-7000-8000-000000000001';
    const young = 'f1000000-0000-7000-8000-000000000001';
    const other = '01000000-0000-4000-8000-000000000001';
    for (const id of [old, young, other]) {
      await store.insert([newJob({ id })]);
      await store.cancel(id);
    }
    expect(kinds(await store.ended([old, other])).ended).toEqual([old, other].sort());
    // The partitions of days to come are spared, and so is all before the ids; a day of margin covers clocks that are off.
    await database.query(
      `update ratchet.job_history set ended_at = ended_at - interval '1 hour' where id = $1`,
      [young],
    );
    expect(kinds(await store.ended([young])).ended).toEqual([young]);
    store.travel(-3 * 86_400_000);
    expect(kinds(await store.ended([young])).ended).toEqual([young]);
    store.travel(0);
    // Made by a clock that is two days ahead.
    const ahead = `${(Date.now() + 2 * 86_400_000)
      .toString(16)
      .padStart(12, '0')
      .replace(/^(.{8})/, '$1-')}-7000-8000-000000000001`;
    await store.insert([newJob({ id: ahead })]);
    await store.cancel(ahead);
    await database.query(
      `update ratchet.job_history set ended_at = now() + interval '36 hours' where id = $1`,
      [ahead],
    );
    expect(kinds(await store.ended([ahead]))).toEqual({ ended: [], absent: [ahead], postponed: [] });
    expect(kinds(await store.ended([ahead], true)).ended).toEqual([ahead]);
  });

  it('is told of live again, after a redrive', async () => {
    const [id] = (await ended({ outcome: 'failed', error: 'no' })) as [string];
    expect(kinds(await store.ended([id])).ended).toEqual([id]);
    await store.redrive(id);
    expect(kinds(await store.ended([id]))).toEqual({ ended: [], absent: [], postponed: [] });
  });

  it('is told in answers of bounded size, each with one more at least', async () => {
    const big = (n: number): string =>
      JSON.stringify(
        Array.from({ length: 24_000 }, () => Math.random().toString(36).slice(2, 11)).join('') + String(n),
      );
    const ids = await ended(
      ...Array.from({ length: 30 }, (_, n) => ({ outcome: 'succeeded' as const, result: big(n) })),
    );
    const told = new Set<string>();
    let rounds = 0;
    for (let left: readonly string[] = ids; left.length > 0; rounds += 1) {
      const answer = await store.ended(left);
      expect(answer.ended.length).toBeGreaterThan(0);
      const bytes = answer.ended.reduce((sum, { result }) => sum + (result as string).length, 0);
      expect(bytes).toBeLessThan(4_000_000);
      for (const { id } of answer.ended) told.add(id);
      expect(answer.absent).toEqual([]);
      expect(answer.postponed).toHaveLength(left.length - answer.ended.length);
      left = answer.postponed;
    }
    expect(told).toEqual(new Set(ids));
    expect(rounds).toBeGreaterThan(1);
    expect(rounds).toBeLessThan(10);
  }, 30_000);

  describe('of five thousand among many', () => {
    interface Plan {
      'Node Type': string;
      'Relation Name'?: string;
      'Actual Loops'?: number;
      Plans?: Plan[];
    }

    it.each(['before', 'after'])(
      'asks the live table by its key, and the history for those only that are gone, %s an ANALYZE',
      async (when) => {
        await database.query('alter table ratchet.job set (autovacuum_enabled = off)');
        if (when === 'before') {
          await database.query(
            `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload)
           select ratchet.uuid_at(now()), 'bulk', 1, 'bulk', 2, now() + interval '1 day', now(), '{"n": 1}' from generate_series(1, 60000)`,
          );
        } else await database.query('vacuum analyze ratchet.job');
        const rows = await database.query<{ id: string }>(
          `select id from ratchet.job where lane = 'bulk' limit 4900`,
        );
        const gone = await ended(
          ...Array.from({ length: 100 }, () => ({ outcome: 'succeeded' as const, result: '1' })),
        );
        const ids = [...rows.map(({ id }) => id), ...gone];
        const { text } = selectEnded('ratchet');
        const [plan] = await database.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
          `explain (analyze, format json) ${text}`,
          [
            ids,
            new Date(Date.now() - 86_400_000).toISOString(),
            new Date(Date.now() + 86_400_000).toISOString(),
          ],
        );
        const nodes: Plan[] = [];
        const walk = (node: Plan): void => {
          nodes.push(node);
          node.Plans?.forEach(walk);
        };
        walk(plan!['QUERY PLAN'][0]!.Plan);
        const live = nodes.filter((node) => node['Relation Name'] === 'job');
        expect(live.map((node) => node['Node Type'])).toEqual([expect.stringMatching(/^Index/)]);
        const past = nodes.filter((node) => node['Relation Name']?.startsWith('job_history_'));
        expect(past.length).toBeLessThanOrEqual(3);
        expect(Math.max(...past.map((node) => node['Actual Loops'] ?? 0))).toBeLessThanOrEqual(100);
        expect(kinds(await store.ended(ids)).ended).toHaveLength(100);
      },
      30_000,
    );
  });
});
