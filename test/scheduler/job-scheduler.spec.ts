import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import { type Canceled, type JobView, type Redriven } from '../../lib/store/job-store.js';
import { listScheduler } from './support.js';

const SendInvoice = defineJob<{ orderId: string }>('invoice.send', {
  lane: 'mail',
  priority: 'high',
  maxRetries: 5,
  backoff: { delay: '10s' },
  timeout: '2m',
  version: 3,
});
const Tick = defineJob('tick');
/** An object that cannot be read to the end. */
const trap = (key: string): object =>
  Object.defineProperty({}, key, {
    enumerable: true,
    get: () => {
      throw new Error('trap');
    },
  });
const ID = '0199f1f0-0000-7000-8000-000000000000';

describe('JobScheduler.enqueue', () => {
  it('writes lane, priority and version of the definition to the row, and leaves retries, backoff and timeout to it', async () => {
    const { scheduler, jobs } = listScheduler();
    const handle = await scheduler.enqueue(SendInvoice, { orderId: 'o-1' });
    expect(handle).toEqual({ id: jobs[0]?.id, created: true });
    expect(jobs).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{14}7/),
        name: 'invoice.send',
        version: 3,
        lane: 'mail',
        priority: 3,
        payload: '{"orderId":"o-1"}',
        delayMs: 0,
        tags: [],
      },
    ]);
  });

  it('writes what the options say', async () => {
    const { scheduler, jobs } = listScheduler();
    await scheduler.enqueue(
      SendInvoice,
      { orderId: 'o-1' },
      {
        priority: 'lowest',
        lane: 'bulk',
        delay: '5m',
        tags: ['a', 'b', 'a'],
        maxRetries: 0,
        backoff: { type: 'fixed', delay: '1m' },
        timeout: '30s',
        metadata: { tenant: 7 },
        businessKey: 'invoice:o-1',
        onConflict: 'return',
        idempotencyKey: { key: 'req-1', expiresIn: '1h' },
      },
    );
    expect(jobs[0]).toMatchObject({
      priority: 0,
      lane: 'bulk',
      delayMs: 300_000,
      tags: ['a', 'b'],
      maxRetries: 0,
      backoff: { type: 'fixed', delayMs: 60_000 },
      timeoutMs: 30_000,
      metadata: '{"tenant":7}',
      businessKey: 'invoice:o-1',
      onConflict: 'return',
      idempotencyKey: { key: 'req-1', expiresInMs: 3_600_000 },
    });
  });

  it('takes a Date, and the expiry of the module for a plain idempotency key', async () => {
    const { scheduler, jobs } = listScheduler({ maker: { idempotencyExpiryMs: 5_000 } });
    const runAt = new Date('2026-12-24T18:00:00Z');
    await scheduler.enqueue(Tick, undefined, { runAt, idempotencyKey: 'k' });
    expect(jobs[0]).toMatchObject({ runAt, delayMs: 0, idempotencyKey: { key: 'k', expiresInMs: 5_000 } });
  });

  it('makes ids in call order, even when a schema takes its time', async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const Slow = defineJob('slow', { schema: z.string().refine(async () => (await gate, true)) });
    const { scheduler } = listScheduler();
    const slow = scheduler.enqueue(Slow, 'x');
    const quick = await scheduler.enqueue(Tick);
    release();
    expect((await slow).id < quick.id).toBe(true);
  });

  it.each<[string, unknown, string]>([
    ['unknown key', { prioritty: 'high' }, 'prioritty: there is no such key; did you mean priority?'],
    [
      'priority',
      { priority: 'urgent' },
      'priority: "urgent" is wrong; allowed: lowest, low, normal, high, critical',
    ],
    ['lane', { lane: '' }, 'lane: "" is wrong'],
    ['delay', { delay: '5 minutes' }, 'delay: "5 minutes" is wrong; allowed: milliseconds or a text like'],
    ['negative delay', { delay: -1 }, 'delay: -1 is wrong'],
    ['delay and runAt', { delay: 1, runAt: new Date() }, 'allowed: delay or runAt, not both'],
    ['invalid date', { runAt: new Date('x') }, 'runAt: Invalid Date is wrong; allowed: a valid Date'],
    ['date as text', { runAt: '2026-12-24' }, 'runAt: "2026-12-24" is wrong; allowed: a valid Date'],
    ['far future', { runAt: new Date(8.64e15) }, '100 years ahead'],
    ['tags', { tags: 'a' }, 'tags: "a" is wrong'],
    ['many tags', { tags: Array.from({ length: 21 }, String) }, 'at most 20'],
    ['a tag', { tags: ['a', 7] }, 'tags[1]: 7 is wrong'],
    ['a hole in tags', { tags: [undefined] }, 'tags[0]: null is wrong'],
    ['maxRetries', { maxRetries: 1.5 }, 'maxRetries: 1.5 is wrong'],
    ['backoff', { backoff: { delay: 'soon' } }, 'backoff.delay: "soon" is wrong'],
    ['timeout', { timeout: 0 }, 'timeout: 0 is wrong'],
    ['metadata', { metadata: { at: new Date(0) } }, 'metadata: '],
    [
      'metadata["ratchet:schedule"]',
      { metadata: { tenant: 7, 'ratchet:schedule': 'digest' } },
      'reserved for the jobs of recurring schedules',
    ],
    ['business key', { businessKey: 'x'.repeat(201) }, 'businessKey: "xxx'],
    ['NUL in a key', { businessKey: 'a\0b' }, 'without NUL'],
    ['broken surrogate', { idempotencyKey: '\ud800' }, 'idempotencyKey: '],
    [
      'empty idempotency key',
      { idempotencyKey: {} },
      'idempotencyKey: {} is wrong; allowed: a text, or { key, expiresIn }',
    ],
    [
      'idempotency expiry',
      { idempotencyKey: { key: 'k', expiresIn: '1y' } },
      'idempotencyKey.expiresIn: "1y" is wrong',
    ],
    ['idempotency typo', { idempotencyKey: { key: 'k', expires: '1h' } }, 'did you mean expiresIn?'],
    ['onConflict', { businessKey: 'k', onConflict: 'ignore' }, 'allowed: reject, return, replace'],
    ['onConflict alone', { onConflict: 'return' }, 'allowed: only together with businessKey'],
    ['no object', 'high', 'options: "high" is wrong'],
    ['null', null, 'options: null is wrong; allowed: an object'],
    [
      'no transaction',
      { transaction: null },
      'transaction: null is wrong; allowed: the EntityManager or QueryRunner',
    ],
    [
      'a trap',
      trap('lane'),
      'options: { lane: [Getter] } is wrong; allowed: what can be read, but reading it threw: trap',
    ],
    [
      'a trap for the transaction',
      trap('transaction'),
      'transaction: undefined is wrong; allowed: what can be read',
    ],
    [
      'a proxy with traps',
      new Proxy(
        {},
        {
          ownKeys: () => [],
          get: () => {
            throw new Error('trap');
          },
        },
      ),
      'threw: trap',
    ],
    ['a trap within', { backoff: trap('delay') }, 'options: '],
  ])('refuses %s, naming job, key, value and what is allowed', async (_, options, message) => {
    const { scheduler, jobs } = listScheduler();
    const refused = scheduler.enqueue(SendInvoice, { orderId: 'o-1' }, options as never);
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_ENQUEUE_OPTION',
      message: expect.stringContaining(message),
    });
    await expect(refused).rejects.toThrow('"invoice.send"');
    expect(jobs).toEqual([]);
  });

  it('lets options that are undefined count as left out', async () => {
    const { scheduler, jobs } = listScheduler();
    await scheduler.enqueue(
      SendInvoice,
      { orderId: 'o-1' },
      { priority: undefined, delay: undefined, maxRetries: undefined },
    );
    expect(jobs[0]).toMatchObject({ priority: 3, delayMs: 0 });
    expect(jobs[0]).not.toHaveProperty('maxRetries');
  });

  it('refuses what is no definition, and says what to do with a name', async () => {
    const { scheduler } = listScheduler();
    for (const wrong of ['invoice.send', undefined, class Invoice {}]) {
      await expect(scheduler.enqueue(wrong as never, {})).rejects.toMatchObject({
        code: 'INVALID_ENQUEUE_OPTION',
        message: expect.stringContaining('enqueueNamed()'),
      });
    }
  });

  it('refuses a bad payload before anything is sent', async () => {
    const { scheduler, jobs } = listScheduler();
    await expect(scheduler.enqueue(SendInvoice, { orderId: 'a\0b' })).rejects.toMatchObject({
      code: 'PAYLOAD_NOT_JSON',
    });
    expect(jobs).toEqual([]);
  });

  it('hands the transaction on, and only that', async () => {
    const { scheduler, transactions, jobs } = listScheduler();
    const transaction = {} as never;
    await scheduler.enqueue(Tick, undefined, { transaction });
    expect(transactions[0]).toBe(transaction);
    expect(jobs[0]).not.toHaveProperty('transaction');
  });

  it('tells a repeat, a held key, and a running holder', async () => {
    await expect(
      listScheduler({ answer: () => ({ outcome: 'existing', id: ID }) }).scheduler.enqueue(Tick),
    ).resolves.toEqual({ id: ID, created: false });

    const held = listScheduler({ answer: () => ({ outcome: 'held', holder: ID, running: true }) }).scheduler;
    const options = { businessKey: 'k' };
    await expect(held.enqueue(Tick, undefined, options)).rejects.toMatchObject({
      code: 'BUSINESS_KEY_HELD',
      businessKey: 'k',
      holder: ID,
      running: false,
    });
    await expect(held.enqueue(Tick, undefined, { ...options, onConflict: 'replace' })).rejects.toMatchObject({
      running: true,
    });
  });
});

