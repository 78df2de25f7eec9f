import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import {
  defineJob,
  Job,
  JobScheduler,
  StoreError,
  TransactionalJobContext,
  type TransactionIsolation,
} from 'nestjs-ratchet';
import { DataSource } from 'typeorm';
import { DataSource as DataSource03 } from 'typeorm-03';
import { deferred } from '../support/engine-node.js';
import { TransactionalFixture } from './transactional-fixture.js';

const fixture = new TransactionalFixture();
beforeAll(() => fixture.open());
afterEach(() => fixture.clear());
afterAll(() => fixture.close());

const Work = defineJob<{ text: string }>('work', {});
const Child = defineJob<{ text: string }>('child', { lane: 'children' });

type Body = (ctx: TransactionalJobContext<{ text: string }>) => unknown;

/** A provider with one transactional handler that does `body`. */
function handlerOf(body: Body, isolation?: TransactionIsolation) {
  @Injectable()
  class Works {
    @Job(Work, { transactional: isolation ? { isolation } : true })
    async work(_payload: { text: string }, ctx: TransactionalJobContext<{ text: string }>): Promise<unknown> {
      return body(ctx);
    }
  }
  return Works;
}

const write = (ctx: TransactionalJobContext<{ text: string }>, text = ctx.payload.text): Promise<unknown> =>
  ctx.manager.query('insert into note values ($1)', [text]);

describe.each([
  { version: '1.x', make: (options: object) => new DataSource(options as never) },
  {
    version: '0.3',
    make: (options: object) => new DataSource03(options as never) as unknown as DataSource,
  },
])('a transactional handler, with TypeORM $version', ({ make }) => {
  it('commits its rows, its children and its completion together', async () => {
    let seen: unknown;
    const { app, scheduler, ended, debug } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        await ctx.enqueue(Child, { text: 'of the transaction' });
        await app.get(JobScheduler).enqueue(Child, { text: 'too' }, { transaction: ctx.manager });
        return { done: true };
      }),
      { make },
    );
    debug.at('transaction.committing', async (id) => {
      seen = { notes: await fixture.notes(), children: await children(), job: await scheduler.get(id) };
    });
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded', result: { done: true } });
    expect(seen).toMatchObject({ notes: [], children: [], job: { status: 'running' } });
    expect(await fixture.notes()).toEqual(['one']);
    expect(await children()).toHaveLength(2);
  });

  it('commits nothing when it throws, and runs again', async () => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx, `execution ${ctx.execution}`);
        await ctx.enqueue(Child, { text: 'x' });
        if (ctx.execution === 1) throw new Error('the first');
      }),
      { make },
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
    expect(await fixture.notes()).toEqual(['execution 2']);
    expect(await children()).toHaveLength(1);
  });

  it('is never recorded as succeeded when a statement failed and it went on', async () => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        await ctx.manager.query('select 1/0').catch(() => undefined);
      }),
      { make, options: { maxRetries: 0 } },
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('TRANSACTION_BROKEN'),
    });
    expect(await fixture.notes()).toEqual([]);
  });

  it('may let what may fail fail in a nested transaction', async () => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        await ctx.manager
          .transaction(async (nested) => {
            await nested.query(`insert into note values ('undone')`);
            await nested.query('select 1/0');
          })
          .catch(() => undefined);
        await ctx.manager.transaction((nested) => nested.query(`insert into note values ('nested')`));
      }),
      { make },
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    expect(await fixture.notes()).toEqual(['nested', 'one']);
  });

  it.each([
    ['commitTransaction()', (ctx: TransactionalJobContext) => ctx.manager.queryRunner!.commitTransaction()],
    [
      'rollbackTransaction()',
      (ctx: TransactionalJobContext) => ctx.manager.queryRunner!.rollbackTransaction(),
    ],
    ['release()', (ctx: TransactionalJobContext) => ctx.manager.queryRunner!.release()],
  ])('is refused %s, and nothing of it is kept', async (call, end) => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        await end(ctx);
      }),
      { make, options: { maxRetries: 0 } },
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(
        new RegExp(`TRANSACTION_ENDED_BY_HANDLER: Works.work: ${call.replace(/[()]/g, '\\$&')}`),
      ),
    });
    expect(await fixture.notes()).toEqual([]);
  });

  it.each(['commit', 'rollback', 'commit and chain', 'rollback; begin'])(
    'is not recorded as succeeded when it sends %s itself',
    async (text) => {
      const { scheduler, ended } = await fixture.boot(
        handlerOf((ctx) => ctx.manager.query(text)),
        { make, options: { maxRetries: 0 } },
      );
      const { id } = await scheduler.enqueue(Work, { text: 'one' });
      expect(await ended(id)).toMatchObject({
        status: 'failed',
        error: expect.stringContaining('TRANSACTION_ENDED_BY_HANDLER'),
      });
    },
  );

  it.each(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const)('runs in %s', async (isolation) => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        ctx.progress('half');
        const [row] = await ctx.manager.query<[{ level: string }]>(
          `select current_setting('transaction_isolation') as level`,
        );
        return row.level;
      }, isolation),
      { make },
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({
      status: 'succeeded',
      failures: 0,
      result: isolation.toLowerCase(),
      progress: 'half',
    });
  });
});

