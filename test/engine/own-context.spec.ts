import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../lib/cluster/clock.js';
import { currentJob } from '../../lib/engine/async-context.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { engineFixture, type Node } from './engine-fixture.js';
import { pollEvery } from '../support/poll.js';

/** What a request would hold: its tenant, its trace, its open transaction. */
const request = new AsyncLocalStorage<string>();

/** Real time, except that the minute between two reconciles is short. */
class HastyClock extends SystemClock {
  override timer(ms: number, callback: () => void, background?: boolean): () => void {
    return super.timer(ms === 60_000 ? 25 : ms, callback, background);
  }
}

describe('the async context of jobs', () => {
  const fixture = engineFixture();

  /** A node that notes, for each execution, what it finds of a request before and after an await, and the job's own context. */
  async function node(clock = new SystemClock()): Promise<Node & { readonly seen: unknown[] }> {
    const seen: unknown[] = [];
    const look = (context: JobContext): void =>
      void seen.push(request.getStore() ?? (currentJob() === context ? 'own' : 'lost'));
    const made = await fixture.node({
      settings: { ...pollEvery(59_000) },
      parts: { clock },
      handlers: {
        work: async (_payload, context) => {
          look(context);
          await new Promise((resolve) => setImmediate(resolve));
          look(context);
        },
      },
    });
    return Object.assign(made, { seen });
  }

  it('is nobody else’s: not of the caller who enqueued, nor of the one beside it', async () => {
    const one = await node();
    const exchange = one.real.exchange.bind(one.real);
    one.real.exchange = (given) => {
      statements.push(request.getStore());
      return exchange(given);
    };
    const statements: unknown[] = [];
    await one.runtime.start();
    await one.events.next('idle');
    const settled = one.count('settled', 6);
    await Promise.all(
      ['a', 'b', 'c'].map((tenant) => request.run(tenant, () => one.enqueue({ payload: '1' }, {}))),
    );
    await settled;
    expect(one.seen).toEqual(Array(12).fill('own'));
    expect(statements.filter((store) => store !== undefined)).toEqual([]);
  });

  it('is nobody else’s after a timer that a request has set', async () => {
    const one = await node();
    await one.runtime.start();
    await one.events.next('idle');
    const settled = one.events.next('settled');
    await request.run('a', () => one.enqueue({ delayMs: 30 }));
    await settled;
    expect(one.seen).toEqual(['own', 'own']);
  });

  it('is nobody else’s for a retry of the exchange, a claim whose reply was lost, and a stray', async () => {
    const one = await node(new HastyClock());
    await request.run('boot', () => one.runtime.start());
    await one.events.next('idle');
    let settled = one.events.next('settled');
    const failed = one.faults.fail(
      'exchange',
      { kind: 'unavailable', when: 'before' },
      { kind: 'unknown', when: 'after' },
    );
    await request.run('a', () => one.enqueue({}));
    await failed;
    await settled;
    settled = one.events.next('settled');
    const [id] = await one.enqueue({ delayMs: 3_600_000 });
    await fixture.database.query(
      `update ratchet.job set status = 1, claim_seq = 7, begun_at = now(), executions = 1,
              bucket = (select id from ratchet.bucket) where id = $1`,
      [id],
    );
    await settled;
    expect(one.seen).toEqual(['own', 'own', 'own', 'own']);
  });

  it('holds for the listeners of its signal, whoever cancels it', async () => {
    const seen: unknown[] = [];
    const one = await fixture.node({
      handlers: {
        work: (_payload, context) =>
          new Promise<void>((resolve) => {
            context.signal.addEventListener('abort', () => {
              seen.push(request.getStore(), currentJob() === context);
              resolve();
            });
          }),
      },
    });
    await one.runtime.start();
    const begun = one.events.next('claimed');
    const [id] = await one.enqueue({});
    const { claimSeq } = await begun;
    const late = one.events.next('late');
    await one.store.cancel(id!);
    request.run('a', () => one.messages.signal({ kind: 'cancel', jobId: id!, claimSeq }));
    await late;
    expect(seen).toEqual([undefined, true]);
  });
});
