import { describe, expect, it } from '@jest/globals';
import { UnrecoverableError } from '../../lib/errors/execution-errors.js';
import { engineFixture } from '../engine/engine-fixture.js';
import { type TestHandler } from '../support/engine-node.js';
import { pollEvery } from '../support/poll.js';

const LARGE = JSON.stringify({ text: 'x'.repeat(5_000) });

const drop = (run: TestHandler): { policy: object; run: TestHandler } => ({
  policy: { history: 'drop', backoff: { type: 'fixed', delay: '1ms', jitter: 0 } },
  run,
});

describe("history: 'drop'", () => {
  const fixture = engineFixture();
  const settings = { ...pollEvery(200) };

  /** What is left of a job, by table. */
  const left = async (id: string): Promise<Record<string, number>> => {
    const count = (table: string, column: string): string =>
      `(select count(*) from ratchet.${table} where ${column} = $1)::int as ${table}`;
    const [row] = await fixture.database.query<Record<string, number>>(
      `select ${count('job', 'id')}, ${count('job_payload', 'job_id')}, ${count('job_history', 'id')},
              ${count('dead_letter', 'id')}, ${count('execution', 'job_id')}`,
      [id],
    );
    return row ?? {};
  };
  const NOTHING = { job: 0, job_payload: 0, job_history: 0, dead_letter: 0, execution: 0 };

  it('keeps nothing of a success but the executions that had failed before it', async () => {
    const one = await fixture.node({
      settings,
      handlers: {
        work: drop((_payload, { failures }) => {
          if (failures === 0) throw new Error('once');
          return 'a result';
        }),
        smooth: drop(() => 'a result'),
      },
    });
    await one.runtime.start();
    const done = one.count('settled', 2, ({ outcome }) => outcome === 'succeeded');
    const [rough = '', smooth = ''] = await one.enqueue(
      { payload: LARGE },
      { name: 'smooth', payload: LARGE },
    );
    await done;
    expect(await left(smooth)).toEqual(NOTHING);
    expect(await one.real.get(smooth)).toBeUndefined();
    expect(await left(rough)).toEqual({ ...NOTHING, execution: 1 });
    expect(await one.real.executions(rough)).toMatchObject([{ outcome: 'retried' }]);
  });

  it('keeps failures and what was canceled', async () => {
    const one = await fixture.node({
      settings,
      handlers: {
        work: drop(() => {
          throw new UnrecoverableError('no');
        }),
      },
    });
    await one.runtime.start();
    const failed = one.events.next('settled');
    const [dead = '', canceled = ''] = await one.enqueue(
      { payload: LARGE },
      { payload: LARGE, delayMs: 3_600_000 },
    );
    await failed;
    await one.real.cancel(canceled);
    expect(await left(dead)).toEqual({ ...NOTHING, job_payload: 1, dead_letter: 1 });
    expect(await left(canceled)).toEqual({ ...NOTHING, job_payload: 1, job_history: 1 });
  });

  it('is recorded once when the reply of its settle is lost: the absent row is the record', async () => {
    let runs = 0;
    const one = await fixture.node({
      settings,
      handlers: {
        work: drop(() => {
          runs += 1;
          void one.faults.fail('exchange', { kind: 'unknown', when: 'after' });
        }),
      },
    });
    await one.runtime.start();
    const reconciled = one.events.next('reconciled', ({ cause }) => cause === 'unknown_commit');
    const settled = one.events.next('settled');
    const [id = ''] = await one.enqueue({ payload: LARGE });
    expect(await reconciled).toMatchObject({ recorded: 1, lost: 0, strays: 0 });
    expect(await settled).toMatchObject({ jobId: id, outcome: 'succeeded' });
    expect(runs).toBe(1);
    expect(await left(id)).toEqual(NOTHING);
  });

  it('is lost, not recorded, when it was canceled before its settle', async () => {
    const one = await fixture.node({
      settings,
      handlers: { work: drop((_payload, { jobId }) => one.real.cancel(jobId)) },
    });
    await one.runtime.start();
    const lost = one.events.next('lost');
    const [id = ''] = await one.enqueue({ payload: LARGE });
    expect(await lost).toMatchObject({ jobId: id });
    expect(await one.real.get(id)).toMatchObject({ status: 'canceled' });
  });
});
