import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { defineJob, Job, TransactionalJobContext } from 'nestjs-ratchet';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { DataSource as DataSource03 } from 'typeorm-03';
import { deferred } from '../support/engine-node.js';
import { TransactionalFixture } from './transactional-fixture.js';

const fixture = new TransactionalFixture();
beforeAll(async () => {
  await fixture.open();
  await fixture.database.query('create table account (id int primary key, v int)');
});
beforeEach(() => fixture.database.query('insert into account values (1, 0)'));
afterEach(async () => {
  await fixture.clear();
  await fixture.database.query('truncate account');
});
afterAll(() => fixture.close());

const Work = defineJob('work', { maxRetries: 0 });
const Limited = defineJob('limited', { maxRetries: 0, timeout: 300 });
const Child = defineJob('child', { lane: 'children' });

let body: (ctx: TransactionalJobContext) => Promise<unknown>;

/** Locks the account, then does `body`. */
@Injectable()
class Works {
  @Job(Work, { transactional: true })
  work(_payload: unknown, ctx: TransactionalJobContext): Promise<unknown> {
    return this.#do(ctx);
  }

  @Job(Limited, { transactional: true })
  limited(_payload: unknown, ctx: TransactionalJobContext): Promise<unknown> {
    return this.#do(ctx);
  }

  async #do(ctx: TransactionalJobContext): Promise<unknown> {
    await ctx.manager.query('update account set v = v + 1 where id = 1');
    return body(ctx);
  }
}

const forEver = (): Promise<never> => new Promise(() => {});

/** Fails when somebody holds the row for longer than a moment. */
async function free(): Promise<number> {
  await fixture.database.query(`set lock_timeout = '5s'`);
  const [row] = await fixture.database.query<{ v: number }>('select v from account where id = 1 for update');
  return row!.v;
}

/** The sessions of the application's pool that are in the middle of something. */
async function busy(): Promise<number> {
  const rows = await fixture.database.query(
    `select 1 from pg_stat_activity where datname = current_database() and application_name = 'the-app' and state <> 'idle'`,
  );
  return rows.length;
}

const sources = [
  { version: '1.x', make: (options: object) => new DataSource(options as never) },
  {
    version: '0.3',
    make: (options: object) => new DataSource03(options as never) as unknown as DataSource,
  },
];

const stuck: Record<string, (begun: () => void) => (ctx: TransactionalJobContext) => Promise<unknown>> = {
  'does nothing': (begun) => async () => {
    begun();
    await forEver();
  },
  'waits for a statement': (begun) => async (ctx) => {
    const sent = ctx.manager.query('select pg_sleep(60)').catch(() => undefined);
    begun();
    await sent;
    await forEver();
  },
  'is in a nested transaction': (begun) => (ctx) =>
    ctx.manager.transaction(async (nested) => {
      await nested.query('select 1');
      begun();
      await forEver();
    }),
};

describe.each(sources)('with TypeORM $version, a transactional handler', ({ make }) => {
  it.each(Object.keys(stuck))(
    'that %s when the app closes leaves no lock, and lets the pool end',
    async (how) => {
      const begun = deferred();
      body = stuck[how]!(begun.resolve);
      const { app, source, scheduler } = await fixture.boot(Works, { make, options: { drainTimeout: 100 } });
      await scheduler.enqueue(Work);
      await begun.promise;
      await app.close();
      expect(await free()).toBe(0);
      expect(await busy()).toBe(0);
      await source.destroy();
      expect(source.isInitialized).toBe(false);
    },
    20_000,
  );

  it('is told on its manager why nothing is sent any more', async () => {
    const begun = deferred();
    const refused = deferred<unknown[]>();
    body = async (ctx) => {
      begun.resolve();
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      const { manager } = ctx;
      refused.resolve(
        await Promise.all([
          manager.query('select 1').catch((error: unknown) => error),
          manager.transaction(forEver).catch((error: unknown) => error),
        ]),
      );
    };
    const { scheduler } = await fixture.boot(Works, { make });
    const { id } = await scheduler.enqueue(Work);
    await begun.promise;
    await scheduler.cancel(id);
    const aborted = expect.objectContaining({ code: 'JOB_ABORTED', reason: 'canceled' });
    expect(await refused.promise).toEqual([aborted, aborted]);
  });

  it('is told so on its manager after its end, whatever it calls', async () => {
    let kept!: TransactionalJobContext;
    body = (ctx) => Promise.resolve((kept = ctx)).then(() => undefined);
    const { scheduler, ended, source } = await fixture.boot(Works, { make });
    const { id } = await scheduler.enqueue(Work);
    expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    const { manager } = kept;
    const calls = [
      () => manager.query('select 1'),
      () => manager.transaction(() => Promise.resolve()),
      () => manager.createQueryBuilder().select('1').from('account', 'a').getRawMany(),
      () => manager.queryRunner!.startTransaction(),
      () => manager.queryRunner!.commitTransaction(),
      () => manager.queryRunner!.connect() as Promise<unknown>,
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'TRANSACTION_OVER' });
    await expect(kept.enqueue(Child)).rejects.toMatchObject({ code: 'TRANSACTION_NOT_ACTIVE' });
    await manager.queryRunner!.release();
    expect(await source.query('select v from account')).toEqual([{ v: 1 }]);
  });
});

