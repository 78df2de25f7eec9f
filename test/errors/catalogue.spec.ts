import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as errors from '../../lib/errors/index.js';

const folder = join(import.meta.dirname, '../../lib/errors');
const sources = readdirSync(folder)
  .filter((file) => file.endsWith('-errors.ts'))
  .map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') }));
const declared = sources.flatMap(({ text }) =>
  [...text.matchAll(/class (\w+) extends RatchetError[^]*?readonly code = '([^']*)'/g)].map(
    ([, name, code]) => ({
      name: name!,
      code: code!,
    }),
  ),
);

describe('the errors', () => {
  it('are all listed by lib/errors/index.ts', () => {
    const listed: Record<string, unknown> = { ...errors };
    expect(declared.length).toBeGreaterThan(15);
    for (const { name } of declared) expect([name, typeof listed[name]]).toEqual([name, 'function']);
    for (const { file } of sources) {
      expect(readFileSync(join(folder, 'index.ts'), 'utf8')).toContain(`./${file.replace(/\.ts$/, '.js')}`);
    }
  });

  it('have codes of their own, in one form', () => {
    const codes = declared.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of codes) expect(code).toMatch(/^[A-Z][A-Z_]+[A-Z]$/);
  });

  it('keep name, code and cause', () => {
    const cause = new Error('root');
    const error = new errors.UnrecoverableError('closed', { cause });
    expect(error).toMatchObject({
      name: 'UnrecoverableError',
      code: 'UNRECOVERABLE',
      message: 'closed',
      cause,
      retryable: false,
    });
    expect(new errors.EnqueueConflictError({ cause }).retryable).toBe(true);
  });

  it('name the thing, the value and the mend', () => {
    expect(
      new errors.InvalidJobDefinitionError('invoice.send', 'timeout', '10 minutes', 'a duration').message,
    ).toBe('INVALID_JOB_DEFINITION: "invoice.send".timeout: "10 minutes" is wrong; allowed: a duration');
    expect(new errors.BusinessKeyHeldError('invoice:7', 'j1').message).toContain(
      '"invoice:7" is held by job j1',
    );
    expect(new errors.JobTimeoutError('invoice.send', 2_000).message).toContain('2000 ms');
  });

  it('stay short, whatever value they show', () => {
    const error = new errors.InvalidEnqueueOptionError('x', 'lane', 'y'.repeat(1e6), 'a text');
    expect(error.message.length).toBeLessThan(300);
  });
});