describe('JobScheduler.enqueueMany', () => {
  it('makes all jobs in one call, ids in order, items over common options', async () => {
    const { scheduler, jobs, transactions } = listScheduler();
    const transaction = {} as never;
    const handles = await scheduler.enqueueMany(
      SendInvoice,
      [
        { payload: { orderId: '1' } },
        { payload: { orderId: '2' }, options: { priority: 'critical', businessKey: 'b' } },
        { payload: { orderId: '3' }, options: { runAt: new Date(5_000) } },
      ],
      { priority: 'low', delay: '1m', transaction },
    );
    expect(handles.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    expect([...handles.map(({ id }) => id)].sort()).toEqual(handles.map(({ id }) => id));
    expect(transactions).toEqual([transaction]);
    expect(jobs.map(({ priority, delayMs, runAt }) => [priority, delayMs, runAt?.getTime()])).toEqual([
      [1, 60_000, undefined],
      [4, 60_000, undefined],
      [1, 0, 5_000],
    ]);
    expect(jobs[1]?.businessKey).toBe('b');
  });

  it('sends nothing for no items', async () => {
    const { scheduler, transactions } = listScheduler();
    await expect(scheduler.enqueueMany(SendInvoice, [])).resolves.toEqual([]);
    expect(transactions).toEqual([]);
  });

  it.each<[string, unknown, unknown, string]>([
    [
      'an option of an item',
      [{ payload: { orderId: '1' } }, { payload: { orderId: '2' }, options: { delay: 'x' } }],
      {},
      'items[1].options.delay: "x"',
    ],
    [
      'a transaction in an item',
      [{ payload: {}, options: { transaction: {} } }],
      {},
      'items[0].options.transaction',
    ],
    ['payloads without items', ['a'], {}, 'items[0]: "a" is wrong; allowed: { payload, options }'],
    [
      'an option beside the payload',
      [{ payload: { orderId: '1' }, priority: 'high' }],
      {},
      'items[0].priority: "high" is wrong; allowed: { payload, options }, with',
    ],
    ['no options in an item', [{ payload: { orderId: '1' }, options: null }], {}, 'items[0].options: null'],
    [
      'metadata of an item',
      [{ payload: {}, options: { metadata: 1n } }],
      {},
      'items[0].options.metadata: 1n',
    ],
    ['no transaction', [], { transaction: null }, 'transaction: null'],
    [
      'a trap in an item',
      [trap('payload')],
      {},
      'items[0]: { payload: [Getter] } is wrong; allowed: what can be read',
    ],
    ['a trap in options of an item', [{ payload: {}, options: trap('lane') }], {}, 'items[0]: '],
    [
      'a trap deep in options of an item',
      [{ payload: {}, options: { backoff: trap('delay') } }],
      {},
      'items[0].options: ',
    ],
    ['a trap in common options', [], trap('transaction'), 'transaction: undefined'],
    ['no array', { payload: {} }, {}, 'items: '],
    ['keys for all', [], { idempotencyKey: 7 }, 'idempotencyKey: 7'],
  ])('refuses %s, and sends nothing', async (_, items, options, message) => {
    const { scheduler, jobs } = listScheduler();
    const refused = scheduler.enqueueMany(SendInvoice, items as never, options as never);
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_ENQUEUE_OPTION',
      message: expect.stringContaining(message),
    });
    expect(jobs).toEqual([]);
  });
});

