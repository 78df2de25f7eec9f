import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import assert from 'node:assert/strict';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobHandle } from '../../lib/jobs/enqueue-options.js';
import { createRatchetDatabase, type RatchetDatabase } from './ratchet-database.js';

const Note = defineJob('note');

interface Call {
  readonly businessKey: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly onConflict: 'reject' | 'return' | 'replace';
}

/** One caller: calls one after the other, on their own or all in one transaction. */
interface Caller {
  readonly calls: readonly Call[];
  readonly transaction: 'none' | 'commit' | 'rollback';
}

interface Answer extends Call {
  readonly handle: JobHandle;
}

const call: fc.Arbitrary<Call> = fc.record({
  businessKey: fc.constantFrom(undefined, 'a', 'b'),
  idempotencyKey: fc.constantFrom(undefined, undefined, 'x', 'y'),
  onConflict: fc.constantFrom('reject', 'return', 'replace'),
});
const caller: fc.Arbitrary<Caller> = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 4 }),
  transaction: fc.constantFrom('none', 'none', 'commit', 'rollback'),
});

describe('any mix of enqueues with keys', () => {
  let app: RatchetDatabase;
  beforeAll(async () => {
    app = await createRatchetDatabase();
  });
  afterAll(() => app.close());

  /** The answers that count: of calls that were committed. Refusals are fine; anything else fails the test. */
  async function run({ calls, transaction }: Caller): Promise<Answer[]> {
    const answers: Answer[] = [];
    const all = async (tx?: object): Promise<void> => {
      for (const one of calls) {
        const options = {
          ...one,
          onConflict: one.businessKey === undefined ? undefined : one.onConflict,
          ...(tx ? { transaction: tx as never } : {}),
        };
        try {
          answers.push({ ...one, handle: await app.scheduler.enqueue(Note, undefined, options) });
        } catch (error) {
          if ((error as { code?: string }).code !== 'BUSINESS_KEY_HELD') throw error;
        }
      }
    };
    try {
      if (transaction === 'none') await all();
      else {
        await app.source.transaction(async (tx) => {
          await all(tx);
          if (transaction === 'rollback')
            throw Object.assign(new Error('rolled back'), { code: 'ROLLED_BACK' });
        });
      }
      return answers;
    } catch (error) {
      const { code } = error as { code?: string };
      assert.ok(code === 'ENQUEUE_CONFLICT' || code === 'ROLLED_BACK', String(error));
      return transaction === 'none' ? answers : [];
    }
  }

  it('leaves exactly one live job per business key, and every answer true', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(caller, { minLength: 2, maxLength: 5 }), async (callers) => {
        await app.database.query('truncate ratchet.job, ratchet.job_history, ratchet.idempotency_key');
        const answers = (await Promise.all(callers.map(run))).flat();

        const live = await app.live();
        const superseded = await app.database.query<{ id: string }>('select id from ratchet.job_history');
        const known = new Set([...live, ...superseded].map(({ id }) => id));
        const created = answers.filter(({ handle }) => handle.created).map(({ handle }) => handle.id);

        // Nothing lost, nothing doubled, nothing invented.
        assert.deepEqual([...created].sort(), [...known].sort());
        for (const { handle } of answers)
          assert.ok(known.has(handle.id), `answered with ${handle.id}, which is no job`);

        for (const key of ['a', 'b']) {
          const holders = live.filter((job) => job.business_key === key).length;
          const asked = answers.some(({ businessKey, handle }) => businessKey === key && handle.created);
          assert.equal(holders, asked ? 1 : 0, `live jobs of business key ${key}`);
        }
        for (const key of ['x', 'y']) {
          const ids = new Set(
            answers.filter((answer) => answer.idempotencyKey === key).map(({ handle }) => handle.id),
          );
          assert.ok(ids.size <= 1, `idempotency key ${key} was answered with ${[...ids].join(' and ')}`);
        }
      }),
      { numRuns: 30 },
    );
  }, 120_000);
});
