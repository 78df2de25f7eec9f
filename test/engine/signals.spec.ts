import { describe, expect, it } from '@jest/globals';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { deferred } from '../support/engine-node.js';
import { engineFixture } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

describe('signals to running executions', () => {
  const fixture = engineFixture();
  /** Notices come with heartbeats. */
  const heartbeat = { baseMs: 500, graceMs: 3_000, stallMs: 300_000 };
  /** Runs until its signal is aborted, and answers with the reason. */
  function obedient(): {
    run: (payload: unknown, context: JobContext) => Promise<never>;
    reason: Promise<unknown>;
  } {
    const told = deferred<unknown>();
    return {
      reason: told.promise,
      run: (_payload, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener(
            'abort',
            () => {
              told.resolve(signal.reason);
              reject(new Error('stopped'));
            },
            { once: true },
          );
        }),
    };
  }

  it.each(['signal', 'notice'] as const)(
    'a cancel is heard by %s; the late outcome is discarded',
    async (way) => {
      const { run, reason } = obedient();
      const one = await fixture.node({ settings: { ...pollEvery(25), heartbeat }, handlers: { work: run } });
      await one.runtime.start();
      const begun = one.events.next('claimed');
      const [id] = await one.enqueue({});
      const { claimSeq } = await begun;
      const late = one.events.next('late');
      expect(await one.store.cancel(id!)).toMatchObject({ outcome: 'canceled_running', claimSeq });
      if (way === 'signal') one.messages.signal({ kind: 'cancel', jobId: id!, claimSeq });
      expect(await reason).toMatchObject({ reason: 'canceled' });
      await late;
      expect(await one.store.get(id!)).toMatchObject({ status: 'canceled' });
      expect(one.runtime.running).toBe(0);
    },
  );

  it.each([
    ['is tried again', 1, 'retried'],
    ['failed for good', 0, 'failed'],
  ])(
    'what a body says after its timeout is kept beside the execution that %s',
    async (_what, maxRetries, outcome) => {
      const hold = deferred();
      const policy = { timeout: 20, maxRetries, backoff: { type: 'fixed', delay: '1h' } };
      const one = await fixture.node({ handlers: { work: { policy, run: () => hold.promise } } });
      await one.runtime.start();
      const settled = one.events.next('settled');
      const [id] = await one.enqueue({});
      expect(await settled).toMatchObject({ outcome });
      const late = one.events.next('late');
      hold.resolve();
      expect(await late).toMatchObject({ outcome: 'succeeded', recorded: true });
      expect(await one.store.executions(id!)).toMatchObject([{ outcome, lateOutcome: 'succeeded' }]);
    },
  );

  it('leaves no notice behind: not after a cancel that was heard as a signal, nor after the drain', async () => {
    const { run } = obedient();
    const one = await fixture.node({ settings: { ...pollEvery(25), heartbeat }, handlers: { work: run } });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    const { claimSeq } = await begun;
    const late = one.events.next('late');
    await one.store.cancel(id!);
    one.messages.signal({ kind: 'cancel', jobId: id!, claimSeq });
    await late;
    const notices = (): Promise<unknown[]> => fixture.database.query('select 1 from ratchet.notice');
    while ((await notices()).length > 0);
    const { node_id, node_epoch } = (
      await fixture.database.query<{ node_id: string; node_epoch: string }>(
        'select node_id, node_epoch from ratchet.bucket',
      )
    )[0]!;
    await fixture.database.query(
      `insert into ratchet.notice values ('${node_id}', ${node_epoch}, '${id!}', 99, 'canceled')`,
    );
    await one.runtime.drain();
    expect(await notices()).toEqual([]);
  });

  it('a cancel of another claim of the job is not heard', async () => {
    const hold = deferred();
    let aborted = false;
    const one = await fixture.node({
      handlers: {
        work: async (_payload, { signal }) => {
          await hold.promise;
          aborted = signal.aborted;
        },
      },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    one.messages.signal({ kind: 'cancel', jobId: id!, claimSeq: '99' });
    const settled = one.events.next('settled');
    hold.resolve();
    await settled;
    expect(aborted).toBe(false);
  });

  it('progress travels with the exchanges, and tells a worker whose claim is gone', async () => {
    const { run, reason } = obedient();
    const goOn = deferred();
    const one = await fixture.node({
      handlers: {
        work: async (payload, context) => {
          context.progress({ done: 1 });
          await goOn.promise;
          context.progress({ done: 2 });
          return run(payload, context);
        },
      },
    });
    await one.runtime.start();
    const reported = one.count('turn', 1, ({ sent, claimed }) => sent === 0 && claimed === 0);
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    await reported;
    expect(await one.store.get(id!)).toMatchObject({ status: 'running', progress: { done: 1 } });
    await fixture.database.query('update ratchet.job set claim_seq = claim_seq + 1 where id = $1', [id]);
    goOn.resolve();
    expect(await reason).toMatchObject({ reason: 'lost' });
  });
});
