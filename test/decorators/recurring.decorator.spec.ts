import { describe, expect, it } from '@jest/globals';
import { CronExpression } from '@nestjs/schedule';
import { Job } from '../../lib/decorators/job.decorator.js';
import { Recurring, type RecurringOptions } from '../../lib/decorators/recurring.decorator.js';
import { RECURRING_MARK, type RecurringMark } from '../../lib/decorators/recurring-mark.js';
import { JobMetadataAccessor } from '../../lib/discovery/job-metadata.accessor.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type RuleSource } from '../../lib/recurring/time/recurrence-rule.js';

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

/** A class whose method has the decorator, made when it is called. */
const decorated =
  (expression: unknown, options?: unknown): (() => unknown) =>
  () => {
    class ReportJobs {
      @Recurring(expression as RuleSource, options as RecurringOptions)
      daily(): void {}
    }
    return ReportJobs;
  };

describe('@Recurring', () => {
  it('marks the function and the place with what was said', () => {
    class ReportJobs {
      @Recurring('0 6 * * *', { id: 'digest', misfire: { catchUp: 3 }, jitter: '1m', timeout: '10m' })
      daily(): void {}
    }
    const mark: RecurringMark = {
      owner: 'ReportJobs.daily',
      declarations: [
        {
          source: '0 6 * * *',
          id: 'digest',
          scope: 'cluster',
          payload: undefined,
          options: expect.objectContaining({
            misfire: { catchUp: 3 },
            jitterMs: 60_000,
            timeoutMs: 600_000,
            overlap: undefined,
            timeZone: undefined,
          }) as never,
        },
      ],
    };
    const method: unknown = Object.getOwnPropertyDescriptor(ReportJobs.prototype, 'daily')?.value;
    expect(Reflect.getMetadata(RECURRING_MARK, method as object)).toEqual(mark);
    expect(Reflect.getMetadata(RECURRING_MARK, ReportJobs.prototype, 'daily')).toEqual(mark);
    expect(RECURRING_MARK).toBe(Symbol.for('nestjs-ratchet:recurring'));
  });

  it('may stand several times, and beside a @Job above or below', () => {
    const Send = defineJob<{ list: string }>('send');
    class MailJobs {
      @Recurring('0 6 * * *', { id: 'a', payload: { list: 'a' } })
      @Job(Send)
      @Recurring({ every: '15s' }, { id: 'b', payload: { list: 'b' } })
      send(): void {}
    }
    const [found] = new JobMetadataAccessor().markedMethods(MailJobs.prototype);
    expect(found?.mark?.definition).toBe(Send);
    expect(found?.recurring?.declarations.map(({ id, payload }) => [id, payload])).toEqual([
      ['b', { value: { list: 'b' } }],
      ['a', { value: { list: 'a' } }],
    ]);
  });

  it.each([
    ['0 6 * * *'],
    ['*/5 * * * * *'],
    ['@daily'],
    ['@every 90s'],
    [CronExpression.EVERY_10_MINUTES],
    [CronExpression.MONDAY_TO_FRIDAY_AT_09_30AM],
    [{ every: '15s' }],
    [{ every: 2_000 }],
  ])('takes %j', (expression) => {
    expect(decorated(expression, { id: 'x' })).not.toThrow();
  });

  it.each([
    ['a field too few', '0 6 * *', {}, 'RECURRING_BAD_EXPRESSION'],
    ['two fields', '0 6', {}, 'RECURRING_BAD_EXPRESSION'],
    ['an empty text', '', {}, 'RECURRING_BAD_EXPRESSION'],
    ['no text', undefined, {}, 'RECURRING_BAD_EXPRESSION'],
    ['the 31st of February', '0 0 31 2 *', {}, 'RECURRING_BAD_EXPRESSION'],
    ['an hour that no clock has', '0 25 * * *', {}, 'RECURRING_BAD_EXPRESSION'],
    ['an interval that is none', { every: '15 seconds' }, {}, 'RECURRING_BAD_EXPRESSION'],
    ['no interval', { every: 0 }, {}, 'RECURRING_BAD_EXPRESSION'],
    ['a misspelt zone', '0 6 * * *', { timeZone: 'Europe/Lisbom' }, 'RECURRING_BAD_TIME_ZONE'],
    ['a jitter of a whole interval', { every: '1m' }, { jitter: '1m' }, 'INVALID_RECURRING_OPTION'],
    ['an empty zone', '0 6 * * *', { timeZone: '' }, 'RECURRING_BAD_TIME_ZONE'],
  ])('refuses %s, by class and method', (_, expression, options, code) => {
    expect(decorated(expression, options)).toThrow(refusal(code, /: ReportJobs\.daily: /));
  });

  it.each<[string, unknown, RegExp]>([
    ['an unknown key', { misfir: 'skip' }, /misfir: there is no such key; did you mean misfire\?/],
    ['the word of @nestjs/schedule', { timezone: 'UTC' }, /timezone: .*did you mean timeZone\?/],
    ['what is no object', 'daily', /options: "daily" is wrong; allowed: an object/],
    ['an empty id', { id: '' }, /id: "" is wrong; allowed: a text of 1 to 200/],
    ['a long id', { id: 'x'.repeat(201) }, /id: "xxx/],
    ['an id that looks like a job', { id: 'x#failed' }, /does not end in "#failed"/],
    ['a name', { name: 5 }, /name: 5 is wrong/],
    ['enabled', { enabled: 'no' }, /enabled: "no" is wrong; allowed: true, false/],
    ['a priority', { priority: 'urgent' }, /priority: "urgent" is wrong; allowed: lowest, low/],
    ['a lane', { lane: '' }, /lane: "" is wrong/],
    ['retries', { maxRetries: -1 }, /maxRetries: -1 is wrong/],
    ['a backoff', { backoff: { delay: 'soon' } }, /backoff\.delay: "soon" is wrong/],
    ['a timeout', { timeout: 0 }, /timeout: 0 is wrong; .*above 0/],
    ['tags', { tags: 'a' }, /tags: "a" is wrong/],
    ['a tag', { tags: ['a', ''] }, /tags\[1\]: "" is wrong/],
    ['misfire', { misfire: 'all' }, /misfire: "all" is wrong; allowed: 'skip', 'once', or \{ catchUp \}/],
    ['a catchUp of none', { misfire: { catchUp: 0 } }, /misfire\.catchUp: 0 is wrong; .*from 1 to 1000/],
    ['a catchUp of many', { misfire: { catchUp: 1_001 } }, /misfire\.catchUp: 1001 is wrong/],
    ['a misspelt catchUp', { misfire: { catchup: 3 } }, /misfire\.catchup: .*did you mean catchUp\?/],
    ['overlap', { overlap: 'wait' }, /overlap: "wait" is wrong; allowed: skip, queue, allow/],
    ['a jitter', { jitter: '2d' }, /jitter: "2d" is wrong; allowed: a duration of at most 1d/],
    ['a scope', { scope: 'nodes' }, /scope: "nodes" is wrong; allowed: cluster, node; did you mean node\?/],
    ['retries in memory', { scope: 'node', maxRetries: 3 }, /maxRetries: 3 is wrong; .*scope 'node'/],
    ['a zone that is no text', { timeZone: 2 }, /timeZone: 2 is wrong/],
    [
      'a trap',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('trap');
          },
        },
      ),
      /options: .*reading it threw: trap/,
    ],
  ])('refuses %s', (_, options, message) => {
    expect(decorated('0 6 * * *', options)).toThrow(refusal('INVALID_RECURRING_OPTION', message));
    expect(decorated('0 6 * * *', options)).toThrow(
      refusal('INVALID_RECURRING_OPTION', /: ReportJobs\.daily: /),
    );
  });

  it('refuses to stand anywhere but on a method of an instance', () => {
    class Jobs {
      static run(): void {}
    }
    const place =
      (target: object, key: string, descriptor?: PropertyDescriptor): (() => void) =>
      () => {
        Recurring('0 6 * * *')(target, key, descriptor as never);
      };
    const misplaced = (message: RegExp) => refusal('JOB_DECORATOR_MISPLACED', message);
    const method = Object.getOwnPropertyDescriptor(Jobs, 'run');
    expect(place(Jobs, 'run', method)).toThrow(misplaced(/Jobs\.run: @Recurring is on a static method/));
    expect(place(Jobs.prototype, 'value')).toThrow(misplaced(/Jobs\.value: @Recurring belongs on a method/));
  });

  it('refuses a second one without an id', () => {
    expect(() => {
      class Jobs {
        @Recurring('0 7 * * *')
        @Recurring('0 6 * * *')
        run(): void {}
      }
      return Jobs;
    }).toThrow(refusal('JOB_DECORATOR_MISPLACED', /Jobs\.run: @Recurring stands beside another/));
  });
});

