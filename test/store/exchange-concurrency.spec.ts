import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createSchema, engineClient, openBucket, turnsOn, uuid } from './exchange-fixture.js';

/** Eight owners on one lane: no job is claimed twice, no claim exceeds what was asked for, nothing is left over. */
const OWNERS = 8;
const JOBS = 12_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createSchema(database);
});
afterAll(() => database.drop());

const isDeadlock = (error: unknown): boolean => (error as { code?: string }).code === '40P01';

it('eight owners drain a lane: each job exactly once, under claim_seq 1, never more than wanted', async () => {
  await database.query(
    `insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at)
     select gen_random_uuid(), 'job', 1, 'default', g % 5, now() - random() * interval '2 hours', now()
       from generate_series(1, $1::int) g`,
    [JOBS],
  );
  const own = async (n: number): Promise<number> => {
    const client = await engineClient(database);
    const turn = turnsOn(client);
    const bucket = await openBucket(database, uuid(n));
    let finished: { id: string; claimSeq: string; outcome: 'succeeded' }[] = [];
    let recorded = 0;
    const want = 10 + n * 5;
    for (;;) {
      let answer;
      try {
        answer = await turn(bucket, { settle: finished, want });
      } catch (error) {
        // A deadlock is a known rollback: the same turn is sent again.
        if (isDeadlock(error)) continue;
        throw error;
      }
      expect(answer.lost).toEqual([]);
      expect(answer.claimed.length).toBeLessThanOrEqual(want);
      recorded += answer.recorded.length;
      const skipped = finished.filter((settlement) => answer.skipped.includes(settlement.id));
      finished = [
        ...skipped,
        ...answer.claimed.map((job) => ({
          id: job.id,
          claimSeq: job.claimSeq,
          outcome: 'succeeded' as const,
        })),
      ];
      if (finished.length === 0) break;
    }
    await client.end();
    return recorded;
  };
  const shares = await Promise.all(Array.from({ length: OWNERS }, (_, n) => own(n + 1)));
  expect(shares.reduce((sum, share) => sum + share, 0)).toBe(JOBS);
  expect(
    await database.query(
      `select count(*)::int as n, count(distinct id)::int as jobs, max(claim_seq)::int as seq, (select count(*)::int from ratchet.job) as left
         from ratchet.job_history`,
    ),
  ).toEqual([{ n: JOBS, jobs: JOBS, seq: 1, left: 0 }]);
});
