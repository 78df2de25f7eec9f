import { describe, expect, it } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { uuidv7 } from 'uuidv7';
import { defineJob } from '../../lib/jobs/define-job.js';
import { ACTS_ON, type JobAction } from '../../lib/jobs/job-actions.js';
import { type FindOptions, type JobFilter } from '../../lib/jobs/job-filter.js';
import { type JobQuery, type PageRequest } from '../../lib/store/job-store.js';
import { listScheduler } from './support.js';

const Note = defineJob<{ text: string }>('note');
const ID = '0199f1f0-0000-7000-8000-00000000000a';
const DAY = new Date('2026-11-30T00:00:00Z');
const NEXT = new Date('2026-12-01T00:00:00Z');

/** What the store is asked for. */
function asked() {
  const queries: JobQuery[] = [];
  const pages: PageRequest[] = [];
  const { scheduler } = listScheduler({
    store: {
      find: async (query, page) => (queries.push(query), pages.push(page), { jobs: [], more: false }),
      count: async (query) => (queries.push(query), 7),
      countControllable: async (_, query) => (queries.push(query), 8),
      control: async (_, query) => (queries.push(query), { matched: 0, changed: [], next: undefined }),
    },
  });
  return { scheduler, queries, pages };
}

describe('a filter', () => {
  it.each<[string, JobFilter, JobQuery]>([
    ['nothing', {}, {}],
    ['one id, in any case', { id: ID.toUpperCase() }, { ids: [ID] }],
    ['ids, once each', { id: [ID, ID.toUpperCase()] }, { ids: [ID] }],
    ['statuses', { status: ['failed', 'running'] }, { statuses: ['failed', 'running'] }],
    ['a name', { name: 'note' }, { names: ['note'] }],
    ['definitions and names', { name: [Note, 'note', 'x#failed'] }, { names: ['note', 'x#failed'] }],
    [
      'lane, priority, keys',
      { lane: 'a', priority: ['high', 'lowest'], businessKey: ['k', 'l'] },
      { lanes: ['a'], priorities: [3, 0], businessKeys: ['k', 'l'] },
    ],
    ['a tag, all tags', { tag: ['a', 'b'] }, { tags: ['a', 'b'] }],
    ['a parent', { parentId: ID.toUpperCase() }, { parentId: ID }],
    [
      'times',
      { created: { from: DAY }, scheduled: { until: DAY }, ended: { from: DAY, until: NEXT } },
      { created: { from: DAY }, scheduled: { until: DAY }, ended: { from: DAY, until: NEXT } },
    ],
    ['undefined', { status: undefined, created: { from: undefined }, ended: undefined }, {}],
  ])('says to the store: %s', async (_, filter, query) => {
    const { scheduler, queries } = asked();
    await scheduler.find(filter);
    await expect(scheduler.count(filter)).resolves.toBe(7);
    expect(queries).toEqual([query, query]);
  });

  it('takes dates of another realm, as they are in the call', async () => {
    const { scheduler, queries } = asked();
    const from = runInNewContext('new Date(5000)') as Date;
    const counting = scheduler.count({ created: { from } });
    from.setTime(9_000);
    await counting;
    expect(queries).toEqual([{ created: { from: new Date(5_000) } }]);
  });

  const trap = Object.defineProperty({}, 'status', {
    enumerable: true,
    get: () => {
      throw new Error('trap');
    },
  });
  it.each<[string, unknown, string, string]>([
    ['a misspelt key', { stauts: 'failed' }, 'stauts', 'there is no such key; did you mean status?'],
    [
      'a strange key',
      { payload: 7 },
      'payload',
      'there is no such key; allowed: id, status, name, lane, priority, tag, ',
    ],
    ['null', null, 'filter', 'null is wrong; allowed: an object with id, status,'],
    ['a list', [], 'filter', '[] is wrong; allowed: an object'],
    ['a text', 'failed', 'filter', '"failed" is wrong; allowed: an object'],
    [
      'a wrong status',
      { status: 'faild' },
      'status',
      '"faild" is wrong; allowed: pending, running, paused, succeeded, failed, canceled; did you mean failed?',
    ],
    ['a wrong status in a list', { status: ['failed', 'done'] }, 'status[1]', '"done" is wrong'],
    ['null for a status', { status: null }, 'status', 'null is wrong'],
    ['a rank', { priority: 3 }, 'priority', '3 is wrong; allowed: lowest, low, normal, high, critical'],
    [
      'an empty list',
      { status: [] },
      'status',
      '[] is wrong; allowed: at least one value; leave the key out for any',
    ],
    ['an empty list of tags', { tag: [] }, 'tag', '[] is wrong'],
    ['a list without end', { id: Array(10_001).fill(ID) }, 'id', 'allowed: at most 10000 values'],
    ['a hole', { tag: new Array(2) }, 'tag[0]', 'undefined is wrong'],
    ['undefined in a list', { lane: ['a', undefined] }, 'lane[1]', 'undefined is wrong'],
    ['no id', { id: '42' }, 'id', '"42" is wrong; allowed: the id of a job, a UUID'],
    ['no id in a list', { id: [ID, 42] }, 'id[1]', '42 is wrong'],
    ['no parent', { parentId: [ID] }, 'parentId', 'is wrong; allowed: the id of a job'],
    ['no name', { name: '' }, 'name', '"" is wrong; allowed: a text of 1 to 210 characters'],
    ['a class for a name', { name: class Note {} }, 'name', '[class Note] is wrong'],
    ['a definition without a name', { name: [{ name: 7, version: 1 }] }, 'name[0].name', '7 is wrong'],
    ['NUL in a tag', { tag: 'a\0' }, 'tag', 'without NUL'],
    ['a long key', { businessKey: 'x'.repeat(201) }, 'businessKey', 'a text of 1 to 200'],
    [
      'a text for a time',
      { created: '2026' },
      'created',
      '"2026" is wrong; allowed: an object with from, until',
    ],
    [
      'a Date for a window',
      { created: DAY },
      'created',
      'is wrong; allowed: one of its ends: { from, until }',
    ],
    [
      'a text for an end',
      { ended: { from: '2026-01-01' } },
      'ended.from',
      '"2026-01-01" is wrong; allowed: a valid Date',
    ],
    ['an invalid Date', { ended: { until: new Date('x') } }, 'ended.until', 'Invalid Date is wrong'],
    ['a Date beyond PostgreSQL', { ended: { until: new Date(8.64e15) } }, 'ended.until', 'from 1970 to 9999'],
    ['a window backwards', { created: { from: NEXT, until: DAY } }, 'created', 'allowed: from before until'],
    ['an empty window', { created: { from: DAY, until: DAY } }, 'created', 'allowed: from before until'],
    ['a misspelt end', { created: { frm: DAY } }, 'created.frm', 'did you mean from?'],
    ['a trap', trap, 'filter', 'what can be read, but reading it threw: trap'],
  ])('is refused with path, value and what is allowed: %s', async (_, filter, path, message) => {
    const { scheduler, queries } = asked();
    const refusal = { code: 'INVALID_JOB_FILTER', path, message: expect.stringContaining(message) };
    await expect(scheduler.find(filter as JobFilter)).rejects.toMatchObject({ ...refusal, call: 'find' });
    await expect(scheduler.count(filter as JobFilter)).rejects.toMatchObject({ ...refusal, call: 'count' });
    expect(() => scheduler.findAll(filter as JobFilter)).toThrow(
      expect.objectContaining({ ...refusal, call: 'findAll' }),
    );
    expect(queries).toEqual([]);
  });
});

