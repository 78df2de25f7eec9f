import { describe, expect, it } from '@jest/globals';
import { Job } from '../../lib/decorators/job.decorator.js';
import { JOB_MARK } from '../../lib/decorators/job-mark.js';
import { JobMetadataAccessor } from '../../lib/discovery/job-metadata.accessor.js';
import { defineJob } from '../../lib/jobs/define-job.js';

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
    expect(found?.mark.definition).toMatchObject({ name: 'clean.up', maxRetries: 1, timeoutMs: 120_000 });
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
