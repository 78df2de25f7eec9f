import { describe, expect, it } from '@jest/globals';
import { deferred } from '../support/engine-node.js';
import { engineFixture } from './engine-fixture.js';

describe('the lines about an execution', () => {
  const fixture = engineFixture();
  const told = (pattern: RegExp): string[] =>
    fixture.logs.map(({ line }) => line).filter((line) => pattern.test(line));
  it('"failed for good" is said when it is durable, not before', async () => {
    let thrown = false;
    const one = await fixture.node({
      settings: { maxRetries: 0 },
      handlers: {
        work: () => {
          thrown = true;
          throw new Error('broken\nin two lines');
        },
      },
    });
    await one.runtime.start();
    const sending = deferred();
    const hold = deferred();
    const free = one.debug.at('exchange.sending', () => {
      if (!thrown) return undefined;
      sending.resolve();
      return hold.promise;
    });
    await one.enqueue({});
    await sending.promise;
    expect(told(/for good/)).toEqual([]);
    free();
    const turn = one.events.next('turn', ({ recorded }) => recorded === 1);
    hold.resolve();
    await turn;
    expect(told(/for good/)).toEqual([
      expect.stringMatching(
        /^work \(.*\): failed for good \(failure 1, Error: broken\); it is in the dead letter$/,
      ),
    ]);
  });

  it('"failed for good" is not said of a claim that was lost', async () => {
    const begin = deferred();
    const end = deferred();
    const one = await fixture.node({
      settings: { maxRetries: 0 },
      handlers: {
        work: async () => {
          begin.resolve();
          await end.promise;
          throw new Error('broken');
        },
      },
    });
    await one.runtime.start();
    await one.enqueue({});
    await begin.promise;
    await fixture.database.query('update ratchet.job set claim_seq = claim_seq + 1');
    const lost = one.events.next('lost');
    end.resolve();
    await lost;
    await one.runtime.close();
    expect(told(/for good/)).toEqual([]);
  });

  it('a shutdown names the handler that goes on, once, and before it has closed', async () => {
    const begin = deferred();
    const end = deferred();
    const one = await fixture.node({
      settings: { drainTimeoutMs: 20 },
      handlers: {
        work: () => {
          begin.resolve();
          return end.promise;
        },
      },
    });
    await one.runtime.start();
    await one.enqueue({});
    await begin.promise;
    await one.runtime.close();
    expect(told(/work goes on/)).toEqual([
      expect.stringContaining('Test.work goes on although the node stops; let it stop at ctx.signal'),
    ]);
    end.resolve();
  });
});
