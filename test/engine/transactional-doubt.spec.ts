import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { defineJob, Job, TransactionalJobContext } from 'nestjs-ratchet';
import { deferred } from '../support/engine-node.js';
import { createFlakyNetwork, type FlakyNetwork } from '../support/flaky-network.js';
import { TransactionalFixture } from './transactional-fixture.js';

const fixture = new TransactionalFixture();
let network: FlakyNetwork;
beforeAll(async () => {
  await fixture.open();
  network = await createFlakyNetwork(fixture.database.url);
});
afterEach(() => fixture.clear());
afterAll(async () => {
  await network.close();
  await fixture.close();
});

const Write = defineJob('write');
let body: (ctx: TransactionalJobContext) => Promise<void> = async () => {};

@Injectable()
class Writes {
  @Job(Write, { transactional: true })
  async write(_payload: unknown, ctx: TransactionalJobContext): Promise<void> {
    await ctx.manager.query('insert into note values ($1)', [`execution ${ctx.execution}`]);
    await body(ctx);
  }
}
afterEach(() => {
  body = async () => {};
});

/** Ends the sessions of the application's pool that stand inside a transaction. */
async function cutTransactions(): Promise<void> {
  await fixture.database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'the-app' and state like 'idle in transaction%'`,
  );
}

describe('a commit whose reply is lost', () => {
  it('is recorded as succeeded, once, when the database has it', async () => {
    const { scheduler, ended, store, events } = await fixture.boot(Writes, { url: network.url });
    let settled = 0;
    events.on('settled', () => (settled += 1));
    const told = events.next('settled');
    const lost = network.loseReplyTo(/COMMIT/);
    const { id } = await scheduler.enqueue(Write);
    await lost;
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0 });
    expect(await fixture.notes()).toEqual(['execution 1']);
    expect(await store.executions(id)).toHaveLength(1);
    await told;
    expect(settled).toBe(1);
  });

  it('is a failure that is tried again when the database has it not', async () => {
    const { scheduler, ended, debug, store } = await fixture.boot(Writes);
    const off = debug.at('transaction.committing', async () => {
      off();
      await cutTransactions();
    });
    const { id } = await scheduler.enqueue(Write);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
    expect(await fixture.notes()).toEqual(['execution 2']);
    const [first] = await store.executions(id);
    expect(first).toMatchObject({
      outcome: 'retried',
      error: expect.stringContaining('TRANSACTION_CUT_OFF'),
    });
  });

  it('is asked for until the database is back', async () => {
    const { scheduler, ended, events } = await fixture.boot(Writes, { url: network.url });
    const lost = network.loseReplyTo(/COMMIT/);
    const asked = events.next('fault', ({ where }) => where === 'commit of a handler');
    const { id } = await scheduler.enqueue(Write);
    await lost;
    network.refuse();
    await asked;
    network.restore();
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0 });
    expect(await fixture.notes()).toEqual(['execution 1']);
  });

  it.each(['transaction.settling', 'transaction.committing'] as const)(
    'costs no more than its guard when the network goes silent at %s',
    async (point) => {
      const { scheduler, ended, debug } = await fixture.boot(Writes, { url: network.url, guardMs: 300 });
      const silent = deferred<number>();
      const off = debug.at(point, async () => {
        off();
        network.swallow();
        silent.resolve(network.ended);
      });
      const { id } = await scheduler.enqueue(Write);
      const before = await silent.promise;
      await until(() => network.ended > before);
      network.restore();
      expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
      expect(await fixture.notes()).toEqual(['execution 2']);
    },
  );

  it('does not keep a drain', async () => {
    const { scheduler, runtime, app, events } = await fixture.boot(Writes, {
      url: network.url,
      options: { drainTimeout: '100ms' },
    });
    const lost = network.loseReplyTo(/COMMIT/);
    const asked = events.next('fault', ({ where }) => where === 'commit of a handler');
    const { id } = await scheduler.enqueue(Write);
    await lost;
    network.refuse();
    await asked;
    await runtime.close();
    network.restore();
    expect(app.get(runtime.constructor as never)).toBe(runtime);
    expect(await statusOf(id)).toBe('succeeded');
  });
});

describe('a connection that is lost', () => {
  it('while the handler works: a failure that is tried again', async () => {
    body = async (ctx) => {
      if (ctx.execution === 1) await cutTransactions();
      await ctx.manager.query('select 1').catch(() => undefined);
    };
    const { scheduler, ended } = await fixture.boot(Writes);
    const { id } = await scheduler.enqueue(Write);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
    expect(await fixture.notes()).toEqual(['execution 2']);
  });

  it('before the last statement: a failure that is tried again', async () => {
    const { scheduler, ended, debug } = await fixture.boot(Writes);
    const off = debug.at('transaction.settling', async () => {
      off();
      await cutTransactions();
    });
    const { id } = await scheduler.enqueue(Write);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
    expect(await fixture.notes()).toEqual(['execution 2']);
  });
});

describe('a drain', () => {
  it('gives back what runs, uncharged, and nothing of it is committed', async () => {
    const held = deferred();
    const begun = deferred();
    body = async () => {
      begun.resolve();
      await held.promise;
    };
    const { scheduler, runtime, events } = await fixture.boot(Writes, { options: { drainTimeout: 0 } });
    const { id } = await scheduler.enqueue(Write);
    await begun.promise;
    const released = events.next('drain', ({ step }) => step === 'release');
    const drained = runtime.drain();
    await released;
    held.resolve();
    await drained;
    expect(await statusOf(id)).toBe('pending');
    expect(await fixture.notes()).toEqual([]);
  });

  it('does not give back what is being committed', async () => {
    const held = deferred();
    const committing = deferred();
    const { scheduler, runtime, events, debug } = await fixture.boot(Writes, {
      options: { drainTimeout: 0 },
    });
    debug.at('transaction.committing', () => {
      committing.resolve();
      return held.promise;
    });
    const { id } = await scheduler.enqueue(Write);
    await committing.promise;
    const waited = events.next('drain', ({ step }) => step === 'wait');
    const drained = runtime.drain();
    await waited;
    held.resolve();
    await drained;
    expect(await statusOf(id)).toBe('succeeded');
    expect(await fixture.notes()).toEqual(['execution 1']);
  });
});

describe('a reconcile', () => {
  it('neither adopts nor gives back what is being committed', async () => {
    const held = deferred();
    const committing = deferred();
    const { scheduler, ended, debug, store, events } = await fixture.boot(Writes, { url: network.url });
    debug.at('transaction.committing', () => {
      committing.resolve();
      return held.promise;
    });
    const { id } = await scheduler.enqueue(Write);
    await committing.promise;
    const lost = network.loseReplyTo(/ratchet-exchange/);
    const reconciled = events.next('reconciled', ({ cause }) => cause === 'unknown_commit');
    const other = await scheduler.enqueue(Write);
    await lost;
    const { strays } = await reconciled;
    // Of the two claims only the one that the lost reply brought is news.
    expect(strays).toBeLessThanOrEqual(1);
    held.resolve();
    for (const one of [id, other.id]) {
      expect(await ended(one)).toMatchObject({ status: 'succeeded', executions: 1 });
      expect(await store.executions(one)).toHaveLength(1);
    }
    expect(await fixture.notes()).toEqual(['execution 1', 'execution 1']);
  });
});

async function statusOf(id: string): Promise<string | undefined> {
  const [row] = await fixture.database.query<{ status: string }>(
    'select status from ratchet.jobs where id = $1',
    [id],
  );
  return row?.status;
}

async function until(seen: () => boolean): Promise<void> {
  while (!seen()) await new Promise((resolve) => setTimeout(resolve, 10));
}
