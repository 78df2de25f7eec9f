import { describe, expect, it } from '@jest/globals';
import { uuidv7 } from 'uuidv7';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';
import { encodeResult } from '../../lib/jobs/payload-codec.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { FakeClock, settled } from '../support/fake-clock.js';
import { resultWaiter } from '../support/results.js';

/** Jobs that end when they are given a result. */
function setUp() {
  const clock = new FakeClock();
  const results = new Map<string, unknown>();
  const ended = (ids: readonly string[]) => {
    const known = ids.filter((id) => results.has(id));
    const facts = {
      name: 'n',
      status: 'succeeded',
      error: undefined,
      executions: 1,
      failures: 0,
      crashes: 0,
    } as const;
    return Promise.resolve({
      ended: known.map((id) => ({ id, result: results.get(id), ...facts })),
      absent: [],
      postponed: [],
    });
  };
  const messages = new ClusterMessages(new NoCoordinator(), 'test');
  const waiter = resultWaiter({ store: { ended }, clock, events: new EngineEvents(), messages });
  return {
    clock,
    results,
    result: (id: string, options?: unknown) => waiter.result({ id }, options),
    pass: async () => {
      for (let turn = 0; turn < 30; turn += 1) {
        clock.advance(10);
        await settled();
      }
    },
  };
}

/** As somebody may write one in JavaScript. */
function signal(own: object): unknown {
  const good = {
    aborted: false,
    reason: 'why',
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  };
  return Object.defineProperties(good, Object.getOwnPropertyDescriptors(own));
}
const fail = (): never => {
  throw new Error('broken signal');
};

describe('a signal of the caller that throws', () => {
  it('when it is listened to is refused, and leaves nothing behind', async () => {
    const { result, clock } = setUp();
    const refused = result(uuidv7(), { timeout: '1m', signal: signal({ addEventListener: fail }) });
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_RESULT_OPTION',
      option: 'signal',
      cause: { message: 'broken signal' },
    });
    expect(clock.pending).toBe(0);
  });

  it('when it is no longer listened to does no harm, to its own call or to others of the same answer', async () => {
    const { result, results, clock, pass } = setUp();
    const ids = Array.from({ length: 5 }, () => uuidv7());
    const all = ids.map((id) => result(id, { timeout: '1m', signal: signal({ removeEventListener: fail }) }));
    const twice = result(ids[0]!, { timeout: '1m' });
    ids.forEach((id, n) => results.set(id, { n }));
    await pass();
    expect(await Promise.all([...all, twice])).toEqual([...ids.map((_, n) => ({ n })), { n: 0 }]);
    expect(clock.pending).toBe(0);
  });

  it('when it is asked whether, or why, it is aborted ends its own call', async () => {
    const { result, clock } = setUp();
    let asked = 0;
    const aborted = {
      get aborted() {
        asked += 1;
        return asked > 1 && fail();
      },
    };
    await expect(result(uuidv7(), { signal: signal(aborted) })).rejects.toBe('why');
    const unreadable = {
      aborted: true,
      get reason() {
        return fail();
      },
    };
    await expect(result(uuidv7(), { signal: signal(unreadable) })).rejects.toThrow('broken signal');
    let abort = (): void => undefined;
    const late = {
      addEventListener: (_: string, call: () => void) => (abort = call),
      get reason() {
        return fail();
      },
    };
    const waits = result(uuidv7(), { timeout: '1m', signal: signal(late) });
    abort();
    await expect(waits).rejects.toThrow('broken signal');
    expect(clock.pending).toBe(0);
  });
});

describe('a result that was not kept', () => {
  it('rejects: what it is has not the type of the result', async () => {
    const { result, results, pass } = setUp();
    const [large, unreadable, alike] = [uuidv7(), uuidv7(), uuidv7()];
    const stored = (value: unknown): unknown => JSON.parse(encodeResult(value, 1_000)!.text) as unknown;
    results.set(large, stored('x'.repeat(2_000)));
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    results.set(unreadable, stored(proxy));
    results.set(alike, { ratchet: 'the result was not kept', reason: 'mine', more: 1 });
    const all = Promise.allSettled([large, unreadable, alike].map((id) => result(id)));
    await pass();
    expect(await all).toMatchObject([
      { reason: { code: 'RESULT_NOT_KEPT', jobId: large, jobName: 'n', reason: 'larger than 1000 bytes' } },
      { reason: { code: 'RESULT_NOT_KEPT', reason: expect.stringContaining('not readable') } },
      { value: { more: 1 } },
    ]);
  });
});
