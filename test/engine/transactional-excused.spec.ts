import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { defineJob, Job, StoreError, TransactionalJobContext } from 'nestjs-ratchet';
import { type JobStore } from '../../lib/store/job-store.js';
import { PostgresJobStore } from '../../lib/store/postgres/postgres-job-store.js';
import { TransactionalFixture } from './transactional-fixture.js';

/** What keeps a transactional handler from its commit and is not its doing is not charged. */
const fixture = new TransactionalFixture();
beforeAll(() => fixture.open());
afterEach(() => fixture.clear());
afterAll(() => fixture.close());

const Plain = defineJob('plain', { maxRetries: 0 });
const Strict = defineJob('strict', { maxRetries: 0 });
const Other = defineJob('other', {});
const Child = defineJob('child', { lane: 'children' });
let body: (ctx: TransactionalJobContext) => Promise<void> = async () => {};
afterEach(() => {
  body = async () => {};
});

@Injectable()
class Works {
  @Job(Plain, { transactional: true })
  plain(_payload: unknown, ctx: TransactionalJobContext): Promise<void> {
    return this.work(ctx);
  }
  @Job(Strict, { transactional: { isolation: 'REPEATABLE READ' } })
  strict(_payload: unknown, ctx: TransactionalJobContext): Promise<void> {
    return this.work(ctx);
  }
  @Job(Other)
  async other(): Promise<void> {}

  private async work(ctx: TransactionalJobContext): Promise<void> {
    await ctx.manager.query('insert into note values ($1)', [`execution ${ctx.execution}`]);
    await body(ctx);
  }
}

const BY_DEFAULT = 'extra: options';
const strictByDefault = { source: { extra: { options: '-c default_transaction_isolation=serializable' } } };

async function dropHistory(): Promise<void> {
  const partitions = await fixture.database.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'ratchet.job_history'::regclass`,
  );
  for (const { name } of partitions) await fixture.database.query(`drop table ${name}`);
}

/** Its last statement fails, each time. */
function refuse(store: JobStore, kind: 'rolled_back' | 'unavailable', code: string): void {
  store.settleWithin = () =>
    Promise.reject(new StoreError(kind, `STORE_FAULT: made by a test (${code})`, code));
}

describe('a pause of a running job', () => {
  it.each([
    ['REPEATABLE READ', Strict, {}],
    [BY_DEFAULT, Plain, strictByDefault],
  ])('takes effect without a charge under %s', async (_level, definition, options) => {
    const { scheduler, events, store } = await fixture.boot(Works, options);
    body = async ({ jobId }) => {
      await scheduler.pause(jobId);
    };
    const settled = events.next('settled');
    const { id } = await scheduler.enqueue(definition);
    expect(await settled).toMatchObject({ outcome: 'released', error: expect.stringContaining('40001') });
    expect(await scheduler.get(id)).toMatchObject({ status: 'paused', failures: 0, crashes: 0 });
    expect((await store.executions(id)).map(({ outcome }) => outcome)).toEqual(['released']);
    expect(await fixture.notes()).toEqual([]);
  });

  it('is done with when it is resumed', async () => {
    const { scheduler, events, ended } = await fixture.boot(Works);
    body = async ({ jobId, execution }) => {
      if (execution === 1) await scheduler.pause(jobId);
    };
    const settled = events.next('settled');
    const { id } = await scheduler.enqueue(Strict);
    await settled;
    await scheduler.resume(id);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0 });
    expect(await fixture.notes()).toEqual(['execution 2']);
  });
});

describe('ctx.progress()', () => {
  it.each([
    ['REPEATABLE READ', Strict, {}],
    [BY_DEFAULT, Plain, strictByDefault],
  ])('does not disturb the commit under %s', async (_level, definition, options) => {
    const { scheduler, ended } = await fixture.boot(Works, options);
    body = async (ctx) => {
      ctx.progress('half');
      // An exchange that claims it takes reports along.
      await ended((await scheduler.enqueue(Other)).id);
    };
    const { id } = await scheduler.enqueue(definition);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', executions: 1, progress: 'half' });
  });

  it('is seen while the handler works under READ COMMITTED', async () => {
    const { scheduler, ended, store } = await fixture.boot(Works);
    let seen: unknown;
    body = async (ctx) => {
      ctx.progress('half');
      await ended((await scheduler.enqueue(Other)).id);
      seen = (await store.get(ctx.jobId))?.progress;
    };
    const { id } = await scheduler.enqueue(Plain);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', executions: 1 });
    expect(seen).toBe('half');
  });
});

describe('conflicts without end', () => {
  it.each([
    ['rolled_back', '40001'],
    ['rolled_back', '40P01'],
    ['unavailable', '55P03'],
  ] as const)('count after three tries: %s %s', async (kind, code) => {
    const { scheduler, store, ended } = await fixture.boot(Works);
    refuse(store, kind, code);
    const { id } = await scheduler.enqueue(Plain);
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      executions: 4,
      failures: 1,
      error: expect.stringContaining(code),
    });
    expect((await store.executions(id)).map(({ outcome }) => outcome)).toEqual([
      'released',
      'released',
      'released',
      'failed',
    ]);
  });

  it('are no excuse for what the handler met itself', async () => {
    const { scheduler, ended } = await fixture.boot(Works);
    body = () => Promise.reject(Object.assign(new Error('could not serialize access'), { code: '40001' }));
    const { id } = await scheduler.enqueue(Plain);
    expect(await ended(id)).toMatchObject({ status: 'failed', executions: 1, failures: 1 });
  });
});

describe('a day that has no partition', () => {
  /** The hourly sweep must not bring it back before somebody needs it. */
  async function bootUnswept() {
    const ensure = Object.getOwnPropertyDescriptor(PostgresJobStore.prototype, 'ensurePartitions')!
      .value as JobStore['ensurePartitions'];
    jest.spyOn(PostgresJobStore.prototype, 'ensurePartitions').mockImplementation(function (
      this: JobStore,
      days: number,
    ) {
      return days === 0 ? ensure.call(this, days) : Promise.resolve(days);
    });
    return fixture.boot(Works);
  }
  afterEach(() => void jest.restoreAllMocks());

  it('is made, and the job runs again uncharged', async () => {
    const { scheduler, ended } = await bootUnswept();
    await dropHistory();
    const { id } = await scheduler.enqueue(Plain);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0, executions: 2 });
    expect(await fixture.notes()).toEqual(['execution 2']);
  });

  it.each(['awaited', 'not awaited'])('is made for what a child replaces, %s', async (how) => {
    const { scheduler, ended } = await bootUnswept();
    await scheduler.enqueue(Child, undefined, { businessKey: how });
    await dropHistory();
    body = async (ctx) => {
      const child = ctx.enqueue(Child, undefined, { businessKey: how, onConflict: 'replace' });
      if (how === 'awaited') await child;
    };
    const { id } = await scheduler.enqueue(Plain);
    expect(await ended(id)).toMatchObject({ status: 'succeeded', failures: 0, executions: 2 });
    expect(await fixture.notes()).toEqual(['execution 2']);
  });
});
