import { describe, expect, it } from '@jest/globals';
import { deferred } from '../support/engine-node.js';
import { engineFixture } from './engine-fixture.js';

/** The rules of the exchange that the engine keeps, each by one test (those of the statement are in test/store). */
describe('rules of the exchange', () => {
  const fixture = engineFixture();
  const raise = 'update ratchet.job set claim_seq = claim_seq + 1 where id = $1';

  it('1: an outcome counts only under its own claim; the late worker is told and nothing of the job changes', async () => {
    const hold = deferred();
    const one = await fixture.node({ handlers: { work: () => hold.promise } });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    await fixture.database.query(raise, [id]);
    const lost = one.events.next('lost');
    hold.resolve();
    expect(await lost).toMatchObject({ jobId: id, claimSeq: '1' });
    expect(await one.store.get(id!)).toMatchObject({ status: 'running', claimSeq: '2' });
    expect(await fixture.database.query('select 1 from ratchet.job_history')).toHaveLength(0);
  });

  it('1, negative control: with the fence taken out of the exchange, the late outcome stands', async () => {
    const hold = deferred();
    const one = await fixture.node({ handlers: { work: () => hold.promise } });
    const real = one.real.exchange.bind(one.real);
    one.real.exchange = (request) =>
      real({ ...request, settle: request.settle.map((settlement) => ({ ...settlement, claimSeq: '2' })) });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    await fixture.database.query(raise, [id]);
    const settled = one.events.next('settled');
    hold.resolve();
    await settled;
    expect(await one.store.get(id!)).toMatchObject({ status: 'succeeded' });
  });

  it('2: a row that somebody holds is skipped, sent again, waited for after five turns, and recorded', async () => {
    const hold = deferred();
    const one = await fixture.node({ handlers: { work: () => hold.promise } });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    await begun;
    const holder = await fixture.database.connect();
    await holder.query('begin');
    await holder.query('select 1 from ratchet.job where id = $1 for update', [id]);
    const waits = deferred();
    const real = one.real.exchange.bind(one.real);
    one.real.exchange = (request) => {
      if (request.wait) waits.resolve();
      return real(request);
    };
    let skips = 0;
    one.events.on('turn', ({ skipped }) => (skips += skipped));
    hold.resolve();
    await waits.promise;
    expect(skips).toBe(5);
    const recorded = one.events.next('settled');
    await holder.query('commit');
    expect(await recorded).toMatchObject({ jobId: id, outcome: 'succeeded' });
  });

  it('3: a bucket that was taken away claims nothing more; its executions are told and a new bucket follows', async () => {
    const aborted = deferred<unknown>();
    let runs = 0;
    const one = await fixture.node({
      handlers: {
        work: (_payload, context) => {
          runs += 1;
          if (runs > 1) return;
          context.signal.addEventListener('abort', () => aborted.resolve(context.signal.reason), {
            once: true,
          });
          return aborted.promise;
        },
      },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [held] = await one.enqueue({});
    await begun;
    const deposed = one.events.next('deposed');
    await fixture.database.query(`update ratchet.bucket set epoch = epoch + 1, status = 'lost'`);
    const done = one.events.next('settled', ({ jobId }) => jobId !== held);
    await one.enqueue({});
    await deposed;
    expect(await aborted.promise).toMatchObject({ reason: 'lost' });
    await done;
    const buckets = await fixture.database.query('select status, epoch from ratchet.bucket order by epoch');
    expect(buckets).toEqual([
      { status: 'active', epoch: 1 },
      { status: 'lost', epoch: 2 },
    ]);
    expect(fixture.logs.some(({ line }) => line.includes('was taken away'))).toBe(true);
  });

  it('4: a reply lost after the commit strands nothing and repeats nothing', async () => {
    const runs: string[] = [];
    const one = await fixture.node({
      settings: { concurrency: 5 },
      handlers: { work: (_payload, context) => void runs.push(context.jobId) },
    });
    const reconciled = one.count('reconciled', 3);
    const faults = one.faults.fail(
      'exchange',
      ...Array.from({ length: 3 }, () => ({ kind: 'unknown', when: 'after' }) as const),
    );
    const ids = await one.enqueue(...Array.from({ length: 20 }, () => ({})));
    const settled = one.count('settled', 20);
    await one.runtime.start();
    await Promise.all([faults, reconciled, settled]);
    expect(runs.sort()).toEqual([...ids].sort());
    const history = await fixture.database.query<{ claim_seq: string }>(
      'select claim_seq from ratchet.job_history',
    );
    expect(history.map((row) => row.claim_seq)).toEqual(Array.from({ length: 20 }, () => '1'));
    expect(one.runtime.running).toBe(0);
  });

  it('4: a reply lost before the commit repeats the exchange, and an outcome kept by nobody is sent again', async () => {
    const one = await fixture.node({ handlers: { work: () => 'done' } });
    await one.runtime.start();
    await one.events.next('idle');
    const settled = one.events.next('settled');
    void one.events
      .next('claimed')
      .then(() => one.faults.fail('exchange', { kind: 'unknown', when: 'before' }));
    const [id] = await one.enqueue({});
    await settled;
    expect(await one.store.get(id!)).toMatchObject({ status: 'succeeded', result: 'done', executions: 1 });
  });

  it('4: with history "drop" a success that left no trace counts as recorded, not as lost', async () => {
    const one = await fixture.node({ handlers: { work: { policy: { history: 'drop' }, run: () => {} } } });
    await one.runtime.start();
    await one.events.next('idle');
    const settled = one.events.next('settled');
    void one.events
      .next('claimed')
      .then(() => one.faults.fail('exchange', { kind: 'unknown', when: 'after' }));
    await one.enqueue({});
    expect(await settled).toMatchObject({ outcome: 'succeeded' });
  });

  it('5: a wakeup during a turn forces another, although the answer was empty', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    const answered = deferred();
    const goOn = deferred();
    const off = one.debug.at('exchange.answered', () => {
      answered.resolve();
      return goOn.promise;
    });
    await one.runtime.start();
    await answered.promise;
    off();
    const settled = one.events.next('settled');
    await one.enqueue({});
    goOn.resolve();
    await settled;
  });

  it('5: the next due job is found without a poll, and an earlier one lowers the timer', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    const order: string[] = [];
    one.events.on('settled', ({ jobId }) => order.push(jobId));
    const both = one.count('settled', 2);
    const [late] = await one.enqueue({ delayMs: 120 });
    const [early] = await one.enqueue({ delayMs: 40 });
    await both;
    expect(order).toEqual([early, late]);
  });

  it('5: a job that the node gives back at once is due at once', async () => {
    let runs = 0;
    const one = await fixture.node({
      handlers: {
        work: (_payload, context) => {
          runs += 1;
          if (runs < 4) context.snooze(0);
        },
      },
    });
    await one.runtime.start();
    const done = one.events.next('settled', ({ outcome }) => outcome === 'succeeded');
    await one.enqueue({});
    await done;
    expect(runs).toBe(4);
  });

  it('7: a row that cannot be recorded is singled out and recorded as failed with the reason', async () => {
    const one = await fixture.node({ settings: { concurrency: 16 }, handlers: { work: () => {} } });
    const real = one.real.exchange.bind(one.real);
    one.real.exchange = (request) =>
      real({
        ...request,
        settle: request.settle.map((settlement) =>
          settlement.id === poisoned && settlement.outcome === 'succeeded'
            ? { ...settlement, result: '"\\u0000"' }
            : settlement,
        ),
      });
    const ids = await one.enqueue(...Array.from({ length: 16 }, () => ({})));
    const poisoned = ids[5];
    const settled = one.count('settled', 16);
    await one.runtime.start();
    await settled;
    for (const id of ids) {
      const job = await one.store.get(id);
      expect(job?.status).toBe(id === poisoned ? 'failed' : 'succeeded');
      if (id === poisoned) expect(job?.error).toMatch(/could not be recorded: .*Unicode/);
    }
  });

  it('a missing partition is made and the same exchange is sent again, not split', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    const parts = await fixture.database.query<{ part: string }>(
      `select inhrelid::regclass::text as part from pg_inherits where inhparent = 'ratchet.job_history'::regclass`,
    );
    for (const { part } of parts) await fixture.database.query(`drop table ${part}`);
    const fault = one.events.next('fault');
    const settled = one.events.next('settled');
    await one.enqueue({});
    expect(await fault).toMatchObject({ where: 'exchange', kind: 'missing_partition' });
    expect(await settled).toMatchObject({ outcome: 'succeeded' });
  });

  it('a deadlock is retried at once and costs no line of log', async () => {
    const one = await fixture.node({ handlers: { work: () => {} } });
    await one.runtime.start();
    await one.events.next('idle');
    void one.faults.fail('exchange', { kind: 'rolled_back', when: 'before' });
    const fault = one.events.next('fault');
    const settled = one.events.next('settled');
    await one.enqueue({});
    expect(await fault).toMatchObject({ kind: 'rolled_back', retryInMs: 0 });
    await settled;
    expect(fixture.logs.filter(({ level }) => level !== 'log')).toEqual([]);
  });
});
