import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { defineJob, type NewRecurringSchedule, RecurringScheduler } from 'nestjs-ratchet';
import { ListKit } from '../../testing/app.js';

const Ping = defineJob('ping');
const kit = new ListKit();
let recurring: RecurringScheduler;

beforeAll(async () => {
  const { app } = await kit.boot([]);
  recurring = app.get(RecurringScheduler);
});
afterAll(() => kit.close());

const refused = (message: string | RegExp, code = 'INVALID_RECURRING_OPTION') => ({
  code,
  message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
});
const create = (given: unknown): Promise<unknown> => recurring.create(given as NewRecurringSchedule);
const RIGHT = { id: 'a', expression: '@daily', job: Ping };

function trap(): object {
  return new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('trap');
      },
      get: () => {
        throw new Error('trap');
      },
    },
  );
}

describe('what create() is given', () => {
  it.each<[string, unknown, string | RegExp]>([
    ['nothing', undefined, 'create: schedule: undefined is wrong; allowed: an object with'],
    ['a text', 'a', 'create: schedule: "a" is wrong'],
    ['no id', { ...RIGHT, id: undefined }, 'create: id: undefined is wrong'],
    ['a long id', { ...RIGHT, id: 'x'.repeat(201) }, /create\("x+…?"?\): id: "xxx/],
    ['an id with NUL', { ...RIGHT, id: 'a\0' }, 'id: "a\\u0000" is wrong'],
    [
      'an unknown key',
      { ...RIGHT, misfir: 'skip' },
      'create("a"): misfir: there is no such key; did you mean misfire?',
    ],
    ['a scope', { ...RIGHT, scope: 'node' }, 'create("a"): scope: there is no such key'],
    [
      'no times',
      { ...RIGHT, expression: undefined },
      'expression: undefined is wrong; allowed: one of { expression } and { every }',
    ],
    ['two times', { ...RIGHT, every: '1h' }, 'every: "1h" is wrong; allowed: expression or every, not both'],
    ['no job', { ...RIGHT, job: undefined }, 'job: undefined is wrong; allowed: what defineJob() returned'],
    ['a name for a job', { ...RIGHT, job: 'ping' }, 'job: "ping" is wrong'],
    ['a business key', { ...RIGHT, businessKey: '' }, 'businessKey: "" is wrong'],
    [
      'ifExists',
      { ...RIGHT, ifExists: 'update' },
      'ifExists: "update" is wrong; allowed: reject, keep, replace',
    ],
    ['misfire', { ...RIGHT, misfire: { catchUp: 0 } }, 'misfire.catchUp: 0 is wrong'],
    ['a trap', trap(), 'reading it threw: trap'],
    ['a trap in the options', { ...RIGHT, backoff: trap() }, 'reading it threw: trap'],
  ])('%s', async (_, given, message) => {
    await expect(create(given)).rejects.toMatchObject(refused(message));
  });

  it('a jitter as long as the interval', async () => {
    const given = { ...RIGHT, expression: undefined, every: '15s' };
    await expect(create({ ...given, jitter: '15s' })).rejects.toMatchObject(
      refused('create("a"): jitter: 15000 is wrong; allowed: a duration below the interval (15s)'),
    );
  });

  it('times and zones, by the id', async () => {
    await expect(create({ ...RIGHT, expression: '0 0 31 2 *' })).rejects.toMatchObject(
      refused('create("a"): "0 0 31 2 *"', 'RECURRING_BAD_EXPRESSION'),
    );
    await expect(create({ ...RIGHT, expression: undefined, every: '1 hour' })).rejects.toMatchObject(
      refused('create("a")', 'RECURRING_BAD_EXPRESSION'),
    );
    await expect(create({ ...RIGHT, timeZone: 'Mars/Base' })).rejects.toMatchObject(
      refused('create("a"): "Mars/Base"', 'RECURRING_BAD_TIME_ZONE'),
    );
  });
});

describe('what the others are given', () => {
  it.each<[string, () => Promise<unknown>, string]>([
    ['update', () => recurring.update('a', { id: 'b' } as never), 'update("a"): id: there is no such key'],
    [
      'update without a patch',
      () => recurring.update('a', undefined as never),
      'update("a"): patch: undefined',
    ],
    [
      'update to no expression',
      () => recurring.update('a', { expression: null as never }),
      'update("a"): expression: null is wrong; allowed: a cron text',
    ],
    ['update of no id', () => recurring.update(7 as never, {}), 'update: id: 7 is wrong'],
    ['pause', () => recurring.pause(undefined as never), 'pause: id: undefined is wrong'],
    ['resume', () => recurring.resume(''), 'resume: id: "" is wrong'],
    [
      'trigger',
      () => recurring.trigger('a', { overlap: 'run' as never }),
      'trigger("a"): overlap: "run" is wrong; allowed: skip, queue, allow',
    ],
    [
      'trigger with a typo',
      () => recurring.trigger('a', { paylod: 1 } as never),
      'paylod: there is no such key; did you mean payload?',
    ],
    ['delete', () => recurring.delete({} as never), 'delete: id: {} is wrong'],
    [
      'by key',
      () => recurring.cancelRecurringJobByBusinessKey(undefined as never),
      'cancelRecurringJobByBusinessKey: businessKey: undefined',
    ],
    ['by tag', () => recurring.cancelRecurringJobsByTag('x'.repeat(101)), 'tag: "xxx'],
    ['get', () => recurring.get(null as never), 'get: id: null is wrong'],
    [
      'list',
      () => recurring.list({ limit: 0 }),
      'list: limit: 0 is wrong; allowed: an integer from 1 to 1000',
    ],
    [
      'list with a typo',
      () => recurring.list({ origins: 'api' } as never),
      'origins: there is no such key; did you mean origin?',
    ],
    [
      'list by origin',
      () => recurring.list({ origin: 'code' as never }),
      'origin: "code" is wrong; allowed: annotation, api',
    ],
    ['preview', () => recurring.preview('@daily', { count: 1_001 }), 'preview: count: 1001 is wrong'],
    [
      'preview from no date',
      () => recurring.preview('@daily', { from: new Date('x') }),
      'preview: from: Invalid Date is wrong',
    ],
    [
      'occurrences',
      () => recurring.occurrences('a', { since: '2026' as never }),
      'occurrences("a"): since: "2026" is wrong',
    ],
  ])('%s', async (_, call, message) => {
    await expect(call()).rejects.toMatchObject(refused(message));
  });

  it('listAll refuses in the call itself', () => {
    expect(() => recurring.listAll({ limit: 5 } as never)).toThrow(expect.objectContaining(refused('limit')));
  });

  it('preview names itself', async () => {
    await expect(recurring.preview('nonsense')).rejects.toMatchObject(
      refused('preview: "nonsense"', 'RECURRING_BAD_EXPRESSION'),
    );
  });
});
