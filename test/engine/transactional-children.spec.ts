import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { defineJob, Job, type JobScheduler, TransactionalJobContext } from 'nestjs-ratchet';
import { HandlerChildren } from '../../lib/engine/transactions/handler-children.js';
import { deferred } from '../support/engine-node.js';
import { TransactionalFixture } from './transactional-fixture.js';

const fixture = new TransactionalFixture();
beforeAll(() => fixture.open());
afterEach(() => fixture.clear());
afterAll(() => fixture.close());

const Work = defineJob('work', { maxRetries: 0 });
const Child = defineJob('child', { lane: 'children' });
let body: (ctx: TransactionalJobContext) => unknown = () => undefined;
let scheduler: JobScheduler;
let ended: (id: string) => Promise<unknown>;

@Injectable()
class Works {
  @Job(Work, { transactional: true })
  async work(_payload: unknown, ctx: TransactionalJobContext): Promise<unknown> {
    await ctx.manager.query(`insert into note values ('written')`);
    return body(ctx);
  }
}

/** The job's end. */
async function run(given: typeof body): Promise<unknown> {
  ({ scheduler, ended } = await fixture.boot(Works));
  await scheduler.enqueue(Child, undefined, { businessKey: 'held' });
  body = given;
  return ended((await scheduler.enqueue(Work)).id);
}

const held = (ctx: TransactionalJobContext): Promise<unknown> =>
  ctx.enqueue(Child, undefined, { businessKey: 'held' });

describe('a child that is refused', () => {
  it.each<[string, typeof body]>([
    ['is not awaited', (ctx) => void held(ctx)],
    [
      'was refused while the handler went on',
      async (ctx) => {
        const child = held(ctx);
        await ctx.enqueue(Child);
        return void child;
      },
    ],
    [
      'has an argument that cannot be right',
      (ctx) => void ctx.enqueue(Child, undefined, { delay: 'soon' as never }),
    ],
  ])('fails the execution with its error when it %s', async (how, given) => {
    const code = how.startsWith('has') ? 'INVALID_ENQUEUE_OPTION' : 'BUSINESS_KEY_HELD';
    expect(await run(given)).toMatchObject({ status: 'failed', error: expect.stringContaining(code) });
    expect(await fixture.notes()).toEqual([]);
  });

  it.each<[string, typeof body]>([
    ['is awaited and caught', (ctx) => held(ctx).catch(() => undefined)],
    ['is caught without an await', (ctx) => void held(ctx).catch(() => undefined)],
    [
      'is awaited later',
      async (ctx) => {
        const child = held(ctx);
        await ctx.enqueue(Child);
        await child.catch(() => undefined);
      },
    ],
    ['is one of several', async (ctx) => (await Promise.allSettled([held(ctx), ctx.enqueue(Child)])).length],
  ])('does not when it %s', async (_how, given) => {
    expect(await run(given)).toMatchObject({ status: 'succeeded', failures: 0 });
    expect(await fixture.notes()).toEqual(['written']);
  });
});

describe('a child that is asked for after its handler has ended', () => {
  it('is none of it', async () => {
    const children = new HandlerChildren();
    expect(await children.missedRefusal()).toBeUndefined();
    const late = Promise.reject(new Error('late'));
    expect(children.watch(late)).toBe(late);
    await expect(late).rejects.toThrow('late');
    expect(await children.missedRefusal()).toBeUndefined();
  });
});

describe('the result of a child', () => {
  const REFUSED = { code: 'RESULT_OF_UNCOMMITTED' };

  it.each<[string, (ctx: TransactionalJobContext) => Promise<{ result(): Promise<unknown> }>]>([
    ['that ctx.enqueue made', (ctx) => ctx.enqueue(Child)],
    [
      'that the scheduler made in the same transaction',
      (ctx) => scheduler.enqueue(Child, undefined, { transaction: ctx.manager }),
    ],
    [
      'of a nested transaction',
      (ctx) => ctx.manager.transaction((nested) => ctx.enqueue(Child, undefined, { transaction: nested })),
    ],
    [
      'that was found by its key',
      async (ctx) => {
        await ctx.enqueue(Child, undefined, { businessKey: 'own' });
        return ctx.enqueue(Child, undefined, { businessKey: 'own', onConflict: 'return' });
      },
    ],
  ])('is refused at once inside the transaction %s', async (_which, make) => {
    let error: unknown;
    const end = await run(async (ctx) => {
      const handle = await make(ctx);
      error = await handle.result().catch((refusal: unknown) => refusal);
    });
    expect(error).toMatchObject(REFUSED);
    expect(end).toMatchObject({ status: 'succeeded' });
  });

  it('may be awaited by others, whom the commit does not wait for', async () => {
    const given = deferred<{ result(): Promise<unknown> }>();
    const ended = given.promise.then((handle) => handle.result());
    await run(async (ctx) => given.resolve(await ctx.enqueue(Child)));
    const [child] = await fixture.database.query<{ id: string }>(
      `select id from ratchet.job where name = 'child' and parent_id is not null`,
    );
    await scheduler.cancel(child!.id);
    await expect(ended).rejects.toMatchObject({ code: 'JOB_CANCELED' });
  });

  it('may be awaited inside when another had enqueued it', async () => {
    let error: unknown;
    await run(async (ctx) => {
      const handle = await ctx.enqueue(Child, undefined, { businessKey: 'held', onConflict: 'return' });
      error = await handle.result({ timeout: 1 }).catch((refusal: unknown) => refusal);
    });
    expect(error).toMatchObject({ code: 'RESULT_TIMEOUT' });
  });
});
