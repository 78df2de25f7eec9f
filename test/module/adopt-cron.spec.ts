import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Controller,
  Inject,
  Injectable,
  type LoggerService,
  Module,
  type ModuleMetadata,
  Scope,
  type Type,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { type TestingModule } from '@nestjs/testing';
import { HandlerRegistry } from '../../lib/jobs/handler-registry.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { type ScheduleSpec } from '../../lib/jobs/schedule-spec.js';
import { RatchetModule, Recurring, RecurringScheduler } from 'nestjs-ratchet';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps, ended } from './app.js';

const apps = new Apps();
let database: TestDatabase;
let lines: string[] = [];

const collector: LoggerService = {
  log: (message: unknown, context: unknown) => void lines.push(`${String(context)}: ${String(message)}`),
  error: () => undefined,
  warn: () => undefined,
};

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(() => apps.closeAll());
afterAll(() => database.drop());

async function boot(
  metadata: ModuleMetadata | Type[],
  options: { readonly adoptCron?: boolean; readonly worker?: boolean } = { adoptCron: true },
): Promise<TestingModule> {
  lines = [];
  const { imports = [], ...rest } = Array.isArray(metadata) ? { providers: metadata } : metadata;
  const ratchet = RatchetModule.forRoot({ connection: database.url, worker: false, ...options });
  return apps.boot({ imports: [ratchet, ...imports], ...rest }, (builder) => builder.setLogger(collector));
}

const specsOf = (app: TestingModule): ScheduleSpec[] =>
  app
    .get(HandlerRegistry, { strict: false })
    .schedules()
    .map(({ spec }) => spec);

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

const context = { jobId: 'j' } as unknown as JobContext;
const ownZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

@Injectable()
class Reports {
  @Cron('0 6 * * *', { name: 'daily-digest', timeZone: 'Europe/Lisbon', waitForCompletion: true })
  digest(...given: unknown[]): unknown {
    return ['digest', given];
  }
  @Cron('*/5 * * * * *', { disabled: true, unrefTimeout: true })
  poll(): void {}
  @Interval(3_600_000)
  beat(): void {}
}

describe('adoptCron', () => {
  it('makes schedules of @Cron methods that do what @Cron did', async () => {
    const app = await boot([Reports]);
    expect(specsOf(app)).toMatchObject([
      {
        id: 'daily-digest',
        owner: 'Reports.digest',
        expression: '0 6 * * *',
        timeZone: 'Europe/Lisbon',
        origin: 'annotation',
        scope: 'cluster',
        overlap: 'skip',
        misfire: 'skip',
        enabled: true,
      },
      {
        id: 'Reports.poll',
        expression: '*/5 * * * * *',
        timeZone: ownZone,
        overlap: 'allow',
        misfire: 'skip',
        enabled: false,
      },
    ]);
    expect(
      app.get(HandlerRegistry, { strict: false }).find('daily-digest#recurring')?.definition,
    ).toMatchObject({
      maxRetries: 0,
    });
  });

  it('calls the method as @nestjs/schedule does: on its instance, without parameters', async () => {
    const app = await boot([Reports]);
    const handler = app.get(HandlerRegistry, { strict: false }).find('daily-digest#recurring');
    expect(await handler?.invoke(null, context)).toEqual(['digest', []]);
  });

  it('says which it adopted, and in which zone each is read', async () => {
    await boot([Reports]);
    expect(lines).toContain(
      'RatchetModule: adoptCron: this process runs none (worker: false); workers run 2 @Cron methods once for all nodes: ' +
        '"daily-digest" (Reports.digest, "0 6 * * *", Europe/Lisbon), ' +
        `"Reports.poll" ("*/5 * * * * *", ${ownZone}, this process's own zone, disabled)`,
    );
  });

  it('leaves @Cron alone, and is silent, when it is not asked for', async () => {
    const app = await boot([Reports], {});
    expect(specsOf(app)).toEqual([]);
    expect(lines.join('\n')).not.toMatch(/adoptCron|@Cron/);
  });

  it('says so when there is none', async () => {
    await boot([]);
    expect(lines).toContain('RatchetModule: adoptCron: no method of this app has a @Cron');
  });

  it('finds those of controllers, and inherited ones under the name of the subclass', async () => {
    class Base {
      @Cron('0 7 * * *')
      run(): void {}
    }
    @Injectable()
    class Mails extends Base {}
    @Controller()
    class Pages {
      @Cron('0 8 * * *')
      warm(): void {}
    }
    const app = await boot({ providers: [Mails], controllers: [Pages] });
    expect(specsOf(app).map(({ id }) => id)).toEqual(['Mails.run', 'Pages.warm']);
  });

  it('runs those of request-scoped providers, which @nestjs/schedule cannot', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      constructor(@Inject(REQUEST) readonly request: unknown) {}
      @Cron('0 9 * * *')
      run(): unknown {
        return this.request;
      }
    }
    const app = await boot([Scoped]);
    const handler = app.get(HandlerRegistry, { strict: false }).find('Scoped.run#recurring');
    expect(await handler?.invoke(null, context)).toBe(context);
  });

  it('runs an occurrence as a job of the cluster, which is not retried', async () => {
    let calls = 0;
    @Injectable()
    class Failing {
      @Cron('0 0 1 1 *', { name: 'failing' })
      run(): never {
        calls += 1;
        throw new Error('no paper');
      }
    }
    const app = await boot([Failing], { adoptCron: true, worker: true });
    const { job } = await app.get(RecurringScheduler).trigger('failing');
    const end = await ended(app, job!.id);
    expect(end).toMatchObject({ name: 'failing#recurring', status: 'failed' });
    expect(calls).toBe(1);
  });
});

