import { describe, expect, it } from '@jest/globals';
import { enqueueError } from '../../lib/intake/enqueue-error.js';
import { type NewJob } from '../../lib/store/job-store.js';
import { JobInserter } from '../../lib/store/postgres/insert/job-inserter.js';
import { type PostgresSession } from '../../lib/store/postgres/postgres-session.js';
import { newJob } from '../support/store.js';

/** A database in which a key is taken at every try, and free whenever one looks who has it. */
function restless(): JobInserter {
  const session = {
    offsetMs: 0,
    write: () => Promise.resolve([]),
    app: () => Promise.resolve([]),
    transaction: (work: (transaction: object) => Promise<unknown>) => work({}),
  };
  return new JobInserter(session as unknown as PostgresSession, 1_000);
}

const insert = (jobs: readonly Partial<NewJob>[]) => restless().insert(jobs.map((job) => newJob(job)));
const both = { idempotencyKey: { key: 'i', expiresInMs: 1_000 } };

describe('a key that keeps changing hands', () => {
  it.each(['return', 'replace'] as const)(
    'is a conflict to try again, when onConflict is %s',
    async (onConflict) => {
      for (const jobs of [
        [{ businessKey: 'b', onConflict }],
        [{ businessKey: 'b', onConflict }, {}],
        [{ businessKey: 'b', onConflict }, { businessKey: 'c' }],
      ]) {
        const error = await insert(jobs).catch((reason: unknown) => enqueueError(reason, []));
        expect(error).toMatchObject({
          code: 'ENQUEUE_CONFLICT',
          retryable: true,
          cause: { message: 'STORE_FAULT: the business key "b" keeps changing hands' },
        });
      }
    },
  );

  it('is a conflict too, when it is an idempotency key', async () => {
    for (const jobs of [[both], [{ ...both, businessKey: 'b' }], [both, {}]]) {
      const error = await insert(jobs).catch((reason: unknown) => enqueueError(reason, []));
      expect(error).toMatchObject({
        code: 'ENQUEUE_CONFLICT',
        cause: { message: 'STORE_FAULT: the idempotency key "i" keeps changing hands' },
      });
    }
  });

  it('is held, as far as the call can know, when onConflict is left out', async () => {
    await expect(insert([{ businessKey: 'b' }])).resolves.toEqual([{ outcome: 'held', running: false }]);
  });
});
