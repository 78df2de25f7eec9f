import { afterEach, describe, expect, it } from '@jest/globals';
import { type ModuleMetadata, Inject, Injectable, Module, type Provider, Scope } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { z } from 'zod';
import { Job } from '../../lib/decorators/job.decorator.js';
import { OnJobFailure } from '../../lib/decorators/on-job-failure.decorator.js';
import { Recurring } from '../../lib/decorators/recurring.decorator.js';
import { DiscoveredHandlers } from '../../lib/discovery/discovered-handlers.js';
import { JobExplorer } from '../../lib/discovery/job.explorer.js';
import { JobMetadataAccessor } from '../../lib/discovery/job-metadata.accessor.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type PayloadOf } from '../../lib/jobs/job-definition.js';
import { type JobContext, type TransactionalJobContext } from '../../lib/jobs/job-context.js';

let app: TestingModule | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** Boots an app with discovery and nothing else of the engine. */
async function discover(
  metadata: ModuleMetadata | Provider[],
  timeZone = 'UTC',
  payloadBytes = 1_000,
): Promise<DiscoveredHandlers> {
  const { providers = [], imports = [] } = Array.isArray(metadata) ? { providers: metadata } : metadata;
  const building = Test.createTestingModule({
    imports: [DiscoveryModule, ...imports],
    providers: [
      ...providers,
      {
        provide: DiscoveredHandlers,
        useFactory: (discovery: DiscoveryService) =>
          new DiscoveredHandlers(
            new JobExplorer(discovery, new JobMetadataAccessor(), undefined, { timeZone, payloadBytes }),
          ),
        inject: [DiscoveryService],
      },
    ],
  });
  const made = await building.compile();
  await made.init();
  app = made;
  return made.get(DiscoveredHandlers);
}

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

const schedulesOf = (handlers: DiscoveredHandlers) => handlers.schedules().map(({ spec }) => spec);
const CONTEXT = { jobId: 'j' } as unknown as JobContext;
const call = (handlers: DiscoveredHandlers, name: string, payload: unknown = null): Promise<unknown> => {
  const handler = handlers.find(name);
  if (!handler) throw new Error(`no handler of ${name}`);
  return handler.invoke(payload, CONTEXT);
};

const Send = defineJob<{ list: string }>('send', { lane: 'mail', priority: 'high' });
const Sized = defineJob('sized', { schema: z.object({ width: z.string().transform(Number) }) });