describe('a page', () => {
  it('has 50 jobs', async () => {
    const { scheduler, pages } = asked();
    await expect(scheduler.find()).resolves.toEqual({ jobs: [], cursor: undefined });
    await scheduler.find(undefined, { limit: 1_000, cursor: undefined });
    expect(pages).toEqual([{ limit: 50 }, { limit: 1_000 }]);
  });

  it.each<[string, unknown, string]>([
    ['limit 0', { limit: 0 }, 'options.limit: 0 is wrong; allowed: an integer from 1 to 1000'],
    ['limit 1001', { limit: 1_001 }, 'options.limit: 1001'],
    ['limit NaN', { limit: Number.NaN }, 'options.limit: NaN'],
    ['limit as text', { limit: '20' }, 'options.limit: "20"'],
    ['a misspelt option', { curser: 'x' }, 'options.curser: there is no such key; did you mean cursor?'],
    ['null', null, 'options: null is wrong'],
    ['an empty cursor', { cursor: '' }, 'options.cursor: "" is wrong; allowed: the cursor of a page'],
    ['an id', { cursor: ID }, `options.cursor: "${ID}" is wrong`],
    ['a cut cursor', { cursor: 'AQGZ8fAAAHAAgAAAAAAAAA' }, 'options.cursor: '],
    ['a cursor of another form', { cursor: Buffer.alloc(17, 2).toString('base64url') }, 'options.cursor: '],
    ['no text', { cursor: 7 }, 'options.cursor: 7'],
  ])('is refused: %s', async (_, options, message) => {
    const { scheduler, pages } = asked();
    await expect(scheduler.find({}, options as FindOptions)).rejects.toMatchObject({
      code: 'INVALID_JOB_FILTER',
      message: expect.stringContaining(`INVALID_JOB_FILTER: find: ${message}`),
    });
    expect(pages).toEqual([]);
  });
});

