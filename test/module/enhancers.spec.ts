import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type ModuleMetadata,
  type NestInterceptor,
  type PipeTransform,
  Scope,
  type Type,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, REQUEST } from '@nestjs/core';
import { type TestingModule } from '@nestjs/testing';
import {
  currentJob,
  defineJob,
  Job,
  JobContext,
  type JobFailedError,
  type JobInfo,
  JobScheduler,
  OnJobFailure,
  type PayloadOf,
  RatchetModule,
  type RatchetSettings,
  UnrecoverableError,
} from 'nestjs-ratchet';
import { RatchetTester, RatchetTestingModule } from 'nestjs-ratchet/testing';
import { map, type Observable } from 'rxjs';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Apps, ended } from './app.js';

const calls: string[] = [];

@Injectable()
class JwtGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    calls.push('guard');
    const request = context.switchToHttp().getRequest<{ headers?: { authorization?: string } }>();
    if (!request.headers?.authorization) throw new UnauthorizedException();
    return true;
  }
}

@Injectable()
class Envelope implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    calls.push('interceptor');
    return next.handle().pipe(map((data: unknown) => ({ data })));
  }
}

@Catch()
class CatchAll implements ExceptionFilter {
  catch(): string {
    calls.push('filter');
    return 'all is well';
  }
}

@Injectable()
class Upper implements PipeTransform {
  transform(): string {
    calls.push('pipe');
    return 'CHANGED';
  }
}

@Injectable()
@UseGuards(JwtGuard)
@UseInterceptors(Envelope)
class Jobs {
  @Job('echo')
  echo(payload: unknown): unknown {
    return payload;
  }

  @Job('fails', { maxRetries: 0 })
  fail(): never {
    throw new Error('the real reason');
  }
}

const apps = new Apps();
let database: TestDatabase;

beforeAll(async () => {
  Logger.overrideLogger(false);
  database = await createTestDatabase();
});
afterEach(() => apps.closeAll());
afterAll(() => database.drop());

describe('a guard, a pipe, an interceptor and a catch-all filter of the app', () => {
  it('change no outcome of a job', async () => {
    const app = await apps.boot({
      imports: [RatchetModule.forRoot({ connection: database.url })],
      providers: [
        Jobs,
        { provide: APP_GUARD, useClass: JwtGuard },
        { provide: APP_INTERCEPTOR, useClass: Envelope },
        { provide: APP_FILTER, useClass: CatchAll },
        { provide: APP_PIPE, useClass: Upper },
      ],
    });
    const scheduler = app.get(JobScheduler);
    const echo = await scheduler.enqueueNamed('echo', { as: 'it is' });
    const fails = await scheduler.enqueueNamed('fails');
    expect(await ended(app, echo.id)).toMatchObject({ status: 'succeeded', result: { as: 'it is' } });
    const failed = await ended(app, fails.id);
    expect(failed).toMatchObject({ status: 'failed' });
    expect(failed?.error).toContain('the real reason');
    expect(calls).toEqual([]);
  });
});

interface Call {
  readonly by: string;
  readonly type: string;
  readonly parameters: readonly unknown[];
  readonly handler: string;
  readonly className: string;
}
const seen: Call[] = [];
const note = (by: string, context: ExecutionContext): void => {
  seen.push({
    by,
    type: context.getType<string>(),
    parameters: context.getArgs(),
    handler: context.getHandler().name,
    className: context.getClass().name,
  });
};
/** What each guard says. */
let allow: (by: string) => boolean = () => true;

@Injectable()
class Config {
  readonly suffix = '!';
}

function guard(by: string, options: { scope?: Scope } = {}): Type<CanActivate> {
  @Injectable(options)
  class Guard implements CanActivate {
    // Without its constructor it has no config: an instance that Nest never made would throw.
    constructor(private readonly config: Config) {}

    canActivate(context: ExecutionContext): boolean {
      note(by + this.config.suffix, context);
      return allow(by);
    }
  }
  return Guard;
}

@Injectable({ scope: Scope.REQUEST })
class RequestGuard implements CanActivate {
  constructor(@Inject(REQUEST) private readonly request: JobContext) {}

  canActivate(context: ExecutionContext): boolean {
    note(this.request === context.getArgByIndex(1) ? 'its own request' : 'another request', context);
    return true;
  }
}

function interceptor(by: string, options: { scope?: Scope } = {}): Type<NestInterceptor> {
  @Injectable(options)
  class Interceptor implements NestInterceptor {
    constructor(private readonly config: Config) {}

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      note(by + this.config.suffix, context);
      return next.handle().pipe(map((result: unknown) => [by, result]));
    }
  }
  return Interceptor;
}

