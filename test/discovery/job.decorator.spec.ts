import { describe, expect, it } from '@jest/globals';
import { Job } from '../../lib/decorators/job.decorator.js';
import { OnJobFailure } from '../../lib/decorators/on-job-failure.decorator.js';
import { JOB_MARK } from '../../lib/decorators/job-mark.js';
import { JobMetadataAccessor } from '../../lib/discovery/job-metadata.accessor.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { failureDefinition } from '../../lib/jobs/job-failure.js';

const SendInvoice = defineJob<{ orderId: string }>('invoice.send', { maxRetries: 5 });

describe('@Job', () => {
  it('marks the function and the place', () => {
    class InvoiceJobs {
      @Job(SendInvoice)
      send(): void {}
    }
    const mark = { definition: SendInvoice, owner: 'InvoiceJobs.send' };
    const method: unknown = Object.getOwnPropertyDescriptor(InvoiceJobs.prototype, 'send')?.value;
    expect(Reflect.getMetadata(JOB_MARK, method as object)).toEqual(mark);
    expect(Reflect.getMetadata(JOB_MARK, InvoiceJobs.prototype, 'send')).toEqual(mark);
    expect(JOB_MARK).toBe(Symbol.for('nestjs-ratchet:job'));
  });

  it('defines in place', () => {
    class Jobs {
      @Job('clean.up', { maxRetries: 1, backoff: { type: 'none' }, timeout: '2m' })
      cleanUp(): void {}
    }
    const [found] = new JobMetadataAccessor().markedMethods(Jobs.prototype);
    expect(found?.mark?.definition).toMatchObject({ name: 'clean.up', maxRetries: 1, timeoutMs: 120_000 });
  });

  it('refuses a policy that cannot be right, where it stands', () => {
    expect(() => Job('x', { timeout: 'soon' as '1s' })).toThrow(
      expect.objectContaining({ code: 'INVALID_JOB_DEFINITION' }),
    );
  });

  const misplaced = (problem: RegExp) =>
    expect.objectContaining({ code: 'JOB_DECORATOR_MISPLACED', message: expect.stringMatching(problem) });
  const decorate = (target: object, key: string, descriptor?: PropertyDescriptor) => () => {
    Job('x')(target, key, descriptor as never);
  };

  it('refuses static methods, properties and accessors', () => {
    class Jobs {
      static run(): void {}
    }
    const method = Object.getOwnPropertyDescriptor(Jobs, 'run');
    expect(decorate(Jobs, 'run', method)).toThrow(misplaced(/Jobs\.run: .*static method/));
    expect(decorate(Jobs.prototype, 'value')).toThrow(misplaced(/Jobs\.value: .*belongs on a method/));
    expect(decorate(Jobs.prototype, 'size', { get: () => 1 })).toThrow(misplaced(/belongs on a method/));
  });

  it('refuses a definition that is not there (a circular import)', () => {
    expect(() => {
      class Jobs {
        @Job(undefined as unknown as typeof SendInvoice)
        run(): void {}
      }
      return Jobs;
    }).toThrow(misplaced(/Jobs\.run: .*neither a definition/));
  });

  it('refuses two jobs for one method', () => {
    expect(() => {
      class Jobs {
        @Job('b')
        @Job('a')
        run(): void {}
      }
      return Jobs;
    }).toThrow(misplaced(/Jobs\.run: .*"b".*"a"/));
  });
});

describe('@OnJobFailure', () => {
  it('marks the function and the place, with a definition of its own', () => {
    class Failures {
      @OnJobFailure(SendInvoice, { maxRetries: 1, timeout: '2s', backoff: { type: 'none' } })
      failed(): void {}
    }
    const [found] = new JobMetadataAccessor().markedMethods(Failures.prototype);
    expect(found?.mark).toEqual({
      owner: 'Failures.failed',
      failureOf: SendInvoice,
      definition: expect.objectContaining({
        name: 'invoice.send#failed',
        lane: 'default',
        maxRetries: 1,
        timeoutMs: 2_000,
      }),
    });
    expect(Object.isFrozen(found?.mark?.definition)).toBe(true);
  });

  it("takes the definition's lane, and none of its retries", () => {
    const Mail = defineJob('mail', {
      lane: 'mail',
      maxRetries: 7,
      timeout: '1s',
      history: 'drop',
      version: 3,
    });
    expect(failureDefinition(Mail)).toMatchObject({
      lane: 'mail',
      maxRetries: undefined,
      timeoutMs: undefined,
      history: 'keep',
      version: 1,
    });
    expect(failureDefinition(Mail, { lane: 'alarms' }).lane).toBe('alarms');
    const longest = defineJob('x'.repeat(200));
    expect(failureDefinition(longest).name).toHaveLength(207);
  });

  const throwing = Object.defineProperty({}, 'lane', {
    enumerable: true,
    get: () => {
      throw new Error('a getter');
    },
  });
  it('refuses a policy that cannot be right, where it stands', () => {
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [null, /policy/],
      [[], /policy/],
      ['soon', /policy/],
      [
        { priority: 'high' },
        /"invoice\.send#failed"\.priority: there is no such key; allowed: lane, maxRetries, backoff, timeout/,
      ],
      [{ maxRetries: NaN }, /maxRetries/],
      [{ lane: '' }, /lane/],
      [{ timeout: '2 minutes' }, /timeout/],
      [throwing, /reading it threw: a getter/],
    ];
    class Failures {
      failed(): void {}
    }
    const method = Object.getOwnPropertyDescriptor(Failures.prototype, 'failed');
    for (const [policy, message] of wrong) {
      expect(() =>
        OnJobFailure(SendInvoice, policy as never)(Failures.prototype, 'failed', method as never),
      ).toThrow(
        expect.objectContaining({ code: 'INVALID_JOB_DEFINITION', message: expect.stringMatching(message) }),
      );
    }
  });

  const misplaced = (problem: RegExp) =>
    expect.objectContaining({ code: 'JOB_DECORATOR_MISPLACED', message: expect.stringMatching(problem) });

  it('refuses a method that handles a job already, and the other way round', () => {
    expect(() => {
      class Both {
        @OnJobFailure(SendInvoice)
        @Job(SendInvoice as never)
        run(): void {}
      }
      return Both;
    }).toThrow(
      misplaced(/Both\.run: @OnJobFailure \("invoice\.send"\) stands beside @Job\("invoice\.send"\)/),
    );
    expect(() => {
      class Both {
        @Job('other')
        @OnJobFailure(SendInvoice)
        run(): void {}
      }
      return Both;
    }).toThrow(misplaced(/Both\.run: @Job \("other"\) stands beside @OnJobFailure\("invoice\.send"\)/));
  });

  it('refuses static methods, properties, and what is no definition', () => {
    class Failures {
      static run(): void {}
      run(): void {}
    }
    const decorate = (definition: unknown, target: object, descriptor?: PropertyDescriptor) => () =>
      OnJobFailure(definition as typeof SendInvoice)(target, 'run', descriptor as never);
    const method = Object.getOwnPropertyDescriptor(Failures.prototype, 'run');
    expect(decorate(SendInvoice, Failures, Object.getOwnPropertyDescriptor(Failures, 'run'))).toThrow(
      misplaced(/@OnJobFailure is on a static method/),
    );
    expect(decorate(SendInvoice, Failures.prototype)).toThrow(misplaced(/@OnJobFailure belongs on a method/));
    for (const definition of [undefined, null, 'invoice.send', 7, {}]) {
      expect(decorate(definition, Failures.prototype, method)).toThrow(
        misplaced(/@OnJobFailure was given no definition/),
      );
    }
  });
});