const ACTIONS = ['cancel', 'pause', 'resume', 'redrive', 'reschedule'] as const;

describe.each(ACTIONS)('%s by a filter', (action) => {
  const act = (filter: unknown, options?: unknown): Promise<unknown> => {
    const { scheduler } = asked();
    return action === 'reschedule'
      ? scheduler.reschedule(filter as JobFilter, { delay: 0 }, options as never)
      : scheduler[action](filter as JobFilter, options as never);
  };
  const acted: Readonly<Record<JobAction, string>> = {
    cancel: "'pending', 'running', 'paused'",
    pause: "'pending', 'running'",
    resume: "'paused', 'running'",
    redrive: "'failed'",
    reschedule: "'pending', 'paused'",
  };

  it('is not every job by accident', async () => {
    await expect(act({})).rejects.toMatchObject({
      code: 'INVALID_JOB_FILTER',
      call: action,
      path: 'filter',
      allowed: `at least one condition; to ${action} every job say it: { status: [${acted[action]}] }`,
    });
  });

  it.each<[string, unknown, string, string]>([
    ['undefined', { lane: 'mail', tag: undefined }, 'tag', 'leave the key out'],
    ['undefined only', { status: undefined }, 'status', 'leave the key out'],
    ['a misspelt undefined', { lane: 'mail', tga: undefined }, 'tga', 'did you mean tag?'],
    ['an end that is undefined', { lane: 'mail', created: { until: undefined } }, 'created.until', 'leave'],
    [
      'one of two ends',
      { lane: 'mail', scheduled: { from: DAY, until: undefined } },
      'scheduled.until',
      'leave the key out',
    ],
    ['a window without ends', { lane: 'mail', created: {} }, 'created', 'from, until, or both'],
  ])('is not more than was meant: %s', async (_, filter, path, allowed) => {
    for (const options of [undefined, { preview: true }]) {
      await expect(act(filter, options)).rejects.toMatchObject({
        code: 'INVALID_JOB_FILTER',
        call: action,
        path,
        value: path === 'created' ? {} : undefined,
        allowed: expect.stringContaining(allowed),
      });
    }
    const { scheduler } = asked();
    await expect(scheduler.find(filter as JobFilter)).resolves.toMatchObject({ jobs: [] });
  });

  it('takes what it acts on, and refuses the other statuses', async () => {
    for (const status of ACTS_ON[action]) {
      await expect(act({ status })).resolves.toEqual({ matched: 0, changed: 0, aborted: false });
    }
    await expect(act({ status: ['succeeded'] })).rejects.toMatchObject({
      code: 'INVALID_JOB_FILTER',
      path: 'status',
      value: 'succeeded',
      allowed: `what ${action} acts on: ${ACTS_ON[action].join(', ')}`,
    });
  });

  it.each<[string, unknown, string]>([
    ['a text', 'preview', 'options: "preview"'],
    ['null', null, 'options: null'],
    ['preview as text', { preview: 'yes' }, 'options.preview: "yes" is wrong; allowed: true, false'],
    ['a misspelt preview', { prevew: true }, 'options.prevew: there is no such key; did you mean preview?'],
    ['a controller', { signal: new AbortController() }, 'options.signal: '],
    ['half a signal', { signal: { aborted: false } }, 'options.signal: '],
  ])('refuses options: %s', async (_, options, message) => {
    await expect(act({ tag: 'a' }, options)).rejects.toMatchObject({
      code: 'INVALID_JOB_FILTER',
      message: expect.stringContaining(`INVALID_JOB_FILTER: ${action}: ${message}`),
    });
  });

  it('refuses options beside an id, where somebody asked for a preview', async () => {
    await expect(act(uuidv7(), { preview: true })).rejects.toMatchObject({
      code: 'INVALID_JOB_FILTER',
      path: 'options',
      allowed: 'none beside an id; for a preview give { id }',
    });
  });
});