describe('a @Recurring method', () => {
  it('is a schedule with every default, and the handler of its jobs', async () => {
    @Injectable()
    class ReportJobs {
      @Recurring('0 6 * * *', { id: 'digest' })
      daily(...parameters: unknown[]): unknown {
        return parameters;
      }
    }
    const handlers = await discover([ReportJobs]);
    expect(handlers.schedules()).toEqual([
      {
        method: 'daily',
        jobName: 'digest#recurring',
        takesPayload: false,
        spec: {
          id: 'digest',
          name: 'digest',
          expression: '0 6 * * *',
          timeZone: 'UTC',
          origin: 'annotation',
          owner: 'ReportJobs.daily',
          misfire: 'once',
          overlap: 'skip',
          jitterMs: 0,
          scope: 'cluster',
          enabled: true,
          businessKey: undefined,
          template: {
            name: 'digest#recurring',
            version: 1,
            lane: 'default',
            priority: 2,
            payload: 'null',
            maxRetries: undefined,
            backoff: undefined,
            timeoutMs: undefined,
            tags: [],
          },
        },
      },
    ]);
    expect(handlers.all().map(({ definition, owner }) => [definition.name, owner])).toEqual([
      ['digest#recurring', 'ReportJobs.daily'],
    ]);
    expect(handlers.find('digest#recurring')?.definition.maxRetries).toBe(0);
    expect(await call(handlers, 'digest#recurring')).toEqual([CONTEXT]);
  });

  it('says of its jobs what it was told, in the definition and in the schedule', async () => {
    @Injectable()
    class ReportJobs {
      @Recurring('@daily', {
        id: 'digest',
        name: 'Daily digest',
        timeZone: 'Europe/Lisbon',
        enabled: false,
        lane: 'reports',
        priority: 'low',
        maxRetries: 2,
        backoff: { type: 'fixed', delay: '5s' },
        timeout: '10m',
        tags: ['reports', 'daily', 'reports'],
        misfire: 'skip',
        overlap: 'queue',
        jitter: '30s',
        payload: { kind: 'short' },
      })
      daily(...parameters: unknown[]): unknown {
        return parameters;
      }
    }
    const handlers = await discover([ReportJobs], 'America/New_York');
    expect(schedulesOf(handlers)).toMatchObject([
      {
        name: 'Daily digest',
        timeZone: 'Europe/Lisbon',
        enabled: false,
        misfire: 'skip',
        overlap: 'queue',
        jitterMs: 30_000,
        template: {
          lane: 'reports',
          priority: 1,
          payload: '{"kind":"short"}',
          maxRetries: undefined,
          timeoutMs: undefined,
          tags: ['reports', 'daily'],
        },
      },
    ]);
    expect(handlers.find('digest#recurring')?.definition).toMatchObject({
      lane: 'reports',
      priority: 'low',
      maxRetries: 2,
      backoff: { type: 'fixed', delayMs: 5_000 },
      timeoutMs: 600_000,
    });
    expect(handlers.lanes()).toContain('reports');
    expect(await call(handlers, 'digest#recurring', { kind: 'short' })).toEqual([{ kind: 'short' }, CONTEXT]);
  });

  it("has the module's time zone unless it says one", async () => {
    @Injectable()
    class ReportJobs {
      @Recurring('0 6 * * *', { id: 'here' })
      @Recurring('0 6 * * *', { id: 'there', timeZone: 'utc' })
      daily(): void {}
    }
    const handlers = await discover([ReportJobs], 'Europe/Lisbon');
    expect(schedulesOf(handlers).map(({ id, timeZone }) => [id, timeZone])).toEqual([
      ['there', 'UTC'],
      ['here', 'Europe/Lisbon'],
    ]);
  });

  it('is called Class.method by default, by the class of the instance', async () => {
    abstract class Base {
      @Recurring('0 6 * * *')
      run(): string {
        return this.constructor.name;
      }
    }
    @Injectable()
    class North extends Base {}
    @Injectable()
    class South extends Base {}
    const handlers = await discover([North, South]);
    expect(schedulesOf(handlers).map(({ id, owner }) => [id, owner])).toEqual([
      ['North.run', 'North.run'],
      ['South.run', 'South.run'],
    ]);
    expect(await call(handlers, 'South.run#recurring')).toBe('South');
  });

  it('must give an id where the default could be none', async () => {
    class Anonymous {
      @Recurring('0 6 * * *')
      run(): void {}
    }
    Object.defineProperty(Anonymous, 'name', { value: '' });
    await expect(discover([{ provide: 'x', useClass: Anonymous }])).rejects.toEqual(
      refusal('INVALID_RECURRING_OPTION', /an anonymous class\.run: id: .*give the @Recurring an id/),
    );
  });

  it('may be request-scoped, and is an instance per execution then', async () => {
    let made = 0;
    @Injectable({ scope: Scope.REQUEST })
    class ScopedJobs {
      readonly instance = (made += 1);
      constructor(@Inject(REQUEST) readonly context: JobContext) {}

      @Recurring({ every: '1m' }, { id: 'scoped' })
      run(): unknown {
        return [this.instance, this.context.jobId];
      }
    }
    const handlers = await discover([ScopedJobs]);
    expect(await call(handlers, 'scoped#recurring')).toEqual([1, 'j']);
    expect(await call(handlers, 'scoped#recurring')).toEqual([2, 'j']);
  });

  it('is refused on a transient provider', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Transients {
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    await expect(discover([Transients])).rejects.toEqual(
      refusal('TRANSIENT_HANDLER', /Transients\.run: @Recurring\("digest"\) is on a method of a transient/),
    );
  });

  it('with scope node is found, and no job may be for it', async () => {
    @Injectable()
    class Caches {
      @Recurring({ every: '1m' }, { id: 'cache', scope: 'node', overlap: 'queue' })
      refresh(): string {
        return 'fresh';
      }
    }
    const handlers = await discover([Caches]);
    expect(schedulesOf(handlers)).toMatchObject([{ id: 'cache', scope: 'node', overlap: 'queue' }]);
    expect(handlers.all()).toEqual([]);
    expect(handlers.lanes()).toEqual([]);
    expect(await call(handlers, 'cache#recurring')).toBe('fresh');
  });

  it.each([
    ['that is none', { at: new Date(0) }, /payload\.at/],
    ['that is too large', { text: 'x'.repeat(1_000) }, /1000 bytes/],
  ])('is refused with a payload %s', async (_, payload, message) => {
    @Injectable()
    class ReportJobs {
      @Recurring('0 6 * * *', { id: 'digest', payload: payload as never })
      daily(): void {}
    }
    const refused = discover([ReportJobs]);
    await expect(refused).rejects.toEqual(
      refusal('RECURRING_BAD_PAYLOAD', /ReportJobs\.daily: .*@Recurring "digest"/),
    );
    await expect(refused).rejects.toThrow(message);
  });
});