describe('a body that goes on', () => {
  it.each(Object.keys(stuck))(
    'and %s after its timeout holds no lock',
    async (how) => {
      body = stuck[how]!(() => undefined);
      const { scheduler, ended } = await fixture.boot(Works, { options: { drainTimeout: 0 } });
      const { id } = await scheduler.enqueue(Limited);
      expect(await ended(id)).toMatchObject({ error: expect.stringContaining('JOB_TIMEOUT') });
      expect(await free()).toBe(0);
    },
    20_000,
  );

  it('after a cancel holds no lock', async () => {
    const begun = deferred();
    body = stuck['waits for a statement']!(begun.resolve);
    const { scheduler, events } = await fixture.boot(Works, { options: { drainTimeout: 0 } });
    const { id } = await scheduler.enqueue(Work);
    await begun.promise;
    const lost = events.next('lost', ({ jobId }) => jobId === id);
    await scheduler.cancel(id);
    await lost;
    expect(await free()).toBe(0);
  }, 20_000);
});

const leftBehind: Record<string, (ctx: TransactionalJobContext) => void> = {
  'a statement': (ctx) => void ctx.manager.query('select pg_sleep(60)').catch(() => undefined),
  'a child': (ctx) => {
    // It waits for its turn on the connection.
    ctx.manager.query('select pg_sleep(60)').catch(() => undefined);
    ctx.enqueue(Child).catch(() => undefined);
  },
};

describe.each(Object.keys(leftBehind))('%s that was not awaited and is never answered', (what) => {
  const leave = leftBehind[what]!;

  it('does not keep the timeout, nor the slot', async () => {
    body = (ctx) => Promise.resolve(leave(ctx));
    const { scheduler, ended, events } = await fixture.boot(Works);
    const { id } = await scheduler.enqueue(Limited);
    const late = events.next('late', ({ jobId }) => jobId === id);
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('JOB_TIMEOUT'),
    });
    expect(await late).toMatchObject({ outcome: 'failed' });
    expect(await free()).toBe(0);
  }, 20_000);

  it('does not keep a cancel', async () => {
    const begun = deferred();
    body = (ctx) => {
      leave(ctx);
      begun.resolve();
      return Promise.resolve();
    };
    const { scheduler, events } = await fixture.boot(Works);
    const { id } = await scheduler.enqueue(Work);
    await begun.promise;
    const late = events.next('late', ({ jobId }) => jobId === id);
    await scheduler.cancel(id);
    expect(await late).toMatchObject({ outcome: 'failed' });
    expect(await scheduler.get(id)).toMatchObject({ status: 'canceled' });
    expect(await free()).toBe(0);
  }, 20_000);

  it('does not keep a drain: the job is given back', async () => {
    const begun = deferred();
    body = (ctx) => {
      leave(ctx);
      begun.resolve();
      return Promise.resolve();
    };
    const { scheduler, app, source } = await fixture.boot(Works, { options: { drainTimeout: 100 } });
    const { id } = await scheduler.enqueue(Work);
    await begun.promise;
    await app.close();
    await source.destroy();
    expect(
      await fixture.database.query('select status, failures from ratchet.jobs where id = $1', [id]),
    ).toEqual([{ status: 'pending', failures: 0 }]);
    expect(await free()).toBe(0);
  }, 20_000);
});

it('statements that are under way when a transaction is cut off are over before its ROLLBACK is sent', async () => {
  body = async (ctx) => {
    for (const seconds of [60, 50]) {
      ctx.manager.query(`select pg_sleep(${String(seconds)})`).catch(() => undefined);
    }
    await forEver();
  };
  const { scheduler, ended, source } = await fixture.boot(Works, { options: { drainTimeout: 0 } });
  const besideRollbacks = underWayAtRollbacks(source);
  const { id } = await scheduler.enqueue(Limited);
  expect(await ended(id)).toMatchObject({ error: expect.stringContaining('JOB_TIMEOUT') });
  while ((await busy()) > 0);
  expect(besideRollbacks).toEqual([0]);
}, 20_000);

/** How many statements were under way on the same connection at each ROLLBACK from now on. */
function underWayAtRollbacks(source: DataSource): readonly number[] {
  const seen: number[] = [];
  const known = new WeakSet();
  const { master } = source.driver as unknown as { master: pg.Pool };
  master.on('acquire', (client) => {
    if (known.has(client)) return;
    known.add(client);
    let underWay = 0;
    const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>;
    const counted = async (...given: unknown[]): Promise<unknown> => {
      if (given[0] === 'ROLLBACK') seen.push(underWay);
      underWay += 1;
      return query(...given).finally(() => (underWay -= 1));
    };
    Object.assign(client, { query: counted });
  });
  return seen;
}

describe('a COMMIT that the server refuses', () => {
  beforeAll(() =>
    fixture.database.query(`
      create table refusal (state text);
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'not this one' using errcode = new.state; end $$;
      create constraint trigger refuse after insert on refusal deferrable initially deferred
        for each row execute function refuse()`),
  );

  it.each(['P0001', '42501', '55000', '57014', '53100', '23514', '40001'])(
    'with %s is a failure with that error, and costs no connection',
    async (state) => {
      const pids: unknown[] = [];
      body = async (ctx) => {
        pids.push(await ctx.manager.query('select pg_backend_pid() as pid'));
        await ctx.manager.query('insert into refusal values ($1)', [state]);
      };
      const { scheduler, ended } = await fixture.boot(Works);
      const { id } = await scheduler.enqueue(Work);
      const end = (await ended(id)) as { status: string; error: string };
      expect(end.status).toBe('failed');
      expect(end.error).toContain('not this one');
      expect(end.error).not.toContain('TRANSACTION_CUT_OFF');
      const [[{ pid }]] = pids as [[{ pid: number }]];
      expect(
        await fixture.database.query('select 1 as alive from pg_stat_activity where pid = $1', [pid]),
      ).toEqual([{ alive: 1 }]);
    },
  );
});
