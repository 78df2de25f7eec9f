import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type ModuleMetadata, Controller, Inject, Injectable, Module, Scope } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModuleRef, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { Job } from '../../lib/decorators/job.decorator.js';
import { OnJobFailure } from '../../lib/decorators/on-job-failure.decorator.js';
import { JOB_MARK } from '../../lib/decorators/job-mark.js';
import { DiscoveredHandlers } from '../../lib/discovery/discovered-handlers.js';
import { JobExplorer } from '../../lib/discovery/job.explorer.js';
import { JobMetadataAccessor } from '../../lib/discovery/job-metadata.accessor.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobContext } from '../../lib/jobs/job-context.js';

let app: TestingModule | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** Boots an app with discovery and nothing else of the engine. */
async function discover(metadata: ModuleMetadata): Promise<DiscoveredHandlers> {
  app = await Test.createTestingModule({
    ...metadata,
    imports: [DiscoveryModule, ...(metadata.imports ?? [])],
    providers: [
      ...(metadata.providers ?? []),
      {
        provide: DiscoveredHandlers,
        useFactory: (discovery: DiscoveryService) =>
          new DiscoveredHandlers(new JobExplorer(discovery, new JobMetadataAccessor())),
        inject: [DiscoveryService],
      },
    ],
  }).compile();
  await app.init();
  return app.get(DiscoveredHandlers);
}

function run(
  handlers: DiscoveredHandlers,
  name: string,
  payload: unknown = 'payload',
  context: unknown = {},
): Promise<unknown> {
  const handler = handlers.find(name);
  if (!handler) throw new Error(`no handler of ${name}`);
  return handler.invoke(payload, context as JobContext);
}

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

const Send = defineJob('send');

@Injectable()
class Mailer {
  readonly name = 'mailer';
}

@Injectable()
class MailJobs {
  constructor(readonly mailer: Mailer) {}

  @Job('mail.send')
  async send(payload: unknown, context: JobContext): Promise<unknown> {
    return { by: this.mailer.name, payload, jobId: context.jobId };
  }
}