describe('a transactional handler', () => {
  it('commits its rows with a snooze, and is due again after it', async () => {
    const { scheduler, ended, store } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx, `execution ${ctx.execution}`);
        if (ctx.execution === 1) ctx.snooze(20);
      }),
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0, executions: 2 });
    expect(await fixture.notes()).toEqual(['execution 1', 'execution 2']);
    expect((await store.executions(id)).map(({ outcome }) => outcome)).toEqual(['snoozed', 'succeeded']);
  });

  it('rolls back when its claim was taken away meanwhile, and says so', async () => {
    const held = deferred();
    const begun = deferred();
    const { scheduler, events, store } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        begun.resolve();
        await held.promise;
      }),
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    await begun.promise;
    // As another node's rescue does it: nobody here is told.
    await fixture.database.query(
      `update ratchet.job set status = 2, bucket = null, begun_at = null, claim_seq = claim_seq + 1 where id = $1`,
      [id],
    );
    const lost = events.next('lost', ({ jobId }) => jobId === id);
    held.resolve();
    await lost;
    expect(await fixture.notes()).toEqual([]);
    expect(await store.get(id)).toMatchObject({ status: 'paused' });
  });

  it('does not begin when its claim is gone before its turn comes', async () => {
    const held = deferred();
    const first = deferred<string>();
    const ran: string[] = [];
    const { scheduler, events } = await fixture.boot(
      handlerOf(async (ctx) => {
        ran.push(ctx.jobId);
        first.resolve(ctx.jobId);
        await held.promise;
      }),
      // One at once: the second waits for the first.
      { source: { poolSize: 3 } },
    );
    const both = await scheduler.enqueueMany(Work, [{ payload: { text: '1' } }, { payload: { text: '2' } }]);
    const running = await first.promise;
    const waiting = both.map(({ id }) => id).find((id) => id !== running)!;
    await fixture.database.query(
      `update ratchet.job set status = 2, bucket = null, begun_at = null, claim_seq = claim_seq + 1 where id = $1`,
      [waiting],
    );
    const lost = events.next('lost', ({ jobId }) => jobId === waiting);
    held.resolve();
    await lost;
    expect(ran).toEqual([running]);
  });

  it('ends with a failure when it times out, whatever it does later', async () => {
    const held = deferred();
    const { scheduler, ended, events } = await fixture.boot(
      (() => {
        @Injectable()
        class Slow {
          @Job('slow', { timeout: 100, maxRetries: 0, transactional: true })
          async slow(_payload: unknown, ctx: TransactionalJobContext): Promise<void> {
            await ctx.manager.query(`insert into note values ('late')`);
            await held.promise;
          }
        }
        return Slow;
      })(),
    );
    const { id } = await scheduler.enqueueNamed('slow', {});
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('JOB_TIMEOUT'),
    });
    const late = events.next('late', ({ jobId }) => jobId === id);
    held.resolve();
    expect(await late).toMatchObject({ outcome: 'failed', recorded: true });
    expect(await fixture.notes()).toEqual([]);
  });

  it('rolls back when its job is canceled', async () => {
    const begun = deferred();
    const { scheduler, events } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        begun.resolve();
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      }),
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    await begun.promise;
    const late = events.next('late', ({ jobId }) => jobId === id);
    await scheduler.cancel(id);
    await late;
    expect(await scheduler.get(id)).toMatchObject({ status: 'canceled' });
    expect(await fixture.notes()).toEqual([]);
  });

  it('refuses what it left behind between its end and the commit', async () => {
    const held = deferred();
    let refused: Promise<unknown> = Promise.resolve();
    const { scheduler, ended, debug } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        refused = held.promise.then(() => write(ctx, 'behind')).catch((error: unknown) => error);
      }),
    );
    debug.at('transaction.committing', async () => {
      held.resolve();
      expect(await refused).toMatchObject({ code: 'TRANSACTION_OVER' });
    });
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0 });
    expect(await fixture.notes()).toEqual(['one']);
  });

  it('takes children along that it did not wait for', async () => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf((ctx) => {
        void ctx.enqueue(Child, { text: 'not awaited' });
      }),
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    expect(await children()).toHaveLength(1);
  });

  it('fails when it leaves a nested transaction open', async () => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf((ctx) => ctx.manager.queryRunner!.startTransaction()),
      { options: { maxRetries: 0 } },
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('NESTED_TRANSACTION_OPEN'),
    });
  });

  it('fails by a deferred constraint, and is tried again', async () => {
    await fixture.database.query(
      'create table if not exists one (n int, constraint once unique (n) deferrable initially deferred)',
    );
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        await write(ctx);
        await ctx.manager.query('insert into one values (1)');
        if (ctx.execution === 1) await ctx.manager.query('insert into one values (1)');
      }),
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
    expect(await fixture.notes()).toEqual(['one']);
  });

  it('is tried again after a serialization failure', async () => {
    const { scheduler, ended } = await fixture.boot(
      handlerOf(async (ctx) => {
        const [{ count }] = await ctx.manager.query<[{ count: number }]>(
          'select count(*)::int as count from note',
        );
        if (ctx.execution === 1) {
          const other = await fixture.database.connect();
          await other.query('begin isolation level serializable');
          await other.query('select count(*) from note');
          await other.query(`insert into note values ('other')`);
          await other.query('commit');
        }
        await write(ctx, `count ${count}`);
      }, 'SERIALIZABLE'),
    );
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 1 });
    expect(await fixture.notes()).toEqual(['count 1', 'other']);
  });

  it('is given back, uncharged, when its transaction cannot begin', async () => {
    const { scheduler, events, store } = await fixture.boot(handlerOf(() => undefined));
    const stands = store.stands.bind(store);
    store.stands = async () => {
      store.stands = stands;
      throw new StoreError('unavailable', 'STORE_FAULT: made by a test', '53300');
    };
    const settled = events.next('settled');
    const { id } = await scheduler.enqueue(Work, { text: 'one' });
    expect(await settled).toMatchObject({ outcome: 'snoozed', delayMs: 5_000 });
    expect(await scheduler.get(id)).toMatchObject({ status: 'pending', failures: 0 });
  });

  it('may be request-scoped', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @Job(Work, { transactional: true })
      async work({ text }: { text: string }, ctx: TransactionalJobContext): Promise<void> {
        await ctx.manager.query('insert into note values ($1)', [text]);
      }
    }
    const { scheduler, ended } = await fixture.boot(Scoped);
    const { id } = await scheduler.enqueue(Work, { text: 'scoped' });
    expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    expect(await fixture.notes()).toEqual(['scoped']);
  });

  it('keeps nothing of a success that its definition drops', async () => {
    const Dropped = defineJob('dropped', { history: 'drop' });
    @Injectable()
    class Drops {
      @Job(Dropped, { transactional: true })
      async work(_payload: unknown, ctx: TransactionalJobContext): Promise<void> {
        await ctx.manager.query(`insert into note values ('dropped')`);
      }
    }
    const { scheduler, events, store } = await fixture.boot(Drops);
    const settled = events.next('settled');
    const { id } = await scheduler.enqueue(Dropped);
    expect(await settled).toMatchObject({ jobId: id, outcome: 'succeeded' });
    expect(await store.get(id)).toBeUndefined();
    expect(await fixture.notes()).toEqual(['dropped']);
  });
});

