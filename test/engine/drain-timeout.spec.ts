import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { engineFixture } from './engine-fixture.js';

describe('a drain whose timeout is no duration', () => {
  const fixture = engineFixture();
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([[-1], ['x'], [Number.NaN], [1e20]])('is told of %p, and drains all the same', async (timeout) => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const one = await fixture.node({ settings: { drainTimeoutMs: 50 } });
    await one.runtime.start();
    await one.runtime.drain({ timeout: timeout as never });
    expect(one.runtime.state).toBe('drained');
    expect(error.mock.calls.map(([line]) => String(line))).toEqual([
      expect.stringMatching(/drain: timeout .+ is no duration .*; 50 ms count/),
    ]);
  });
});