const OfClass = guard('class guard');
const OfMethod = guard('method guard');
const AroundClass = interceptor('class interceptor');
const AroundMethod = interceptor('method interceptor');
const Guarded = defineJob<{ n: number }>('guarded', { maxRetries: 0 });

@Injectable()
@UseGuards(OfClass)
@UseInterceptors(AroundClass)
class GuardedJobs {
  @Job(Guarded)
  @UseGuards(OfMethod)
  @UseInterceptors(AroundMethod)
  run({ n }: PayloadOf<typeof Guarded>): unknown {
    if (n < 0) throw new UnrecoverableError('below zero');
    return { n, job: currentJob()?.name };
  }
}

const failures: unknown[][] = [];

@Injectable()
@UseGuards(OfClass)
class GuardedFailures {
  @OnJobFailure(Guarded)
  failed(payload: { n: number }, error: JobFailedError, context: JobContext): void {
    failures.push([payload, error.jobName, context.name]);
  }
}

describe('with the option enhancers', () => {
  beforeEach(() => {
    seen.length = 0;
    failures.length = 0;
    allow = () => true;
    calls.length = 0;
  });

  function boot(
    providers: NonNullable<ModuleMetadata['providers']>,
    enhancers: RatchetSettings['enhancers'] = { guards: true, interceptors: true },
    metadata: ModuleMetadata = {},
  ): Promise<TestingModule> {
    return apps.boot({
      ...metadata,
      imports: [RatchetModule.forRoot({ connection: database.url, enhancers })],
      providers: [Config, ...providers],
    });
  }
  async function run(app: TestingModule, n = 1): Promise<JobInfo | undefined> {
    const { id } = await app.get(JobScheduler).enqueue(Guarded, { n });
    return ended(app, id);
  }

  it('global, class and method ones come before the handler, in the order of Nest; pipes and filters do not', async () => {
    const app = await boot([
      GuardedJobs,
      { provide: APP_GUARD, useClass: guard('global guard') },
      { provide: APP_INTERCEPTOR, useClass: interceptor('global interceptor') },
      { provide: APP_FILTER, useClass: CatchAll },
      { provide: APP_PIPE, useClass: Upper },
    ]);
    expect(await run(app)).toMatchObject({
      status: 'succeeded',
      result: ['global interceptor', ['class interceptor', ['method interceptor', { n: 1, job: 'guarded' }]]],
    });
    expect(seen.map(({ by }) => by)).toEqual([
      'global guard!',
      'class guard!',
      'method guard!',
      'global interceptor!',
      'class interceptor!',
      'method interceptor!',
    ]);
    for (const call of seen) {
      expect(call).toMatchObject({
        type: 'ratchet',
        handler: 'run',
        className: 'GuardedJobs',
        parameters: [{ n: 1 }, expect.any(JobContext)],
      });
    }
    expect(await run(app, -1)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('below zero'),
    });
    expect(calls).toEqual([]);
  });

  it('each of the two is on for itself', async () => {
    const guards = await boot([GuardedJobs], { guards: true });
    expect(await run(guards)).toMatchObject({ result: { n: 1 } });
    expect(seen.map(({ by }) => by)).toEqual(['class guard!', 'method guard!']);
    await apps.closeAll();
    seen.length = 0;
    const interceptors = await boot([GuardedJobs], { interceptors: true });
    await run(interceptors);
    expect(seen.map(({ by }) => by)).toEqual(['class interceptor!', 'method interceptor!']);
  });

  it('a guard that refuses is a failure of the execution, and names the handler', async () => {
    allow = (by) => by !== 'method guard';
    const app = await boot([GuardedJobs]);
    const job = await run(app);
    expect(job).toMatchObject({ status: 'failed' });
    expect(job?.error).toContain(
      'GUARD_REFUSED: GuardedJobs.run: a guard refused the execution: Forbidden resource',
    );
    expect(job?.error).toContain('ForbiddenException');
    expect(seen.some(({ by }) => by.includes('interceptor'))).toBe(false);
  });

  it('what a guard throws stays as it is', async () => {
    const app = await boot([Jobs]);
    const { id } = await app.get(JobScheduler).enqueueNamed('fails', {});
    expect(await ended(app, id)).toMatchObject({ error: expect.stringContaining('UnauthorizedException') });
  });

  it('they come before @OnJobFailure methods too', async () => {
    const app = await boot([GuardedJobs, GuardedFailures], { guards: true });
    const failed = app
      .get(EngineEvents, { strict: false })
      .next('settled', ({ name }) => name === 'guarded#failed');
    await run(app, -1);
    await failed;
    expect(failures).toEqual([[{ n: -1 }, 'guarded', 'guarded#failed']]);
    expect(seen.at(-1)).toMatchObject({
      by: 'class guard!',
      handler: 'failed',
      parameters: [{ n: -1 }, { code: 'JOB_FAILED' }, expect.any(JobContext)],
    });
  });

  it.each([
    ['request-scoped', { scope: Scope.REQUEST }],
    ['transient', { scope: Scope.TRANSIENT }],
    ['durable', { scope: Scope.REQUEST, durable: true }],
  ])('%s ones of every level are made before they are asked', async (_name, options) => {
    const ScopedOfClass = guard('class guard', options);
    const Around = interceptor('interceptor', options);
    @Injectable()
    @UseGuards(ScopedOfClass)
    class ScopedGuarded {
      @Job(Guarded)
      @UseInterceptors(Around)
      run(): string {
        return 'ran';
      }
    }
    const app = await boot([
      ScopedGuarded,
      { provide: APP_GUARD, useClass: guard('global guard', options) },
      { provide: APP_INTERCEPTOR, useClass: interceptor('global interceptor', options) },
    ]);
    expect(await run(app)).toMatchObject({
      status: 'succeeded',
      result: ['global interceptor', ['interceptor', 'ran']],
    });
    expect(seen.map(({ by }) => by)).toEqual([
      'global guard!',
      'class guard!',
      'global interceptor!',
      'interceptor!',
    ]);
    allow = (by) => by !== 'global guard';
    expect(await run(app)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('GUARD_REFUSED'),
    });
  });

  it('a global request-scoped guard comes before a handler that is a singleton, with the context as REQUEST', async () => {
    const app = await boot([GuardedJobs, { provide: APP_GUARD, useClass: RequestGuard }]);
    const handler = app.get(GuardedJobs);
    expect(await run(app)).toMatchObject({ status: 'succeeded' });
    expect(seen[0]).toMatchObject({ by: 'its own request' });
    expect(app.get(GuardedJobs)).toBe(handler);
  });

  it('they work with handlers that are request-scoped themselves', async () => {
    @Injectable({ scope: Scope.REQUEST })
    @UseGuards(OfClass)
    class ScopedJobs {
      constructor(@Inject(REQUEST) private readonly context: JobContext) {}
      @Job(Guarded)
      run(_payload: unknown, context: JobContext): boolean {
        return this.context === context;
      }
    }
    const app = await boot([ScopedJobs], { guards: true });
    expect(await run(app)).toMatchObject({ result: true });
    expect(seen.map(({ by }) => by)).toEqual(['class guard!']);
  });

  it('a guard that Nest would skip is refused at boot', async () => {
    @Controller()
    @UseGuards(OfClass)
    class Desk {
      @Job(Guarded)
      run(): void {}
    }
    @Injectable()
    class Made {
      @Job(Guarded)
      @UseGuards(OfMethod)
      run(): void {}
    }
    const unreachable = (message: RegExp): unknown =>
      expect.objectContaining({ code: 'ENHANCER_UNREACHABLE', message: expect.stringMatching(message) });
    await expect(boot([], { guards: true }, { controllers: [Desk] })).rejects.toEqual(
      unreachable(/Desk\.run: @UseGuards\(Guard\) would be skipped/),
    );
    await expect(boot([{ provide: 'MADE', useFactory: () => new Made() }], { guards: true })).rejects.toEqual(
      unreachable(/Made\.run: .*list Made itself/),
    );
    // Interceptors alone do not ask for guards.
    const app = await boot([{ provide: 'MADE', useFactory: () => new Made() }], { interceptors: true });
    expect(await run(app)).toMatchObject({ status: 'succeeded' });
  });

  it('an instance of a guard works wherever the handler is', async () => {
    const instance: CanActivate = {
      canActivate(context) {
        note('instance', context);
        return allow('instance');
      },
    };
    @Controller()
    @UseGuards(instance)
    class Desk {
      @Job(Guarded)
      run(): void {}
    }
    allow = () => false;
    const app = await boot([], { guards: true }, { controllers: [Desk] });
    expect(await run(app)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('GUARD_REFUSED'),
    });
  });

  it('the test kit has them too', async () => {
    const app = await apps.boot({
      imports: [RatchetTestingModule.forRoot({ enhancers: { guards: true } })],
      providers: [Config, GuardedJobs],
    });
    allow = () => false;
    await app.get(JobScheduler).enqueue(Guarded, { n: 1 });
    expect(await RatchetTester.of(app).runNext()).toMatchObject({
      outcome: 'failed',
      error: { code: 'GUARD_REFUSED' },
    });
  });

  it('an option that is none is named', async () => {
    await expect(boot([], { guard: true } as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('enhancers.guard: there is no such option; did you mean guards?'),
    });
  });
});