/** Puts another function in the place of the method, as a decorator that logs does. */
function Wrapped(_: object, __: string, descriptor: PropertyDescriptor): void {
  const inner = descriptor.value as (...parameters: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...parameters: unknown[]) {
    return inner.apply(this, parameters);
  };
}

/** The same, and well behaved. */
function Copied(target: object, key: string, descriptor: PropertyDescriptor): void {
  const inner = descriptor.value as object;
  Wrapped(target, key, descriptor);
  for (const name of Reflect.getMetadataKeys(inner) as unknown[]) {
    Reflect.defineMetadata(name, Reflect.getMetadata(name, inner), descriptor.value as object);
  }
}

describe('a @Recurring that is hidden', () => {
  const marked = (prototype: object) => () => new JobMetadataAccessor().markedMethods(prototype);
  const hidden = (message: RegExp) => refusal('HANDLER_HIDDEN', message);

  it('by a decorator above it is named', () => {
    class Jobs {
      @Wrapped
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    expect(marked(Jobs.prototype)).toThrow(hidden(/Jobs\.run: a decorator above @Recurring\("digest"\)/));
  });

  it('by a decorator between two of them is named', () => {
    class Jobs {
      @Recurring('0 7 * * *', { id: 'above' })
      @Wrapped
      @Recurring('0 6 * * *', { id: 'below' })
      run(): void {}
    }
    expect(marked(Jobs.prototype)).toThrow(hidden(/a decorator above @Recurring\("below"\)/));
  });

  it('is found through one that copies the metadata', () => {
    class Jobs {
      @Recurring('0 7 * * *', { id: 'above' })
      @Copied
      @Recurring('0 6 * * *', { id: 'below' })
      run(): void {}
    }
    const [found] = marked(Jobs.prototype)();
    expect(found?.recurring?.declarations.map(({ id }) => id)).toEqual(['below', 'above']);
  });

  it('by an override is named; a decorated override counts alone', () => {
    class Base {
      @Recurring('0 6 * * *', { id: 'digest' })
      run(): void {}
    }
    class Bare extends Base {
      override run(): void {}
    }
    class WithJob extends Base {
      @Job('job')
      override run(): void {}
    }
    class Anew extends Base {
      @Recurring('0 7 * * *', { id: 'anew' })
      override run(): void {}
    }
    const message = /run: overrides Base\.run without its @Recurring\("digest"\)/;
    expect(marked(Bare.prototype)).toThrow(hidden(message));
    expect(marked(WithJob.prototype)).toThrow(hidden(message));
    expect(marked(Anew.prototype)()[0]?.recurring?.declarations.map(({ id }) => id)).toEqual(['anew']);
    expect(marked(Base.prototype)()[0]?.recurring?.declarations.map(({ id }) => id)).toEqual(['digest']);
  });
});
