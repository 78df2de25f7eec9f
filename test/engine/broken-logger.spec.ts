import { Logger } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { engineFixture } from './engine-fixture.js';

describe('a logger that throws', () => {
  const fixture = engineFixture();
  afterEach(() => void Logger.overrideLogger(false));

  it('stops neither a bucket nor a drain', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const one = await fixture.node({ handlers: { work: () => {} } });
    const broken = (): never => {
      throw new Error('the logger broke');
    };
    Logger.overrideLogger({ log: broken, warn: broken, error: broken, debug: broken });
    await one.runtime.start();
    await one.events.next('idle');
    for (const kind of ['unavailable', 'fatal', 'unknown'] as const) {
      void one.faults.fail('exchange', { kind, when: 'before' });
      const settled = one.events.next('settled');
      await one.enqueue({});
      await settled;
    }
    await fixture.database.query(`update ratchet.bucket set status = 'lost', epoch = epoch + 1`);
    const settled = one.events.next('settled');
    await one.enqueue({});
    await settled;
    await one.runtime.close();
    process.off('unhandledRejection', note);
    expect(one.runtime.state).toBe('closed');
    expect(unhandled).toEqual([]);
  });
});