describe('JobScheduler.enqueueMany, a wrong payload', () => {
  const Checked = defineJob('checked', { schema: z.object({ n: z.number() }) });
  const Any = defineJob<unknown>('any');

  it.each<[string, JobDefinition, unknown, unknown]>([
    ['no JSON', Any, { a: 1n }, { code: 'PAYLOAD_NOT_JSON', path: 'items[1].payload.a' }],
    ['invalid', Checked, { n: 'x' }, { code: 'PAYLOAD_INVALID', issues: [{ path: 'items[1].payload.n' }] }],
    [
      'too large',
      Any,
      'x'.repeat(200),
      { code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining('items[1].payload is') },
    ],
  ])('is told with its item: %s', async (_, definition, payload, error) => {
    const { scheduler, jobs } = listScheduler({ maker: { payloadBytes: 100 } });
    const refused = scheduler.enqueueMany(definition, [{ payload: { n: 1 } }, { payload }]);
    await expect(refused).rejects.toMatchObject(error as object);
    expect(jobs).toEqual([]);
  });

  it('names both items that have one business key', async () => {
    const ids: string[] = [];
    const { scheduler } = listScheduler({
      answer: ({ id }) =>
        ids.push(id) < 3
          ? { outcome: 'created', id }
          : { outcome: 'held', holder: ids[1] ?? '', running: false },
    });
    const item = (businessKey: string) => ({ payload: 1, options: { businessKey } });
    await expect(scheduler.enqueueMany(Any, [item('a'), item('b'), item('b')])).rejects.toMatchObject({
      code: 'BUSINESS_KEY_HELD',
      businessKey: 'b',
      holder: undefined,
      items: [1, 2],
      message: expect.stringContaining('"b" is the key of items[1] and items[2] of the same call'),
    });
  });

  it('checks the items as they were at the call', async () => {
    const { scheduler, jobs } = listScheduler();
    const items = [{ payload: { n: 1 } }, { payload: { n: 2 } }];
    const handles = scheduler.enqueueMany(Checked, items);
    items.length = 0;
    expect(await handles).toHaveLength(2);
    expect(jobs).toHaveLength(2);
  });
});

