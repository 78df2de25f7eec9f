import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readPage, ROOT, tableRows } from './markdown.js';

interface ErrorInCode {
  readonly code: string;
  readonly retryable: boolean;
}

/** Every `code` that a class in lib/ carries, read from the source: a class that nobody exports has one too. */
function errorsInCode(): ErrorInCode[] {
  const files = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      readFileSync(join(ROOT, 'lib', file), 'utf8')
        .split(/^export (?:abstract )?class /m)
        .slice(1)
        .flatMap((body) => {
          const code = /^ {2}(?:override )?readonly code = '([A-Z_]+)'/m.exec(body)?.[1];
          return code === undefined ? [] : [{ code, retryable: /readonly retryable = true/.test(body) }];
        }),
    );
}

const documented = tableRows(readPage('docs/errors.md'))
  .filter(([code]) => code !== 'code')
  .map(([code = '', happened = '']) => ({
    code: /`([A-Z_]+)`/.exec(code)?.[1],
    retryable: code.includes('(retry)'),
    happened,
  }));

describe('docs/errors.md', () => {
  it('lists exactly the codes of the library, and which of them may be retried', () => {
    const byCode = (a: { code?: string | undefined }, b: { code?: string | undefined }): number =>
      (a.code ?? '').localeCompare(b.code ?? '');
    expect(documented.map(({ code, retryable }) => ({ code, retryable })).toSorted(byCode)).toEqual(
      errorsInCode().toSorted(byCode),
    );
  });

  it('says what happened, for each', () => {
    expect(documented.filter(({ happened }) => happened.length < 10)).toEqual([]);
  });
});
