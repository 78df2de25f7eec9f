import { describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { type InvalidOptionError } from '../../lib/errors/boot-errors.js';
import {
  RatchetModule,
  type RatchetModuleAsyncOptions,
  type RatchetModuleOptions,
} from '../../lib/ratchet.module.js';
import { type RatchetOptions } from '../../lib/ratchet.options.js';
import { type ResolvedOptions, resolveOptions } from '../../lib/ratchet.resolve.js';

const DATABASE = { dataSource: 'default' };

function resolve(options: object): ResolvedOptions {
  return resolveOptions({ ...DATABASE, ...options });
}

function problems(options: unknown): string[] {
  try {
    resolveOptions(options as RatchetOptions);
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_OPTION' });
    return (error as InvalidOptionError).problems.map(({ option, problem }) => `${option}: ${problem}`);
  }
  return [];
}

function problemsWith(options: object): string[] {
  return problems({ ...DATABASE, ...options });
}

/** An object that cannot be read to the end. */
function trap(): object {
  return Object.defineProperty({}, 'schema', {
    enumerable: true,
    get: () => {
      throw new Error('trap');
    },
  });
}

describe('RatchetModule.forRoot', () => {
  const { forRoot, forRootAsync } = {
    forRoot: (options: unknown) => RatchetModule.forRoot(options as RatchetModuleOptions),
    forRootAsync: (options: unknown) => RatchetModule.forRootAsync(options as RatchetModuleAsyncOptions),
  };
  const refusal = (...problems: string[]) =>
    expect.objectContaining({
      code: 'INVALID_OPTION',
      problems: problems.map((problem) => ({
        option: problem.split(': ')[0],
        problem: expect.stringContaining(problem.split(': ')[1] ?? ''),
      })),
    });

  it.each([[undefined], [null], ['postgres://me:secret@db/shop'], [[]]])('refuses %j at once', (options) => {
    expect(() => forRoot(options)).toThrow(refusal('options: there are none'));
    expect(() => forRootAsync(options)).toThrow(refusal('options: nothing makes them'));
  });

  it('refuses what the module graph cannot be made of, all at once', () => {
    const wrong = { isGlobal: 'yes', imports: 5, extraProviders: {}, clock: 5 };
    const problems = refusal(
      'isGlobal: "yes"',
      'imports: 5 is wrong',
      'extraProviders: {}',
      'clock: 5 is wrong',
    );
    expect(() => forRoot({ ...DATABASE, ...wrong })).toThrow(problems);
    expect(() => forRootAsync({ useFactory: () => DATABASE, ...wrong })).toThrow(problems);
    expect(() => forRootAsync({ useFactory: 5 })).toThrow(refusal('options: nothing makes them'));
  });

  it('names options that cannot be read', () => {
    expect(() => forRoot(trap())).toThrow(refusal('options: what can be read, but reading it threw'));
    expect(problems(trap())).toEqual([expect.stringContaining('reading it threw: trap')]);
    expect(problemsWith({ lanes: new Proxy({}, { ownKeys: () => ['a', 'a'] }) })).toHaveLength(1);
  });
});

describe('resolveOptions', () => {
  it('fills in the documented defaults, in milliseconds', () => {
    expect(resolve({})).toEqual({
      engine: {
        worker: true,
        concurrency: 10,
        lanes: new Map(),
        maxRetries: 3,
        backoff: { type: 'exponential', delayMs: 1_000, maxDelayMs: 3_600_000, jitter: 0.2 },
        priorityBoostMs: 900_000,
        poll: {
          burstMs: 500,
          minMs: 2_000,
          maxMs: 10_000,
          deepIdleMs: 60_000,
          deepIdleAfterMs: 300_000,
        },
        heartbeat: { baseMs: 10_000, graceMs: 30_000, stallMs: 300_000 },
        fallbackAfterMs: 150_000,
        maxCrashRedeliveries: 3,
        recurring: { convergenceMs: 300_000 },
        drainTimeoutMs: 25_000,
        limits: { payloadBytes: 1_000_000, resultBytes: 256_000, errorBytes: 16_000 },
        retention: {
          historyMs: 604_800_000,
          historyBytes: 20_000_000_000,
          executionsMs: 2_592_000_000,
          deadLetterMs: 2_592_000_000,
        },
      },
      database: { kind: 'dataSource', dataSource: 'default' },
      nodeId: undefined,
      schema: 'ratchet',
      migrations: 'auto',
      idempotencyExpiryMs: 86_400_000,
      intake: { jobs: 10_000, bytes: 16_000_000 },
      pool: { exchange: 1, client: 4 },
      startup: { onDatabaseDown: 'wait', timeoutMs: 60_000 },
      enhancers: { interceptors: false, guards: false },
      recurringTimeZone: 'UTC',
      adoptCron: false,
      transaction: undefined,
    });
  });

  it('takes what is given, and treats undefined as not given', () => {
    const transaction = () => undefined;
    const resolved = resolve({
      worker: false,
      nodeId: 'pod-0',
      schema: 'jobs_2',
      concurrency: 3,
      lanes: {
        mail: { concurrency: 2, reserved: 1, bufferSize: 50, buckets: 4 },
        video: { buckets: { critical: 5, lowest: 0 } },
      },
      buckets: 2,
      backoff: { type: 'fixed', delay: '5s' },
      priorityBoost: 0,
      drainTimeout: undefined,
      retention: { history: '1d' },
      startup: { onDatabaseDown: 'fail' },
      transaction,
    });
    expect(resolved).toMatchObject({
      nodeId: 'pod-0',
      schema: 'jobs_2',
      pool: { client: 2 },
      startup: { onDatabaseDown: 'fail', timeoutMs: 60_000 },
      transaction,
      engine: {
        worker: false,
        priorityBoostMs: 0,
        drainTimeoutMs: 25_000,
        backoff: { type: 'fixed', delayMs: 5_000 },
        retention: { historyMs: 86_400_000, executionsMs: 2_592_000_000 },
      },
    });
    expect([...resolved.engine.lanes]).toEqual([
      ['default', { concurrency: 3, reserved: 0, bufferSize: 0, buckets: 2 }],
      ['mail', { concurrency: 2, reserved: 1, bufferSize: 50, buckets: 4 }],
      [
        'video',
        {
          concurrency: 3,
          reserved: 0,
          bufferSize: 0,
          buckets: { lowest: 0, low: 1, normal: 1, high: 1, critical: 5 },
        },
      ],
    ]);
  });

  it.each([true, false, 'drain'] as const)('knows worker: %j', (worker) => {
    const resolved = resolve({ worker });
    expect(resolved.engine.worker).toBe(worker);
    expect(resolved.pool.client).toBe(worker === false ? 2 : 4);
  });

  it('says everything that is wrong at once, with key, value and what is allowed', () => {
    const found = problemsWith({
      concurrency: -1,
      poll: { min: '2 seconds', max: '400ms' },
      migrations: 'yes',
      worker: 'no',
      schema: 'Ratchet; drop table x',
      nodeId: 'x'.repeat(65),
      backoff: { jitter: 2 },
      limits: { payloadBytes: 1.5 },
      pool: { exchange: 0 },
      transaction: {},
    });
    expect(found).toEqual([
      'worker: "no" is wrong; allowed: true, \'drain\' or false',
      'concurrency: -1 is wrong; allowed: a whole number from 1 to 10000',
      'backoff.jitter: 2 is wrong; allowed: a number from 0 to 1',
      expect.stringMatching(
        /^poll.min: "2 seconds" is wrong; allowed: milliseconds or a text like .*at least 20ms, at most 1h$/,
      ),
      'poll.max: 400 ms are less than poll.min (2000 ms); allowed: at least that',
      'limits.payloadBytes: 1.5 is wrong; allowed: a whole number from 100 to 100000000',
      expect.stringMatching(/^nodeId: "x{65}" is wrong; allowed: a text of 1 to 64 characters/),
      expect.stringMatching(/^schema: "Ratchet; drop table x" is wrong/),
      "migrations: \"yes\" is wrong; allowed: 'auto', 'check', 'off'",
      'pool.exchange: 0 is wrong; allowed: a whole number from 1 to 50',
      expect.stringMatching(/^transaction: \{\} is wrong/),
    ]);
  });

  it('puts every problem into the message', () => {
    expect(() => resolve({ concurrency: 0, maxRetries: -1 })).toThrow(/concurrency: 0 .*\n.*maxRetries: -1/);
  });

  it.each([
    [{ concurency: 5 }, 'concurency: there is no such option; did you mean concurrency?'],
    [{ retention: { histori: '1d' } }, 'retention.histori: there is no such option; did you mean history?'],
    [
      { lanes: { mail: { concurrencyy: 1 } } },
      'lanes.mail.concurrencyy: there is no such option; did you mean concurrency?',
    ],
    [{ pool: { xyz: 1 } }, 'pool.xyz: there is no such option; allowed: client, exchange'],
    [{ backoff: { dealy: '1s' } }, 'backoff.dealy: there is no such key; did you mean delay?'],
  ])('refuses the unknown key of %j', (options, problem) => {
    const [found] = problemsWith(options);
    expect(found?.replace('"1s"', "'1s'")).toBe(problem);
  });

  it('says that ports belong beside the factory', () => {
    expect(problemsWith({ coordinator: class {} })).toEqual([
      'coordinator: a factory of options comes too late for it; give it beside useFactory, useClass or useExisting',
    ]);
  });

  it.each([
    [{ schema: 'pg_jobs' }],
    [{ schema: '1st' }],
    [{ schema: 'information_schema' }],
    [{ schema: 'x'.repeat(49) }],
    [{ nodeId: '' }],
    [{ nodeId: 'a\u0000b' }],
    [{ concurrency: 1.5 }],
    [{ concurrency: '5' }],
    [{ concurrency: Number.NaN }],
    [{ lanes: { '': {} } }],
    [{ lanes: { mail: 5 } }],
    [{ lanes: [] }],
    [{ lanes: { mail: { buckets: 0 } } }],
    [{ lanes: { mail: { buckets: 51 } } }],
    [{ lanes: { mail: { buckets: 'many' } } }],
    [{ lanes: { mail: { buckets: { high: -1 } } } }],
    [{ lanes: { mail: { bufferSize: 10_001 } } }],
    [{ lanes: { mail: { reserved: -1 } } }],
    [{ buckets: 0 }],
    [{ worker: 'drains' }],
    [{ priorityBoost: 5 }],
    [{ priorityBoost: -1 }],
    [{ poll: { burst: '0s' } }],
    [{ poll: { burst: '3s' } }],
    [{ poll: { max: '2m' } }],
    [{ poll: { interval: '2s' } }],
    [{ poll: '2s' }],
    [{ drainTimeout: 'soon' }],
    [{ retention: { history: 0 } }],
    [{ retention: { historyBytes: 999_999 } }],
    [{ retention: { historyBytes: '20GB' } }],
    [{ retention: { historyBytes: Infinity } }],
    [{ retention: null }],
    [{ startup: { onDatabaseDown: 'panic' } }],
    [{ limits: { resultBytes: 2_000_000 } }],
    [{ recurring: { timeZone: 'Europe/Lisbom' } }],
    [{ recurring: { timeZone: '' } }],
    [{ recurring: { convergence: '31d' } }],
    [{ recurring: { timezone: 'UTC' } }],
  ])('refuses %j', (options) => {
    expect(problemsWith(options)).toHaveLength(1);
  });

  it.each<[object, string]>([
    [
      { concurrency: 5, lanes: { mail: { concurrency: 6 } } },
      'lanes.mail.concurrency: 6 is more than the 5 slots of the node; raise concurrency, or lower this',
    ],
    [
      { lanes: { mail: { concurrency: 2, reserved: 3 } } },
      "lanes.mail.reserved: 3 is more than the lane's concurrency (2); lower it, or raise that",
    ],
    [
      { lanes: { mail: { reserved: 6 }, video: { reserved: 5 }, slow: {} } },
      'lanes: lanes.mail.reserved + lanes.video.reserved are 11, more than the 10 slots of the node; raise concurrency, or lower them',
    ],
    [
      { lanes: { mail: { reserved: 6 }, video: { reserved: 4 } } },
      'lanes: all 10 slots of the node are reserved, so that other lanes and fallback buckets would never run a job; raise concurrency, or lower what is reserved',
    ],
    [
      { lanes: { mail: { buckets: { lowest: 0, low: 0, normal: 0, high: 0, critical: 0 } } } },
      'lanes.mail.buckets: switches every priority off; leave at least one, or leave the lane out',
    ],
    [
      { lanes: { mail: { buckets: { critcal: 1 } } } },
      'lanes.mail.buckets.critcal: there is no such option; did you mean critical?',
    ],
    [{ buckets: { hgh: 1 } }, 'buckets.hgh: there is no such option; did you mean high?'],
    [
      { buckets: 2, lanes: { default: { buckets: 3 } } },
      'lanes.default.buckets: is given twice, here and as the top-level buckets; give one of them',
    ],
  ])('refuses %j and says what mends it', (options, problem) => {
    expect(problemsWith(options)).toEqual([problem]);
  });

  describe('the way to the database', () => {
    it.each([
      [{}, 'none of them is given'],
      [{ dataSource: 'default', database: 'embedded' }, 'dataSource and database are given'],
      [{ dataSource: 'default', connection: 'postgres://x/y' }, 'dataSource and connection are given'],
    ])('must be exactly one: %j', (options, found) => {
      expect(problems(options)).toEqual([`dataSource, connection, database: ${found}; give exactly one`]);
    });

    it.each([[undefined], [null], ['x'], [[]]])('refuses %j as options', (options) => {
      expect(problems(options)).toHaveLength(1);
    });

    it('takes a name, a token or an instance as DataSource', () => {
      const token = Symbol('orders');
      const instance = new DataSource({ type: 'postgres' });
      for (const dataSource of ['default', 'orders', token, DataSource, instance]) {
        expect(resolve({ dataSource }).database).toEqual({ kind: 'dataSource', dataSource });
      }
      expect(problems({ dataSource: 5 })).toHaveLength(1);
      expect(problems({ dataSource: { type: 'postgres' } })).toHaveLength(1);
    });

    it('takes a URL or its parts as connection', () => {
      const password = () => 'secret';
      const url = 'postgres://me@db:5433/shop';
      const database = (connection: object | string) => resolveOptions({ connection }).database;
      expect(database(url)).toEqual({ kind: 'connection', settings: { url } });
      expect(database({ url, ssl: true })).toEqual({
        kind: 'connection',
        settings: { url, ssl: true },
      });
      expect(
        database({
          host: 'db',
          port: 5433,
          username: 'me',
          password,
          database: 'shop',
          extra: { keepAlive: true },
        }),
      ).toEqual({
        kind: 'connection',
        settings: {
          host: 'db',
          port: 5433,
          username: 'me',
          password,
          database: 'shop',
          extra: { keepAlive: true },
        },
      });
    });

    it('never shows a password', () => {
      const secret = 'hunter2';
      const found = [
        ...problems({ connection: `mysql://me:${secret}@db/shop` }),
        ...problems({ connection: { url: `postgre://me:${secret}@db/shop`, host: 'db' } }),
        ...problems({ connection: { password: [secret] } }),
        ...problems({ connection: { pasword: secret } }),
      ];
      expect(found).toHaveLength(5);
      expect(found.join()).not.toContain(secret);
    });

    it('takes embedded with a folder and a port', () => {
      expect(resolveOptions({ database: 'embedded' }).database).toEqual({
        kind: 'embedded',
        dataDir: '.ratchet/postgres',
        port: undefined,
      });
      expect(
        resolveOptions({ database: { embedded: { dataDir: '/data/pg', port: 5499 } } }).database,
      ).toEqual({
        kind: 'embedded',
        dataDir: '/data/pg',
        port: 5499,
      });
      expect(problems({ database: 'sqlite' })).toEqual([
        'database: "sqlite" is wrong; allowed: \'embedded\', or { embedded: { dataDir, port } }',
      ]);
      expect(problems({ database: { embedded: { dataDir: '' } } })).toHaveLength(1);
      expect(problems({ database: { embeded: {} } })).toHaveLength(1);
    });
  });
});