describe('a @Recurring beside a @Job', () => {
  it("makes jobs of that definition, with the definition's settings and the payload", async () => {
    @Injectable()
    class MailJobs {
      @Recurring('0 6 * * *', { id: 'mornings', payload: { list: 'a' } })
      @Job(Send)
      @Recurring('0 18 * * *', {
        id: 'evenings',
        payload: { list: 'b' },
        lane: 'evening',
        priority: 'low',
        maxRetries: 4,
        timeout: '1m',
      })
      send(payload: unknown, context: unknown): unknown {
        return [payload, context];
      }
    }
    const handlers = await discover([MailJobs]);
    expect(handlers.all().map(({ definition }) => definition)).toEqual([Send]);
    expect(handlers.schedules().map(({ jobName, takesPayload }) => [jobName, takesPayload])).toEqual([
      ['send', true],
      ['send', true],
    ]);
    expect(schedulesOf(handlers).map(({ template }) => template)).toMatchObject([
      {
        name: 'send',
        lane: 'evening',
        priority: 1,
        payload: '{"list":"b"}',
        maxRetries: 4,
        timeoutMs: 60_000,
      },
      { name: 'send', lane: 'mail', priority: 3, payload: '{"list":"a"}', maxRetries: 0 },
    ]);
    expect(handlers.lanes()).toEqual(['mail', 'evening', 'mail']);
    expect(await call(handlers, 'send', { list: 'a' })).toEqual([{ list: 'a' }, CONTEXT]);
  });

  it('leaves retries to a definition that says them itself', async () => {
    const Stubborn = defineJob('stubborn', { maxRetries: 7 });
    @Injectable()
    class Jobs {
      @Job(Stubborn)
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    const [spec] = schedulesOf(await discover([Jobs]));
    expect(spec?.template).toMatchObject({ maxRetries: undefined, payload: 'null' });
  });

  it('stores what its schema takes, and refuses at boot what it does not', async () => {
    @Injectable()
    class Right {
      @Job(Sized)
      @Recurring('0 6 * * *', { id: 'resize', payload: { width: '3' } as never })
      run(payload: PayloadOf<typeof Sized>): unknown {
        return payload;
      }
    }
    @Injectable()
    class Wrong {
      @Recurring('0 6 * * *', { id: 'resize', payload: { width: 3 } })
      @Job(Sized)
      run(payload: PayloadOf<typeof Sized>): unknown {
        return payload;
      }
    }
    const [spec] = schedulesOf(await discover([Right]));
    expect(spec?.template.payload).toBe('{"width":"3"}');
    await expect(discover([Wrong])).rejects.toEqual(
      refusal('RECURRING_BAD_PAYLOAD', /Wrong\.run: the payload of @Recurring "resize": .*payload\.width/),
    );
  });

  it('waits for a schema that takes its time', async () => {
    const Slow = defineJob('slow', {
      schema: z.object({ n: z.number() }).refine(async ({ n }) => Promise.resolve(n > 0)),
    });
    @Injectable()
    class Wrong {
      @Job(Slow)
      @Recurring('0 6 * * *', { id: 'slow', payload: { n: 0 } })
      run(payload: PayloadOf<typeof Slow>): unknown {
        return payload;
      }
    }
    await expect(discover([Wrong])).rejects.toMatchObject({ code: 'RECURRING_BAD_PAYLOAD' });
  });

  it('needs the scope cluster, and a handler of jobs rather than of failures', async () => {
    @Injectable()
    class Caches {
      @Job(Send)
      @Recurring('0 6 * * *', { id: 'x', scope: 'node', payload: { list: 'a' } })
      run(payload: { list: string }): unknown {
        return payload;
      }
    }
    await expect(discover([Caches])).rejects.toEqual(
      refusal('INVALID_RECURRING_OPTION', /Caches\.run: scope: "node" is wrong; .*@Job\("send"\)/),
    );
    @Injectable()
    class Failures {
      @OnJobFailure(Send)
      @Recurring('0 6 * * *', { id: 'x', payload: { list: 'a' } })
      run(payload: { list: string }): unknown {
        return payload;
      }
    }
    await expect(discover([Failures])).rejects.toEqual(
      refusal('JOB_DECORATOR_MISPLACED', /Failures\.run: @Recurring stands beside @OnJobFailure\("send"\)/),
    );
  });

  it('may be transactional, which is the @Job to say', async () => {
    @Injectable()
    class Jobs {
      @Job(Send, { transactional: true })
      @Recurring('0 6 * * *', { id: 'x', payload: { list: 'a' } })
      run(_payload: { list: string }, context: TransactionalJobContext): unknown {
        return context;
      }
    }
    expect((await discover([Jobs])).find('send')?.transactional).toBeDefined();
  });
});

describe('an id that two @Recurring have', () => {
  it('is refused, with both by name', async () => {
    @Injectable()
    class One {
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    @Injectable()
    class Other {
      @Recurring('0 7 * * *', { id: 'digest' })
      run(): void {}
    }
    await expect(discover([One, Other])).rejects.toEqual(
      refusal('DUPLICATE_SCHEDULE', /Other\.run: the schedule "digest" is already that of One\.run/),
    );
  });

  it('is refused on one method', async () => {
    @Injectable()
    class Jobs {
      @Recurring('0 6 * * *', { id: 'digest' })
      @Recurring('0 7 * * *', { id: 'digest' })
      run(): void {}
    }
    await expect(discover([Jobs])).rejects.toMatchObject({ code: 'DUPLICATE_SCHEDULE' });
  });

  it('is refused when one class is provided by two modules, which are named', async () => {
    @Injectable()
    class Jobs {
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    @Module({ providers: [Jobs] })
    class OneModule {}
    @Module({ providers: [Jobs] })
    class OtherModule {}
    await expect(discover({ imports: [OneModule, OtherModule] })).rejects.toEqual(
      refusal(
        'DUPLICATE_SCHEDULE',
        /Jobs\.run \(in O\w+Module\): the schedule "digest" is already that of Jobs\.run \(in O\w+Module\)/,
      ),
    );
  });

  it('is one schedule when it is one object under two tokens', async () => {
    @Injectable()
    class Jobs {
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    const handlers = await discover([
      Jobs,
      { provide: 'alias', useExisting: Jobs },
      { provide: 'handed on', useFactory: (jobs: Jobs) => jobs, inject: [Jobs] },
    ]);
    expect(handlers.schedules()).toHaveLength(1);
  });
});