describe('JobScheduler.enqueueNamed', () => {
  it('goes to the default lane when the definition is elsewhere', async () => {
    const { scheduler, jobs } = listScheduler();
    await scheduler.enqueueNamed('report.build', { month: '2026-11' }, { version: 4 });
    expect(jobs[0]).toMatchObject({ name: 'report.build', version: 4, lane: 'default', priority: 2 });
  });

  it('takes the definition of this process when it has one', async () => {
    const handlers = {
      find: (name: string) => (name === 'invoice.send' ? ({ definition: SendInvoice } as never) : undefined),
    };
    const { scheduler, jobs } = listScheduler({ maker: { handlers } });
    await scheduler.enqueueNamed('invoice.send', { orderId: '1' });
    expect(jobs[0]).toMatchObject({ lane: 'mail', priority: 3, version: 3 });
  });

  it('refuses a name that no job can have', async () => {
    const { scheduler } = listScheduler();
    for (const name of ['', undefined, 7, 'x#failed', 'x#recurring']) {
      await expect(scheduler.enqueueNamed(name as string)).rejects.toMatchObject({
        code: 'INVALID_ENQUEUE_OPTION',
        message: expect.stringContaining('"enqueueNamed": name: '),
      });
    }
  });

  it.each<[string, unknown, string]>([
    ['version', { version: 0 }, '"x": version: 0 is wrong'],
    ['a trap', trap('version'), '"x": version: undefined is wrong; allowed: what can be read'],
    ['no transaction', { transaction: null }, '"x": transaction: null'],
    ['null', null, 'options: null'],
  ])('refuses %s', async (_, options, message) => {
    const { scheduler, jobs } = listScheduler();
    await expect(scheduler.enqueueNamed('x', 1, options as never)).rejects.toMatchObject({
      code: 'INVALID_ENQUEUE_OPTION',
      message: expect.stringContaining(message),
    });
    expect(jobs).toEqual([]);
  });
});

