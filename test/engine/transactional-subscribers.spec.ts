import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type CallHandler, Injectable, Logger } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { defineJob, Job, TransactionalJobContext } from 'nestjs-ratchet';
import { map } from 'rxjs';
import { DataSource, type EntitySubscriberInterface, type QueryRunner } from 'typeorm';
import { DataSource as DataSource03 } from 'typeorm-03';
import { deferred } from '../support/engine-node.js';
import { TransactionalFixture } from './transactional-fixture.js';

/** What of the app takes part in a transactional handler without being the handler. */
const fixture = new TransactionalFixture();
beforeAll(() => fixture.open());
afterEach(() => fixture.clear());
afterAll(() => fixture.close());

const Work = defineJob('work', { maxRetries: 0 });
let body: (ctx: TransactionalJobContext) => unknown = () => undefined;
let runner: QueryRunner | undefined;
afterEach(() => {
  body = () => undefined;
  runner = undefined;
});

@Injectable()
class Works {
  @Job(Work, { transactional: true })
  async work(_payload: unknown, ctx: TransactionalJobContext): Promise<unknown> {
    runner = ctx.manager.queryRunner;
    await ctx.manager.query(`insert into note values ('handler')`);
    return body(ctx);
  }
}

const note = (text: string): Promise<unknown> => runner!.query('insert into note values ($1)', [text]);

describe.each([
  { version: '1.x', make: (options: object) => new DataSource(options as never) },
  {
    version: '0.3',
    make: (options: object) => new DataSource03(options as never) as unknown as DataSource,
  },
])('a subscriber of TypeORM $version', ({ make }) => {
  /** Hears only of the handler's transaction, not of others on the DataSource. */
  async function boot(events: Record<string, () => Promise<unknown>>) {
    const app = await fixture.boot(Works, { make });
    const subscriber = Object.fromEntries(
      Object.entries(events).map(([event, act]) => [
        event,
        ({ queryRunner }: { queryRunner: QueryRunner }) => (queryRunner === runner ? act() : undefined),
      ]),
    ) as EntitySubscriberInterface;
    app.source.subscribers.push(subscriber);
    return app;
  }

  it('may query before and after the commit', async () => {
    const { scheduler, events } = await boot({
      beforeTransactionCommit: () => note('before'),
      afterTransactionCommit: () => note('after'),
    });
    const settled = events.next('settled');
    const { id } = await scheduler.enqueue(Work);
    expect(await settled).toMatchObject({ jobId: id, outcome: 'succeeded' });
    expect(await fixture.notes()).toEqual(['after', 'before', 'handler']);
  });

  it('is part of the transaction: what it writes goes with a claim that was lost, what it throws fails the job', async () => {
    let lose = true;
    const { scheduler, ended, events, store } = await boot({
      beforeTransactionCommit: async () => {
        await note('before');
        if (!lose) throw new Error('the subscriber says no');
        await fixture.database.query(
          `update ratchet.job set status = 2, bucket = null, begun_at = null, claim_seq = claim_seq + 1 where name = 'work'`,
        );
      },
    });
    const lost = events.next('lost');
    const { id } = await scheduler.enqueue(Work);
    await lost;
    expect(await store.get(id)).toMatchObject({ status: 'paused' });
    lose = false;
    expect(await ended((await scheduler.enqueue(Work)).id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('the subscriber says no'),
    });
    expect(await fixture.notes()).toEqual([]);
  });

  it('may query when it is rolled back, and the connection goes on', async () => {
    const seen: unknown[] = [];
    const warned = jest.spyOn(Logger.prototype, 'warn');
    const { scheduler, ended } = await boot({
      beforeTransactionRollback: () => note('rollback').then(() => seen.push('before')),
      afterTransactionRollback: () => note('rolled back').then(() => seen.push('after')),
    });
    body = () => Promise.reject(new Error('no'));
    const { id } = await scheduler.enqueue(Work);
    expect(await ended(id)).toMatchObject({ status: 'failed', error: expect.stringContaining('no') });
    expect(seen).toEqual(['before', 'after']);
    expect(await fixture.notes()).toEqual(['rolled back']);
    expect(warned).not.toHaveBeenCalledWith(expect.stringContaining('its connection is closed'));
    warned.mockRestore();
  });

  it('does not open the way for what the handler left behind', async () => {
    const held = deferred();
    let refused: Promise<unknown> = Promise.resolve();
    body = () => {
      refused = held.promise.then(() => note('behind')).catch((error: unknown) => error);
    };
    const { scheduler, ended } = await boot({
      beforeTransactionCommit: async () => {
        held.resolve();
        expect(await refused).toMatchObject({ code: 'TRANSACTION_OVER' });
        await note('before');
      },
    });
    const { id } = await scheduler.enqueue(Work);
    expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    expect(await fixture.notes()).toEqual(['before', 'handler']);
  });

  it('that leaves a nested transaction open keeps it from being committed', async () => {
    const { scheduler, ended } = await boot({
      beforeTransactionCommit: async () => {
        if (runner!.isTransactionActive) await runner!.startTransaction();
      },
    });
    const { id } = await scheduler.enqueue(Work);
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('NESTED_TRANSACTION_OPEN'),
    });
    expect(await fixture.notes()).toEqual([]);
  });
});

describe('guards and interceptors', () => {
  let mode: 'pass' | 'refuse' | 'throw' = 'pass';
  const providers = [
    { provide: APP_GUARD, useValue: { canActivate: () => mode !== 'refuse' } },
    {
      provide: APP_INTERCEPTOR,
      useValue: {
        intercept: (context: { getArgs(): [unknown, TransactionalJobContext] }, next: CallHandler) => {
          const [, ctx] = context.getArgs();
          return next.handle().pipe(
            map(async (result: unknown) => {
              await ctx.manager.query(`insert into note values ('interceptor')`);
              if (mode === 'throw') throw new Error('the interceptor says no');
              return { wrapped: result };
            }),
          );
        },
      },
    },
  ];

  it('work inside of the transaction', async () => {
    body = () => 'result';
    const { scheduler, ended } = await fixture.boot([Works, ...providers] as never, {
      options: { enhancers: { guards: true, interceptors: true } },
    });
    mode = 'pass';
    expect(await ended((await scheduler.enqueue(Work)).id)).toMatchObject({
      status: 'succeeded',
      result: { wrapped: 'result' },
    });
    expect(await fixture.notes()).toEqual(['handler', 'interceptor']);
    mode = 'throw';
    expect(await ended((await scheduler.enqueue(Work)).id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('the interceptor says no'),
    });
    mode = 'refuse';
    expect(await ended((await scheduler.enqueue(Work)).id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('GUARD_REFUSED'),
    });
    expect(await fixture.notes()).toEqual(['handler', 'interceptor']);
  });
});
