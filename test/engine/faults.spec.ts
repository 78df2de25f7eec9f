import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { deferred, laneOf } from '../support/engine-node.js';
import { createFlakyNetwork, type FlakyNetwork } from '../support/flaky-network.js';
import { engineFixture } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

describe('a database that fails', () => {
  const fixture = engineFixture();
  let network: FlakyNetwork;
  beforeAll(async () => {
    network = await createFlakyNetwork(fixture.database.url);
  });
  beforeEach(() => network.restore());
  afterAll(() => network.close());

  it('a reply lost on the wire after the commit: every job runs once and is recorded once', async () => {
    const runs = new Map<string, number>();
    const one = await fixture.node(
      { handlers: { work: (_p, { jobId }) => void runs.set(jobId, (runs.get(jobId) ?? 0) + 1) } },
      network.url,
    );
    await one.runtime.start();
    await one.events.next('idle');
    const reconciled = one.events.next('reconciled');
    const settled = one.count('settled', 30);
    const lost = network.loseReplyTo(/ratchet-exchange/);
    await one.enqueue(...Array.from({ length: 30 }, () => ({})));
    await lost;
    expect(await reconciled).toMatchObject({ cause: 'unknown_commit' });
    await settled;
    expect([...runs.values()]).toEqual(Array.from({ length: 30 }, () => 1));
    expect(await fixture.database.query('select 1 from ratchet.job_history')).toHaveLength(30);
  });

  it('killed backends cost nothing but a moment', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    for (let round = 0; round < 5; round += 1) {
      const settled = one.count('settled', 10);
      await fixture.database.terminateBackends('ratchet/%');
      await one.enqueue(...Array.from({ length: 10 }, () => ({})));
      await settled;
    }
    expect(await fixture.database.query(`select distinct claim_seq::text from ratchet.job_history`)).toEqual([
      { claim_seq: '1' },
    ]);
  });

  it('away for a while with work in hand: nothing is lost, one line a second at most, back within five seconds', async () => {
    const hold = deferred();
    const one = await fixture.node(
      {
        settings: {
          lanes: new Map([
            ['a', laneOf({ concurrency: 2 })],
            ['b', laneOf({ concurrency: 2 })],
          ]),
          ...pollEvery(50),
        },
        handlers: { work: () => hold.promise },
      },
      network.url,
    );
    await one.runtime.start();
    const begun = one.count('claimed', 3);
    const ids = await one.enqueue({}, { lane: 'a' }, { lane: 'b' });
    await begun;
    const failures = one.count('fault', 12);
    network.refuse();
    const wentAwayMs = performance.now();
    hold.resolve();
    await failures;
    const awayMs = performance.now() - wentAwayMs;
    const lines = fixture.logs.filter(({ level }) => level === 'warn' || level === 'error');
    expect(lines.length).toBeLessThanOrEqual(Math.ceil(awayMs / 1_000) + 1);
    expect(lines[0]?.line).toMatch(/failed: .*trying again|reply was lost/);
    const settled = one.count('settled', 3);
    network.restore();
    const backMs = performance.now();
    await settled;
    expect(performance.now() - backMs).toBeLessThan(5_000);
    for (const id of ids)
      expect(await one.store.get(id)).toMatchObject({ status: 'succeeded', executions: 1 });
    expect(fixture.logs.some(({ line }) => line.includes('works again'))).toBe(true);
  });

  it('read-only for a while: claims and outcomes wait, then go on', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    const { name } = fixture.database;
    await one.runtime.start();
    await one.events.next('idle');
    // The cut connection may be noticed by an exchange or by the reconcile after it.
    const fault = one.events.next('fault', ({ kind }) => kind === 'unavailable');
    const admin = await fixture.database.connect();
    await admin.query(`alter database ${name} set default_transaction_read_only = on`);
    try {
      await fixture.database.terminateBackends('ratchet/%');
      one.messages.newWork('default', 2);
      await fault;
    } finally {
      await admin.query('set default_transaction_read_only = off');
      await admin.query(`alter database ${name} set default_transaction_read_only = off`);
    }
    const settled = one.events.next('settled');
    await one.enqueue({});
    expect(await settled).toMatchObject({ outcome: 'succeeded' });
  });

  it('a fault that no waiting mends is said with its mend, and the work goes on when it is mended', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    const fault = one.events.next('fault', ({ kind }) => kind === 'fatal');
    await fixture.database.query('alter table ratchet.job_history rename to elsewhere');
    await one.enqueue({});
    await fault;
    expect(fixture.logs.find(({ level }) => level === 'error')?.line).toMatch(
      /job_history.*migrations.*trying again/,
    );
    const settled = one.events.next('settled');
    await fixture.database.query('alter table ratchet.elsewhere rename to job_history');
    await settled;
  });

  it('every statement of the engine fails once, and nobody notices', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const one = await fixture.node({ handlers: { work: () => {} }, settings: { ...pollEvery(20) } });
    for (const method of ['registerNode', 'rescueOwn', 'openBucket'] as const) {
      void one.faults.fail(method, { kind: 'unavailable', when: 'before' });
    }
    for (const method of ['probe', 'foreign', 'reconcile', 'beat', 'retain', 'ensurePartitions'] as const) {
      void one.faults.fail(method, { kind: 'unknown', when: 'after' });
    }
    void one.faults.fail('exchange', { kind: 'unknown', when: 'after' });
    const settled = one.count('settled', 20);
    await one.enqueue(...Array.from({ length: 20 }, () => ({})));
    await one.runtime.start();
    await settled;
    await one.runtime.close();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});
