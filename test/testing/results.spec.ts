import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { DatabaseKit, ListKit } from './app.js';
import { Forgotten, Greet, Jobs, Script } from './jobs.js';

describe.each([new ListKit(), new DatabaseKit()])('handle.result() under $name', (kit) => {
  beforeAll(() => kit.open());
  afterEach(() => kit.clear());
  afterAll(() => kit.close());

  async function boot() {
    const script = new Script();
    return { script, ...(await kit.boot([Jobs, { provide: Script, useValue: script }])) };
  }

  it('resolves once the test has run the job, and rejects as with an engine', async () => {
    const { scheduler, tester, script } = await boot();
    const handle = await scheduler.enqueue(Greet, { name: 'Ana' });
    const result = handle.result();
    await tester.runNext();
    await expect(result).resolves.toEqual({ text: 'hello Ana' });

    script.act = () => {
      throw new Error('no');
    };
    const failing = await scheduler.enqueue(Greet, { name: 'Bo' });
    const failed = expect(failing.result()).rejects.toMatchObject({
      code: 'JOB_FAILED',
      executions: 3,
      failures: 3,
    });
    await tester.drain({ within: '1d' });
    await failed;

    script.act = () => undefined;
    const dropped = await scheduler.enqueue(Forgotten);
    await tester.drain();
    await expect(dropped.result()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  });

  it('times out when the test moves the clock, and is given up when the app closes', async () => {
    const { app, scheduler, tester } = await boot();
    const handle = await scheduler.enqueue(Greet, { name: 'Ana' }, { delay: '1h' });
    const timed = expect(handle.result({ timeout: '10m' })).rejects.toMatchObject({ code: 'RESULT_TIMEOUT' });
    await tester.advance('11m');
    await timed;
    const canceled = expect(handle.result()).rejects.toMatchObject({ code: 'JOB_CANCELED' });
    await scheduler.cancel(handle.id);
    await canceled;
    const other = await scheduler.enqueue(Greet, { name: 'Bo' }, { delay: '1h' });
    const abandoned = expect(other.result()).rejects.toMatchObject({ code: 'RESULT_ABANDONED' });
    await app.close();
    await abandoned;
  });
});