describe('an action on live jobs', () => {
  it('refuses a time of end, which they have not', async () => {
    const { scheduler } = asked();
    await expect(scheduler.cancel({ ended: { from: DAY } })).rejects.toMatchObject({
      path: 'ended',
      allowed: expect.stringContaining('cancel acts on live jobs'),
    });
    await expect(scheduler.redrive({ ended: { from: DAY } })).resolves.toMatchObject({ matched: 0 });
  });
});

describe('JobScheduler.cancelByTag', () => {
  it('is a filter of tags', async () => {
    const { scheduler, queries } = asked();
    await scheduler.cancelByTag('a');
    await expect(scheduler.cancelByTag(['a', 'b'], { preview: true })).resolves.toEqual({ matched: 8 });
    expect(queries).toEqual([{ tags: ['a'] }, { tags: ['a', 'b'] }]);
  });

  it.each([[undefined], [[]], [''], [7]])('refuses %j', async (tag) => {
    const { scheduler } = asked();
    await expect(scheduler.cancelByTag(tag as never)).rejects.toMatchObject({
      code: 'INVALID_JOB_FILTER',
      call: 'cancelByTag',
    });
  });
});

describe('JobScheduler.reschedule', () => {
  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'when: undefined is wrong; allowed: an object with delay, runAt'],
    ['neither', {}, 'when: {} is wrong; allowed: one of { delay } and { runAt }'],
    ['both', { delay: 1, runAt: DAY }, 'when: { delay: 1'],
    ['a Date', DAY, 'when: 2026-11-30T00:00:00.000Z is wrong; allowed: one of'],
    ['a misspelt delay', { delay: '5 minutes' }, 'when.delay: "5 minutes" is wrong'],
    ['a negative delay', { delay: -1 }, 'when.delay: -1 is wrong'],
    ['an invalid date', { runAt: new Date('x') }, 'when.runAt: Invalid Date'],
    ['a date as text', { runAt: '2026-12-24' }, 'when.runAt: "2026-12-24"'],
    ['another key', { at: DAY }, 'when.at: '],
  ])('refuses %s', async (_, when, message) => {
    const { scheduler } = asked();
    for (const target of [uuidv7(), { tag: 'a' }]) {
      await expect(scheduler.reschedule(target as string, when as never)).rejects.toMatchObject({
        code: 'INVALID_JOB_FILTER',
        message: expect.stringContaining(`INVALID_JOB_FILTER: reschedule: ${message}`),
      });
    }
  });
});
