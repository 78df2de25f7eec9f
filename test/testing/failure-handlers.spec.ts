import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { UnrecoverableError } from 'nestjs-ratchet';
import { type AppUnderTest, DatabaseKit, ListKit } from './app.js';
import { Failures, Greet, Jobs, Script } from './jobs.js';

describe.each([[new ListKit()], [new DatabaseKit()]])('failure handlers under $name', (kit) => {
  let script: Script;
  let under: AppUnderTest;

  beforeAll(() => kit.open());
  beforeEach(async () => {
    script = new Script();
    under = await kit.boot([Jobs, Failures, { provide: Script, useValue: script }]);
    script.act = () => {
      throw new Error('no such customer');
    };
  });
  afterEach(() => kit.clear());
  afterAll(() => kit.close());

  it('run like other jobs, once the retries are used up', async () => {
    const { tester, scheduler } = under;
    const options = { tags: ['a', 'b'], metadata: { tenant: 't' }, priority: 'high' } as const;
    const { id } = await scheduler.enqueue(Greet, { name: 'Ana' }, options);
    const ran = await tester.drain({ within: '1h' });
    expect(ran.map(({ name, outcome, lane }) => [name, outcome, lane])).toEqual([
      ['greet', 'retried', 'default'],
      ['greet', 'retried', 'default'],
      ['greet', 'failed', 'default'],
      ['greet#failed', 'succeeded', 'alarms'],
    ]);
    expect(script.log.at(-1)).toBe(
      'Ana: 3 executions, a,b, {"tenant":"t"}, alarms, high, Error: no such customer',
    );
    expect(ran[3]?.payload).toEqual({
      payload: { name: 'Ana' },
      error: expect.stringMatching(/^Error: no such customer\n/),
      job: {
        id,
        name: 'greet',
        version: 1,
        lane: 'default',
        priority: 3,
        node: expect.any(String),
        createdAt: expect.any(String),
        failedAt: expect.any(String),
        executions: 3,
        failures: 3,
        crashes: 0,
        businessKey: null,
        tags: ['a', 'b'],
        metadata: { tenant: 't' },
      },
    });
    expect(await scheduler.get(ran[3]!.id)).toMatchObject({ parentId: id, metadata: { tenant: 't' } });
    expect(await tester.drain({ within: '1h' })).toEqual([]);
  });

  it('run again after a redrive that fails, and not for what is canceled', async () => {
    const { tester, scheduler } = under;
    script.act = () => {
      throw new UnrecoverableError('the account is closed');
    };
    const canceled = await scheduler.enqueue(Greet, { name: 'Eve' });
    await scheduler.cancel(canceled.id);
    const { id } = await scheduler.enqueue(Greet, { name: 'Ana' });
    expect((await tester.drain()).length).toBe(2);
    await scheduler.redrive(id);
    expect((await tester.drain()).map(({ name }) => name)).toEqual(['greet', 'greet#failed']);
  });
});
