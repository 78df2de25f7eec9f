import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, type LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { defineJob, Job, JobScheduler, RatchetModule, TransactionalJobContext } from 'nestjs-ratchet';
import { manualRatchet, RatchetTester, RatchetTestingModule } from 'nestjs-ratchet/testing';
import { DataSource } from 'typeorm';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const Write = defineJob('write');

@Injectable()
class Writes {
  @Job(Write, { transactional: true })
  async write(_payload: unknown, ctx: TransactionalJobContext): Promise<string> {
    await ctx.manager.query(`insert into note values ('row')`);
    return 'done';
  }
}

let database: TestDatabase;
const closing: (() => Promise<unknown>)[] = [];
const lines: string[] = [];
const logger: LoggerService = {
  log: (line: unknown) => void lines.push(String(line)),
  warn: () => undefined,
  error: () => undefined,
};
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query('create table note (text text)');
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  await database.query('truncate note');
});
afterAll(() => database.drop());

async function sourceOf(options: object = {}): Promise<DataSource> {
  const source = new DataSource({ type: 'postgres', url: database.url, ...options });
  await source.initialize();
  closing.push(() => source.destroy());
  return source;
}

async function boot(options: object): Promise<void> {
  const imports = [RatchetModule.forRoot(options as never)];
  const app = await Test.createTestingModule({ imports, providers: [Writes] })
    .setLogger(logger)
    .compile();
  closing.push(() => app.close());
  await app.init();
}

describe('the boot of an app with transactional handlers', () => {
  it('fails without a DataSource, and names handler and mend', async () => {
    await expect(boot({ connection: database.url })).rejects.toMatchObject({
      code: 'TRANSACTIONAL_NEEDS_DATA_SOURCE',
      message: expect.stringMatching(/Writes\.write: .* option dataSource/),
    });
  });

  it('does not when nothing runs here', async () => {
    await boot({ connection: database.url, worker: false });
  });

  it.each([{ poolSize: 2 }, { extra: { max: 2 } }])('fails with a pool of two (%j)', async (options) => {
    await expect(boot({ dataSource: await sourceOf(options) })).rejects.toMatchObject({
      code: 'TRANSACTIONAL_POOL_TOO_SMALL',
      message: expect.stringMatching(/poolSize: 2 connections .* Writes\.write.*at least 3/),
    });
  });

  it.each([
    [{}, 8, 10],
    [{ poolSize: 3 }, 1, 3],
    [{ poolSize: 3, extra: { max: 20 } }, 18, 20],
  ])('says how many run at once (%j)', async (options, atOnce, size) => {
    lines.length = 0;
    await boot({ dataSource: await sourceOf(options) });
    expect(lines.join('\n')).toContain(
      `at most ${atOnce} transactional ${atOnce === 1 ? 'handler' : 'handlers'} at once (the DataSource has ${size} connections)`,
    );
  });
});

describe('a transactional handler under test', () => {
  it('needs a database', async () => {
    const app = await Test.createTestingModule({
      imports: [RatchetTestingModule.forRoot()],
      providers: [Writes],
    }).compile();
    closing.push(() => app.close());
    const { id } = await app.get(JobScheduler).enqueue(Write);
    await expect(RatchetTester.of(app).runNext(Write)).rejects.toMatchObject({
      code: 'TESTING_NEEDS_DATABASE',
      message: expect.stringMatching(/Writes\.write .*manualRatchet/),
    });
    expect(await app.get(JobScheduler).get(id)).toMatchObject({ status: 'pending', failures: 0 });
  });

  it('runs truly on one', async () => {
    const imports = [RatchetModule.forRoot({ dataSource: await sourceOf() })];
    const app = await manualRatchet(Test.createTestingModule({ imports, providers: [Writes] })).compile();
    closing.push(() => app.close());
    await app.init();
    const { id } = await app.get(JobScheduler).enqueue(Write);
    expect(await RatchetTester.of(app).runNext(Write)).toMatchObject({
      outcome: 'succeeded',
      result: 'done',
    });
    expect(await app.get(JobScheduler).get(id)).toMatchObject({ status: 'succeeded', result: 'done' });
    expect(await database.query('select text from note')).toEqual([{ text: 'row' }]);
  });

  it('is lost there when somebody takes its job away', async () => {
    const Taken = defineJob('taken');
    @Injectable()
    class Takes {
      @Job(Taken, { transactional: true })
      async take(_payload: unknown, ctx: TransactionalJobContext): Promise<void> {
        await ctx.manager.query(`insert into note values ('lost')`);
        await database.query('update ratchet.job set claim_seq = claim_seq + 1 where id = $1', [ctx.jobId]);
      }
    }
    const imports = [RatchetModule.forRoot({ dataSource: await sourceOf() })];
    const app = await manualRatchet(Test.createTestingModule({ imports, providers: [Takes] })).compile();
    closing.push(() => app.close());
    await app.init();
    await app.get(JobScheduler).enqueue(Taken);
    expect(await RatchetTester.of(app).runNext(Taken)).toMatchObject({ outcome: 'lost' });
    expect(await database.query('select text from note')).toEqual([]);
  });
});

describe('the options of @Job', () => {
  it.each([
    [{ maxRetries: 3 }, /"write"\.maxRetries: 3 is wrong; allowed: only transactional/],
    [{ transactional: false }, /"write"\.transactional: false is wrong; allowed: true, or \{ isolation/],
    [{ transactional: { isolation: 'READ UNCOMMITTED' } }, /"write"\.transactional/],
    [{ transactional: { level: 'SERIALIZABLE' } }, /"write"\.transactional/],
    [{ transactional: null }, /"write"\.transactional: null/],
    [null, /"write"\.options: null/],
    ['transactional', /"write"\.options/],
  ])('refuse %j', (options, message) => {
    expect(() => Job(Write, options as never)).toThrow(message);
  });

  it('are refused when they cannot be read', () => {
    const unreadable = Object.defineProperty({}, 'transactional', {
      enumerable: true,
      get: () => {
        throw new Error('a getter');
      },
    });
    expect(() => Job(Write, unreadable)).toThrow(/"write"\.options: .*reading it threw: a getter/);
    expect(() => Job('in.place', unreadable)).toThrow(/"in\.place"\.policy: .*reading it threw: a getter/);
  });

  it('stand beside the policy of a job that is defined in place', () => {
    expect(() => Job('in.place', { maxRetries: 3, transactional: true })).not.toThrow();
    expect(() => Job('in.place', { transactional: false } as never)).toThrow(/"in\.place"\.transactional/);
    expect(() => Job('in.place', { maxRetry: 3, transactional: true } as never)).toThrow(/maxRetry/);
  });
});
