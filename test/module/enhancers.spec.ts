import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  Logger,
  type NestInterceptor,
  type PipeTransform,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { Job, JobScheduler, RatchetModule } from 'nestjs-ratchet';
import { map, type Observable } from 'rxjs';
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
