import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { UnrecoverableError } from '../../lib/errors/execution-errors.js';
import { DEFAULT_BACKOFF } from '../../lib/jobs/backoff.js';
import { DefaultRetryPolicy } from '../../lib/jobs/default-retry-policy.js';

const policy = new DefaultRetryPolicy();
const failure = (
  error: unknown,
  failures: number,
  maxRetries: number,
): Parameters<typeof policy.nextDelayMs>[0] => ({
  name: 'x',
  error,
  failures,
  maxRetries,
  backoff: DEFAULT_BACKOFF,
});

describe('DefaultRetryPolicy', () => {
  it('allows exactly maxRetries retries, whatever was thrown', () => {
    fc.assert(
      fc.property(
        fc.anything(),
        fc.integer({ min: 1, max: 50 }),
        fc.nat(50),
        (error, failures, maxRetries) => {
          const delayMs = policy.nextDelayMs(failure(error, failures, maxRetries));
          expect(delayMs !== undefined).toBe(failures <= maxRetries);
        },
      ),
    );
  });

  it('never retries what is unrecoverable', () => {
    class AccountClosed extends UnrecoverableError {}
    for (const error of [new UnrecoverableError('x'), new AccountClosed('x'), { code: 'UNRECOVERABLE' }]) {
      expect(policy.nextDelayMs(failure(error, 1, 100))).toBeUndefined();
    }
  });
});
