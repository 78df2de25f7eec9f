import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { resultType } from '../../lib/jobs/result-type.js';
import { defineJob, differingKey, makeDefinition } from '../../lib/jobs/define-job.js';

describe('defineJob', () => {
  it('fills in lane, priority, version and history, and leaves the rest to the engine', () => {
    expect(defineJob('ping')).toEqual({
      name: 'ping',
      version: 1,
      lane: 'default',
      priority: 'normal',
      maxRetries: undefined,
      backoff: undefined,
      timeoutMs: undefined,
      history: 'keep',
      schema: undefined,
      upcast: undefined,
    });
  });

  it('resolves what it is given', () => {
    const job = defineJob('x', {
      lane: 'mail',
      priority: 'high',
      maxRetries: 0,
      timeout: '2m',
      backoff: { type: 'none' },
      version: 3,
    });
    expect(job).toMatchObject({
      lane: 'mail',
      priority: 'high',
      maxRetries: 0,
      timeoutMs: 120_000,
      version: 3,
    });
    expect(job.backoff).toMatchObject({ type: 'none' });
  });

  it('returns something that nobody can change', () => {
    const job = defineJob('x', { backoff: {} });
    expect(Object.isFrozen(job)).toBe(true);
    expect(Object.isFrozen(job.backoff)).toBe(true);
  });

  it('suggests the key that was meant', () => {
    for (const key of ['maxRetires', 'MaxRetries', 'maxRetrys', 'maxRerties']) {
      expect(() => makeDefinition('x', { [key]: 3 })).toThrow(
        `INVALID_JOB_DEFINITION: "x".${key}: there is no such key; did you mean maxRetries?`,
      );
    }
    expect(() => makeDefinition('x', { backoff: { dealy: 3 } })).toThrow(
      'backoff.dealy: there is no such key; did you mean delay?',
    );
  });

  it('takes the type of a result, which is nothing when it runs', () => {
    expect(makeDefinition('x', { result: resultType<string>() })).toEqual(makeDefinition('x'));
  });

  it('says why an upcast without a version could never be called', () => {
    expect(() => defineJob('x', { upcast: (stored) => stored })).toThrow(
      'allowed: only with a version above 1: no version is older, so it would never be called',
    );
  });

  it('takes schemas that are functions', () => {
    const schema = Object.assign(() => undefined, {
      '~standard': { version: 1, vendor: 'x', validate: () => ({ value: 1 }) },
    });
    expect(makeDefinition('x', { schema }).schema).toBe(schema);
  });

  it('names the job whose policy cannot be read', () => {
    const policy = {
      get lane(): string {
        throw new Error('trap');
      },
    };
    expect(() => defineJob('x', policy)).toThrow(
      expect.objectContaining({
        code: 'INVALID_JOB_DEFINITION',
        key: 'policy',
        message: expect.stringContaining(
          '"x".policy: { lane: [Getter] } is wrong; allowed: what can be read, but',
        ),
      }),
    );
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(() => defineJob('x', proxy)).toThrow(expect.objectContaining({ code: 'INVALID_JOB_DEFINITION' }));
  });

  it.each([
    ['', {}, 'name'],
    ['x'.repeat(201), {}, 'name'],
    ['a\0b', {}, 'name'],
    ['a\ud800', {}, 'name'],
    ['invoice#failed', {}, 'name'],
    ['invoice#recurring', {}, 'name'],
    [undefined, {}, 'name'],
    [7, {}, 'name'],
    ['x', null, 'policy'],
    ['x', [], 'policy'],
    ['x', 'mail', 'policy'],
    ['x', { lane: '' }, 'lane'],
    ['x', { lane: 'a\0' }, 'lane'],
    ['x', { priority: 'urgent' }, 'priority'],
    ['x', { priority: 3 }, 'priority'],
    ['x', { maxRetries: -1 }, 'maxRetries'],
    ['x', { maxRetries: 1.5 }, 'maxRetries'],
    ['x', { maxRetries: Infinity }, 'maxRetries'],
    ['x', { timeout: '10 minutes' }, 'timeout'],
    ['x', { timeout: 0 }, 'timeout'],
    ['x', { backoff: { delay: 'soon' } }, 'backoff.delay'],
    ['x', { history: 'none' }, 'history'],
    ['x', { version: 0 }, 'version'],
    ['x', { schema: {} }, 'schema'],
    ['x', { schema: { parse: () => 1 } }, 'schema'],
    ['x', { upcast: 'v1' }, 'upcast'],
    ['x', { upcast: () => 1 }, 'upcast'],
    ['x', { upcast: () => 1, version: 1 }, 'upcast'],
    ['x', { result: z.string() }, 'result'],
    ['x', { result: 'string' }, 'result'],
    ['x', { retries: 3 }, 'retries'],
  ])('refuses (%j, %j), naming the key', (name, policy, key) => {
    expect(() => makeDefinition(name, policy)).toThrow(
      expect.objectContaining({
        code: 'INVALID_JOB_DEFINITION',
        key,
        message: expect.stringMatching(/ is wrong; allowed: |: there is no such key; allowed: /),
      }),
    );
  });
});

describe('differingKey', () => {
  const policy = { lane: 'mail', backoff: { delay: 5 }, timeout: 10 } as const;

  it('compares what is said, not the object', () => {
    expect(
      differingKey(defineJob('x', policy), defineJob('x', { ...policy, timeout: '10ms' })),
    ).toBeUndefined();
  });

  it.each([
    [{ lane: 'other' }, 'lane'],
    [{ backoff: { delay: 6 } }, 'backoff'],
    [{ backoff: undefined }, 'backoff'],
    [{ timeout: 11 }, 'timeoutMs'],
    [{ schema: z.unknown() }, 'schema'],
    [{ version: 2 }, 'version'],
  ])('finds what differs: %j', (other, key) => {
    const [one, two] = [defineJob('x', policy), makeDefinition('x', { ...policy, ...other })];
    expect(differingKey(one, two)).toBe(key);
  });
});