describe('adoptCron beside ScheduleModule', () => {
  const word = /ScheduleModule\.forRoot\(\{ cronJobs: false \}\)/;

  it('is refused while that runs cron jobs, and says the word to add', async () => {
    await expect(boot({ imports: [ScheduleModule.forRoot()], providers: [Reports] })).rejects.toEqual(
      refusal('CRON_STILL_LOCAL', word),
    );
  });

  it('is refused when the options come of a factory', async () => {
    const schedule = ScheduleModule.forRootAsync({ useFactory: () => Promise.resolve({}) });
    await expect(boot({ imports: [schedule], providers: [Reports] })).rejects.toEqual(
      refusal('CRON_STILL_LOCAL', word),
    );
  });

  it('works with cronJobs: false', async () => {
    const app = await boot({ imports: [ScheduleModule.forRoot({ cronJobs: false })], providers: [Reports] });
    expect(specsOf(app)).toHaveLength(2);
  });
});

describe('adoptCron refuses', () => {
  const withOptions = (cronTime: unknown, options: object): Type => {
    @Injectable()
    class Jobs {
      run(): void {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run');
    Cron(cronTime as string, options)(Jobs.prototype, 'run', descriptor!);
    return Jobs;
  };

  it.each([
    ['initialDelay', { initialDelay: 1_000 }, /Jobs\.run: initialDelay: 1000 .*; no node may delay/],
    ['threshold', { threshold: 500 }, /Jobs\.run: threshold: 500 .*; leave it out/],
    ['utcOffset', { utcOffset: 120 }, /Jobs\.run: utcOffset: 120 .*; give a timeZone/],
    ['what @nestjs/schedule does not know', { runOnInit: true }, /Jobs\.run: runOnInit: true /],
    ['an empty name', { name: '' }, /Jobs\.run: name: "" .*; allowed: /],
    ['a name that is none', { name: 7 }, /Jobs\.run: name: 7 .*; allowed: /],
  ])('%s, with the method and the mend', async (_what, options, message) => {
    await expect(boot([withOptions('0 6 * * *', options)])).rejects.toEqual(
      refusal('CRON_NOT_ADOPTABLE', message),
    );
  });

  it('a Date, which comes once', async () => {
    await expect(boot([withOptions(new Date(), {})])).rejects.toEqual(
      refusal('CRON_NOT_ADOPTABLE', /Jobs\.run: cronTime: .*enqueue a job with runAt/),
    );
  });

  it('an expression and a zone that are none, by class and method', async () => {
    await expect(boot([withOptions('61 * * * *', {})])).rejects.toEqual(
      refusal('RECURRING_BAD_EXPRESSION', /Jobs\.run/),
    );
    await expect(boot([withOptions('0 6 * * *', { timeZone: 'Mars/Olympus' })])).rejects.toEqual(
      refusal('RECURRING_BAD_TIME_ZONE', /Jobs\.run/),
    );
  });

  it('two of one name', async () => {
    @Injectable()
    class Other {
      @Cron('0 7 * * *', { name: 'daily-digest' })
      run(): void {}
    }
    await expect(boot([Reports, Other])).rejects.toEqual(
      refusal('DUPLICATE_SCHEDULE', /Other\.run: .*Reports\.digest; give each @Cron a name/),
    );
  });

  it('one class in two modules', async () => {
    @Module({ providers: [Reports] })
    class One {}
    @Module({ providers: [Reports] })
    class Two {}
    await expect(boot({ imports: [One, Two] })).rejects.toMatchObject({ code: 'DUPLICATE_SCHEDULE' });
  });

  it('no object that is seen under two tokens', async () => {
    const app = await boot({
      providers: [Reports, { provide: 'handed on', useFactory: (one: Reports) => one, inject: [Reports] }],
    });
    expect(specsOf(app)).toHaveLength(2);
  });

  it('a method with both decorators', async () => {
    @Injectable()
    class Both {
      @Cron('0 7 * * *')
      @Recurring('0 7 * * *', { id: 'both' })
      run(): void {}
    }
    await expect(boot([Both])).rejects.toEqual(
      refusal('JOB_DECORATOR_MISPLACED', /Both\.run: @Cron stands beside @Recurring/),
    );
  });
});
