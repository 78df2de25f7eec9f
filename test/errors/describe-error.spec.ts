import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runInNewContext } from 'node:vm';
import { cleanText } from '../../lib/errors/clean-text.js';
import { describeError, errorText } from '../../lib/errors/describe-error.js';

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

describe('describeError', () => {
  it('reads an error', () => {
    const error = Object.assign(new TypeError('no'), { code: 'E_NO' });
    expect(describeError(error)).toEqual({
      name: 'TypeError',
      message: 'no',
      code: 'E_NO',
      stack: error.stack,
    });
  });

  it('reads an error of another realm', () => {
    const error: unknown = runInNewContext('new RangeError("far away")');
    expect(describeError(error)).toMatchObject({ name: 'RangeError', message: 'far away' });
  });

  it.each([
    [null, 'null', 'null was thrown, which is no Error'],
    [undefined, 'undefined', 'undefined was thrown, which is no Error'],
    [42, 'number', '42 was thrown, which is no Error'],
    ['boom', 'string', 'boom'],
    [Symbol('s'), 'symbol', 'Symbol(s) was thrown, which is no Error'],
  ])('names what is no error: %p', (thrown, name, message) => {
    expect(describeError(thrown)).toEqual({ name, message, code: undefined, stack: undefined });
  });

  it('takes a plain object for what it says', () => {
    expect(describeError({ message: 'quota', code: 429 })).toMatchObject({
      name: 'Object',
      message: 'quota',
      code: '429',
    });
    expect(describeError({ status: 7 }).message).toBe('{ status: 7 }');
  });

  it('survives getters that throw', () => {
    const hostile = new Error('x');
    for (const key of ['stack', 'message', 'name', 'code', 'cause', 'errors']) {
      Object.defineProperty(hostile, key, {
        get() {
          throw new Error('trap');
        },
      });
    }
    expect(typeof describeError(hostile).message).toBe('string');
    expect(typeof errorText(hostile)).toBe('string');
  });

  it('survives a revoked proxy', () => {
    expect(describeError(revoked())).toMatchObject({ name: 'Error' });
    expect(typeof errorText(revoked())).toBe('string');
  });

  it('cuts a message of five megabytes', () => {
    const { message } = describeError(new Error('x'.repeat(5_000_000)));
    expect(message.length).toBeLessThan(21_000);
    expect(message).toContain('5000000 characters');
  });

  it('never throws, whatever is thrown', () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withDate: true, withMap: true, withSymbol: true } as object),
        (thrown) => {
          expect(typeof describeError(thrown).message).toBe('string');
          expect(typeof errorText(thrown)).toBe('string');
        },
      ),
    );
  });
});

describe('errorText', () => {
  it('shows the causes and the errors inside, briefly', () => {
    const root = Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
    const error = new AggregateError([new Error('first'), 'second'], 'all failed', {
      cause: new Error('outer', { cause: root }),
    });
    const text = errorText(error);
    expect(text).toContain('all failed');
    expect(text).toContain('caused by Error: outer');
    expect(text).toContain('caused by Error: connection refused [ECONNREFUSED]');
    expect(text).toContain('holds Error: first');
    expect(text).toContain('holds string: second');
  });

  it('ends with a cause that refers to itself', () => {
    const error = new Error('loop');
    error.cause = error;
    expect(errorText(error).match(/caused by/g)).toBeNull();
  });

  it('shows a message that was changed after the stack was made', () => {
    const error = new Error('before');
    expect(error.stack).toContain('before');
    error.message = 'after';
    expect(errorText(error)).toContain('Error: after');
  });
});

describe('cleanText', () => {
  it('removes NUL and replaces broken surrogates', () => {
    expect(cleanText('a\0b\ud800c😀')).toBe('ab\uFFFDc😀');
  });

  it('keeps to the bytes that it is given, and is well formed', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.integer({ min: 0, max: 200 }),
        (text, maxBytes) => {
          const clean = cleanText(text, maxBytes);
          expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(maxBytes);
          expect(clean).not.toMatch(/[\0\p{Cs}]/u);
        },
      ),
    );
  });

  it('leaves alone what fits', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(cleanText(text, 100_000)).toBe(text.replaceAll('\0', ''));
      }),
    );
  });

  it('says how much there was', () => {
    expect(cleanText('x'.repeat(1_000), 100)).toMatch(/^x+ … \(cut, 1000 characters\)$/);
  });
});