describe('discovery', () => {
  it('tells the handlers to a module that is initialised before it', async () => {
    let found: unknown;
    @Injectable()
    class Early {
      constructor(private readonly modules: ModuleRef) {}
      onModuleInit(): void {
        found = this.modules.get(DiscoveredHandlers, { strict: false }).find('late')?.owner;
      }
    }
    @Module({ providers: [Early] })
    class EarlyModule {}
    @Injectable()
    class LateJobs {
      @Job('late', { lane: 'mail' })
      run(): void {}
    }
    await discover({ imports: [EarlyModule], providers: [LateJobs] });
    expect(found).toBe('LateJobs.run');
  });

  it('finds a singleton and calls the method on it with payload and context', async () => {
    const handlers = await discover({ providers: [Mailer, MailJobs] });
    expect(handlers.all().map(({ owner, definition }) => [owner, definition.name])).toEqual([
      ['MailJobs.send', 'mail.send'],
    ]);
    expect(await run(handlers, 'mail.send', 1, { jobId: 'j' })).toEqual({
      by: 'mailer',
      payload: 1,
      jobId: 'j',
    });
    expect(handlers.find('mail.sent')).toBeUndefined();
  });

  it('calls a spy that a test put on the instance', async () => {
    const handlers = await discover({ providers: [Mailer, MailJobs] });
    jest.spyOn(app!.get(MailJobs), 'send').mockResolvedValue('spied');
    expect(await run(handlers, 'mail.send')).toBe('spied');
  });

  it('turns a synchronous throw into a rejection', async () => {
    @Injectable()
    class Jobs {
      @Job('throws')
      run(): void {
        throw new Error('at once');
      }
    }
    const handlers = await discover({ providers: [Jobs] });
    const outcome = run(handlers, 'throws');
    await expect(outcome).rejects.toThrow('at once');
  });

  it('finds handlers of values, factories, inherited methods, private methods, symbols and controllers', async () => {
    const bySymbol = Symbol('bySymbol');
    class Value {
      @Job('value')
      run(): string {
        return 'value';
      }
    }
    class Made extends Value {
      @Job('made')
      override run(): string {
        return 'made';
      }
    }
    abstract class Base {
      @Job('inherited')
      protected run(): string {
        return this.constructor.name;
      }
    }
    @Injectable()
    class Derived extends Base {}
    @Injectable()
    class Odd {
      @Job('private')
      private hidden(): string {
        return 'private';
      }
      @Job('symbol')
      [bySymbol](): string {
        return 'symbol';
      }
      get explosive(): never {
        throw new Error('a getter ran');
      }
      static helper(): void {}
    }
    @Controller()
    class Desk {
      @Job('controller')
      run(): string {
        return 'controller';
      }
    }
    const handlers = await discover({
      controllers: [Desk],
      providers: [
        { provide: 'VALUE', useValue: new Value() },
        { provide: 'MADE', useFactory: async () => new Made() },
        Derived,
        Odd,
      ],
    });
    for (const name of ['value', 'made', 'private', 'symbol', 'controller']) {
      expect(await run(handlers, name)).toBe(name);
    }
    expect(await run(handlers, 'inherited')).toBe('Derived');
    expect(handlers.find('inherited')?.owner).toBe('Derived.run');
  });

  it('is not upset by values of any kind', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const values: unknown[] = [
      Object.create(null),
      null,
      undefined,
      0,
      '',
      Symbol('x'),
      () => 1,
      new Map(),
      [proxy],
    ];
    const handlers = await discover({
      providers: [
        ...values.map((useValue, index) => ({ provide: `value${index}`, useValue })),
        Mailer,
        MailJobs,
      ],
    });
    expect(handlers.all()).toHaveLength(1);
  });

  it('skips aliases, and takes one object under two tokens once', async () => {
    const handlers = await discover({
      providers: [
        Mailer,
        MailJobs,
        { provide: 'ALIAS', useExisting: MailJobs },
        { provide: 'SAME', useFactory: (jobs: MailJobs) => jobs, inject: [MailJobs] },
      ],
    });
    expect(handlers.all()).toHaveLength(1);
  });

  it('finds a decorated override under its own name, and not its base', async () => {
    class Base {
      @Job('base')
      run(): string {
        return 'base';
      }
    }
    @Injectable()
    class Override extends Base {
      @Job('override')
      override run(): string {
        return 'override';
      }
    }
    const handlers = await discover({ providers: [Override] });
    expect(handlers.all().map((handler) => handler.definition.name)).toEqual(['override']);
  });

  it('finds a method that was mixed in together with its mark', async () => {
    class Mixin {
      @Job('mixed.in')
      run(): string {
        return 'mixed in';
      }
    }
    @Injectable()
    class Host {}
    Object.defineProperty(Host.prototype, 'run', Object.getOwnPropertyDescriptor(Mixin.prototype, 'run')!);
    expect(await run(await discover({ providers: [Host] }), 'mixed.in')).toBe('mixed in');
  });

  describe('refuses at boot', () => {
    it('an override without @Job, and names both', async () => {
      class Base {
        @Job('hidden')
        run(): void {}
      }
      @Injectable()
      class Silent extends Base {
        override run(): void {}
      }
      await expect(discover({ providers: [Silent] })).rejects.toEqual(
        refusal('HANDLER_HIDDEN', /Silent\.run: overrides Base\.run without its @Job\("hidden"\)/),
      );
    });

    it('a decorator above that replaces the method, but not one that copies the metadata', async () => {
      const wrap =
        (copy: boolean) =>
        (_target: object, _key: string | symbol, descriptor: PropertyDescriptor): void => {
          const original = descriptor.value as (...parameters: unknown[]) => unknown;
          const wrapper = function (this: unknown, ...parameters: unknown[]): unknown {
            return ['wrapped', original.apply(this, parameters)];
          };
          if (copy) Reflect.defineMetadata(JOB_MARK, Reflect.getMetadata(JOB_MARK, original), wrapper);
          descriptor.value = wrapper;
        };
      @Injectable()
      class Copied {
        @wrap(true)
        @Job('copied')
        run(): string {
          return 'it';
        }
      }
      @Injectable()
      class Replaced {
        @wrap(false)
        @Job('replaced')
        run(): void {}
      }
      expect(await run(await discover({ providers: [Copied] }), 'copied')).toEqual(['wrapped', 'it']);
      await app?.close();
      await expect(discover({ providers: [Replaced] })).rejects.toEqual(
        refusal('HANDLER_HIDDEN', /Replaced\.run: a decorator above @Job\("replaced"\)/),
      );
    });

    it('two handlers of one job, both classes named', async () => {
      @Injectable()
      class Other {
        @Job('mail.send', { lane: 'slow' })
        post(): void {}
      }
      await expect(discover({ providers: [Mailer, MailJobs, Other] })).rejects.toEqual(
        refusal('DUPLICATE_HANDLER', /Other\.post: "mail\.send" .*MailJobs\.send.*differ in lane/),
      );
    });

    it('a base and its subclass when both are providers', async () => {
      @Injectable()
      class Special extends MailJobs {}
      await expect(discover({ providers: [Mailer, MailJobs, Special] })).rejects.toEqual(
        refusal('DUPLICATE_HANDLER', /Special\.send: .*MailJobs\.send/),
      );
    });

    it('one class in two modules, both modules named', async () => {
      @Module({ providers: [Mailer, MailJobs] })
      class Orders {}
      @Module({ providers: [Mailer, MailJobs] })
      class Invoices {}
      await expect(discover({ imports: [Orders, Invoices] })).rejects.toEqual(
        refusal('DUPLICATE_HANDLER', /MailJobs\.send \(in Invoices\): .*MailJobs\.send \(in Orders\)/),
      );
    });

    it('two methods for the failure of one job, both classes named, and a job beside them is none of them', async () => {
      @Injectable()
      class First {
        @OnJobFailure(Send)
        tell(): void {}
        @Job(Send)
        send(): void {}
      }
      @Injectable()
      class Second {
        @OnJobFailure(defineJob('send', { version: 2 }))
        tell(): void {}
      }
      const handlers = await discover({ providers: [First] });
      expect(
        handlers.all().map(({ owner, definition, failureOf }) => [owner, definition.name, failureOf]),
      ).toEqual([
        ['First.tell', 'send#failed', Send],
        ['First.send', 'send', undefined],
      ]);
      await app?.close();
      await expect(discover({ providers: [First, Second] })).rejects.toEqual(
        refusal(
          'DUPLICATE_HANDLER',
          /Second\.tell: the failure of "send" .*by First\.tell; a job has one failure handler.*differ in version/,
        ),
      );
    });

    it('a failure handler that is transient, or hidden by an override', async () => {
      class Base {
        @OnJobFailure(Send)
        tell(): void {}
      }
      @Injectable()
      class Silent extends Base {
        override tell(): void {}
      }
      @Injectable({ scope: Scope.TRANSIENT })
      class Fleeting extends Base {}
      await expect(discover({ providers: [Silent] })).rejects.toEqual(
        refusal('HANDLER_HIDDEN', /Silent\.tell: overrides Base\.tell without its @OnJobFailure\("send"\)/),
      );
      await expect(discover({ providers: [Fleeting] })).rejects.toEqual(
        refusal('TRANSIENT_HANDLER', /Fleeting\.tell: @OnJobFailure\("send"\)/),
      );
    });

    it('a transient provider', async () => {
      @Injectable({ scope: Scope.TRANSIENT })
      class Fleeting {
        @Job('fleeting')
        run(): void {}
      }
      await expect(discover({ providers: [Fleeting] })).rejects.toEqual(
        refusal('TRANSIENT_HANDLER', /Fleeting\.run: .*"fleeting"/),
      );
    });
  });

  describe('request-scoped providers', () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      static made = 0;
      readonly number = ++Scoped.made;
      constructor(@Inject(REQUEST) private readonly context: JobContext) {}
      get jobId(): string {
        return this.context.jobId;
      }
    }

    @Injectable()
    class ScopedJobs {
      constructor(private readonly scoped: Scoped) {}
      @Job('scoped')
      run(payload: unknown, context: JobContext): unknown {
        return {
          number: this.scoped.number,
          jobId: this.scoped.jobId,
          payload,
          same: context.jobId === this.scoped.jobId,
        };
      }
    }

    it('get an instance for each execution, with the context as REQUEST', async () => {
      Scoped.made = 0;
      const handlers = await discover({ providers: [Scoped, ScopedJobs] });
      expect(Scoped.made).toBe(0);
      const results = await Promise.all([
        run(handlers, 'scoped', 1, { jobId: 'a' }),
        run(handlers, 'scoped', 2, { jobId: 'b' }),
      ]);
      expect(results).toEqual([
        { number: 1, jobId: 'a', payload: 1, same: true },
        { number: 2, jobId: 'b', payload: 2, same: true },
      ]);
    });

    it('get the class of their own module when another module uses the same token', async () => {
      @Injectable({ scope: Scope.REQUEST })
      class First {
        @Job('first')
        run(): string {
          return 'first';
        }
      }
      @Injectable({ scope: Scope.REQUEST })
      class Second {
        @Job('second')
        run(): string {
          return 'second';
        }
      }
      @Module({ providers: [{ provide: 'JOBS', useClass: First }] })
      class FirstModule {}
      @Module({ providers: [{ provide: 'JOBS', useClass: Second }] })
      class SecondModule {}
      const handlers = await discover({ imports: [FirstModule, SecondModule] });
      expect([await run(handlers, 'first'), await run(handlers, 'second')]).toEqual(['first', 'second']);
    });

    it('fail the execution, not the process, when their instance cannot be made', async () => {
      @Injectable({ scope: Scope.REQUEST })
      class Broken {
        constructor() {
          throw new Error('no instance today');
        }
        @Job('broken')
        run(): void {}
      }
      const handlers = await discover({ providers: [Broken] });
      await expect(run(handlers, 'broken')).rejects.toThrow('no instance today');
    });

    it('work on controllers', async () => {
      @Controller({ scope: Scope.REQUEST })
      class Desk {
        constructor(@Inject(REQUEST) private readonly context: JobContext) {}
        @Job('desk')
        run(): string {
          return this.context.jobId;
        }
      }
      const handlers = await discover({ controllers: [Desk] });
      expect(await run(handlers, 'desk', 1, { jobId: 'd' })).toBe('d');
    });
  });
});
