import { describe, expect, it } from '@jest/globals';
import { engineFixture } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

describe('a job that is canceled through another node, without a coordinator', () => {
  const fixture = engineFixture();
  const settings = { ...pollEvery(3_600_000), heartbeat: { baseMs: 200, graceMs: 1_000, stallMs: 300_000 } };

  it('is told at the next heartbeat of its own node', async () => {
    let heard: (reason: unknown) => void;
    const reason = new Promise<unknown>((resolve) => (heard = resolve));
    const owner = await fixture.node({
      settings,
      handlers: {
        work: (_payload, { signal }) =>
          new Promise<void>((resolve) =>
            signal.addEventListener('abort', () => {
              heard(signal.reason);
              resolve();
            }),
          ),
      },
    });
    const other = await fixture.node({ settings, handlers: { other: () => {} } });
    await Promise.all([owner.runtime.start(), other.runtime.start()]);
    const claimed = owner.events.next('claimed');
    const [id] = await owner.enqueue({});
    const { claimSeq } = await claimed;
    // The first one after the statement may have been on its way already: the second one cannot.
    const beats = owner.count('beat', 2);
    const canceled = owner.events.next('canceled');
    const told = Promise.race([canceled, beats.then(() => 'two heartbeats went by')]);
    expect(await other.store.cancel(id as string)).toMatchObject({
      outcome: 'canceled_running',
      node: owner.id,
      claimSeq,
    });
    expect(await told).toEqual({ jobId: id, claimSeq });
    expect(await reason).toMatchObject({ code: 'JOB_ABORTED', reason: 'canceled' });
    expect(await other.store.get(id as string)).toMatchObject({ status: 'canceled' });
    expect(await fixture.database.query('select 1 from ratchet.notice')).toEqual([]);
  });
});