describe('a transactional job that was claimed ahead', () => {
  it('tells how long it ran, and one that began with its claim does not', async () => {
    const gate = deferred();
    const { scheduler, ended, store, events } = await fixture.boot(
      handlerOf(() => gate.promise),
      { options: { lanes: { default: { concurrency: 1, bufferSize: 5 } } } },
    );
    const told = new Map<string, number | undefined>();
    const settle = store.settleWithin.bind(store);
    store.settleWithin = (transaction, settlement) => {
      told.set(settlement.id, settlement.ranMs);
      return settle(transaction, settlement);
    };
    const claimed = events.next('turn', (turn) => turn.claimed > 0);
    const [first, ...others] = await scheduler.enqueueMany(
      Work,
      ['a', 'b', 'c'].map((text) => ({ payload: { text } })),
    );
    await claimed;
    gate.resolve();
    for (const { id } of [first!, ...others])
      expect(await ended(id)).toMatchObject({ status: 'succeeded', executions: 1 });
    expect(told.get(first!.id)).toBeUndefined();
    expect(others.map(({ id }) => typeof told.get(id))).toEqual(['number', 'number']);
  });
});

describe('how many run at once', () => {
  it('leaves two connections of the pool to others, so that they cannot deadlock', async () => {
    let running = 0;
    let most = 0;
    const { scheduler, ended, source } = await fixture.boot(
      handlerOf(async (ctx) => {
        running += 1;
        most = Math.max(most, running);
        await ctx.manager.query('select pg_sleep(0.02)');
        // Beside the transaction: it needs one more connection of the same pool.
        await source.query('select 1');
        running -= 1;
      }),
      { source: { poolSize: 4 } },
    );
    const handles = await scheduler.enqueueMany(
      Work,
      Array.from({ length: 30 }, (_, n) => ({ payload: { text: String(n) } })),
    );
    await Promise.all(handles.map(({ id }) => ended(id)));
    expect(most).toBe(2);
  });
});

async function children(): Promise<unknown[]> {
  return fixture.database.query(`select from ratchet.job where name = 'child'`);
}