describe('JobScheduler, asking and steering', () => {
  it.each([['42'], [''], ['junk'], [undefined], [null], [5], [`${ID}'; drop table job`]])(
    'refuses the id %j in every call, without asking the database',
    async (given) => {
      const { scheduler } = listScheduler();
      const id = given as string;
      const calls: Record<string, () => unknown> = {
        get: () => scheduler.get(id),
        executions: () => scheduler.executions(id),
        handle: () => scheduler.handle(id),
      };
      // To these `null` is a filter, and none.
      if (given !== null) {
        calls['cancel'] = () => scheduler.cancel(id);
        calls['pause'] = () => scheduler.pause(id);
        calls['resume'] = () => scheduler.resume(id);
        calls['redrive'] = () => scheduler.redrive(id);
        calls['reschedule'] = () => scheduler.reschedule(id, { delay: 0 });
      }
      for (const [call, make] of Object.entries(calls)) {
        await expect((async () => await make())()).rejects.toMatchObject({
          code: 'INVALID_JOB_ID',
          call,
          message: expect.stringContaining(`INVALID_JOB_ID: ${call}: `),
        });
      }
    },
  );

  it('refuses a handle where its id is meant, in every call', async () => {
    const { scheduler } = listScheduler();
    const handle = scheduler.handle(ID) as never;
    const refused = { code: 'INVALID_JOB_ID', message: expect.stringMatching(/handle\.id/) };
    await expect(scheduler.get(handle)).rejects.toMatchObject(refused);
    await expect(scheduler.executions(handle)).rejects.toMatchObject(refused);
    for (const call of ['cancel', 'pause', 'resume', 'redrive'] as const)
      await expect(scheduler[call](handle) as Promise<unknown>).rejects.toMatchObject(refused);
    await expect(scheduler.reschedule(handle, { delay: 0 })).rejects.toMatchObject(refused);
  });

  it('says that actions take part in no transaction', async () => {
    const { scheduler } = listScheduler();
    const refused = {
      code: 'INVALID_JOB_FILTER',
      message: expect.stringContaining('actions take part in no transaction'),
    };
    const options = { transaction: {} } as never;
    await expect(scheduler.cancel(ID as never, options)).rejects.toMatchObject(refused);
    await expect(scheduler.cancel({ name: 'x' }, options)).rejects.toMatchObject(refused);
  });

  it('shows a job with its priority by name', async () => {
    const { scheduler } = listScheduler({
      store: { get: (id) => Promise.resolve({ id, priority: 4, status: 'pending' } as JobView) },
    });
    await expect(scheduler.get(ID)).resolves.toMatchObject({
      id: ID,
      priority: 'critical',
      status: 'pending',
    });
  });

  it.each<[Canceled, boolean, number]>([
    [{ outcome: 'canceled', lane: 'default', name: 'tick' }, true, 0],
    [{ outcome: 'canceled_running', lane: 'default', name: 'tick', claimSeq: '7', node: 'n' }, true, 1],
    [{ outcome: 'ended', status: 'succeeded' }, false, 0],
    [{ outcome: 'not_found' }, false, 0],
  ])('cancels: %j', async (canceled, answer, count) => {
    const { scheduler, signals } = listScheduler({ store: { cancel: () => Promise.resolve(canceled) } });
    await expect(scheduler.cancel(ID)).resolves.toBe(answer);
    expect(signals).toEqual(count ? [{ kind: 'cancel', jobId: ID, claimSeq: '7', source: 'test-node' }] : []);
  });

  it('redrives, and wakes with a look behind', async () => {
    const { scheduler, wakeups } = listScheduler({
      store: { redrive: () => Promise.resolve({ outcome: 'redriven', lane: 'mail', priority: 3 }) },
    });
    await scheduler.redrive(ID);
    expect(wakeups).toEqual([{ lane: 'mail', priority: 3, behind: true, source: 'test-node' }]);
  });

  it.each<[Redriven, string]>([
    [{ outcome: 'not_failed', status: 'running' }, 'JOB_NOT_FAILED'],
    [{ outcome: 'held', holder: ID, businessKey: 'k' }, 'BUSINESS_KEY_HELD'],
    [{ outcome: 'not_found' }, 'JOB_NOT_FOUND'],
  ])('refuses to redrive: %j', async (redriven, code) => {
    const { scheduler, wakeups } = listScheduler({ store: { redrive: () => Promise.resolve(redriven) } });
    await expect(scheduler.redrive(ID)).rejects.toMatchObject({ code });
    expect(wakeups).toEqual([]);
  });

  it('says what to do about the holder of the key of a job that is redriven', async () => {
    const holder = 'aaaaaaaa-0000-7000-8000-000000000000';
    const redrive = (): Promise<Redriven> => Promise.resolve({ outcome: 'held', holder, businessKey: 'k' });
    await expect(listScheduler({ store: { redrive } }).scheduler.redrive(ID)).rejects.toMatchObject({
      redriven: ID,
      message:
        `BUSINESS_KEY_HELD: businessKey: "k" is held by job ${holder}; job ${ID} stays in the dead letter: ` +
        `cancel('${holder}'), or wait until it has ended, and redrive again`,
    });
  });
});
